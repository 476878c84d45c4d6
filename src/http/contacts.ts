import { readValue } from '../lib/words'
import type { BotSelector, Target } from '../message/model'
import { toPlatform } from '../message/target'
import type { Contact, Inquiries } from '../relay/accept/inquiries'
import { say } from '../texts/text'
import { route, type Route } from './routes'

/** `GET /contacts`: the groups and friends of a bot to which the key may send, with their names. */
export function contactsRoute(inquiries: Inquiries): Route {
  return route('GET', '/contacts', ['send', 'hooks', 'onebot'], async ({ caller, query }) => {
    const { platform, id: selfId } = inquiries.sender(readValue('bot', query.get('bot'), parseBot, say('bot-rule')) ?? {})
    const ask = async (kind: Target['kind']): Promise<Contact[]> =>
      (await inquiries.contacts({ platform, selfId }, kind)).filter(({ id }) => caller.maySendTo({ kind, id }, platform))
    const [groups, friends] = await Promise.all([ask('group'), ask('private')])
    return { data: { bot: `${platform}:${selfId}`, groups, friends } }
  })
}

/** Reads `platform:selfId`; `undefined` for anything else. */
function parseBot(text: string): BotSelector | undefined {
  const [, platform, selfId] = /^([^:]+):(.+)$/s.exec(text) ?? []
  return platform !== undefined && selfId !== undefined ? { platform: toPlatform(platform), selfId } : undefined
}
