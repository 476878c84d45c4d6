import type { Context, Session } from 'koishi'
import { LRUCache } from 'lru-cache'
import { RelayError } from '../errors'
import { Hearings, identitiesOf } from '../message/hearings'
import { writeTarget } from '../message/target'
import type { Incoming, Source } from '../platform/incoming'
import { listenForReactions } from '../platform/reactions'
import type { Relay } from '../relay/relay'
import type { Actor, Incident } from './incident'
import type { Incidents } from './incidents'
import type { Directory } from './people'
import { placeOf } from './recorder'
import { readReaction, readWord, type Wish } from './words'
import { say } from '../texts/text'
import type { Log } from '../lib/log'

/** How often people can act on one incident, each of which may be answered in the chat, within a time in milliseconds. */
const most = 10
const actCache = { ttl: 60_000, max: 1_000, noUpdateTTL: true }

export interface ChatOptions {
  incidents: Pick<Incidents, 'ofMessage' | 'ofChat' | 'mayAct' | 'act' | 'answerIn'>
  directory: Pick<Directory, 'findBy'>
  relay: Pick<Relay, 'active'>
  readIncoming: (session: Session) => Incoming
  logger: Pick<Log, 'debug' | 'warn'>
}

/** What a member asks for, and how. */
interface Call {
  wish: Wish
  way: 'quote' | 'mention' | 'reaction'
  source: Source
  /** What was said, and what is equal in all reports of it. */
  said: string
  identities: readonly string[]
  /** Finds the incidents that it is about. */
  find: (chat: string, actor: Actor) => readonly Incident[]
}

/**
 * Lets members act on incidents from the chat until the context is disposed: by a word with a quote of a message of the incident, by a word
 * with a mention of the bot if only one incident is unresolved there, or by a reaction. Such a message ends here; any other one goes on.
 */
export function startChat(ctx: Context, options: ChatOptions): void {
  const { incidents, directory, relay, readIncoming, logger } = options
  const hearings = new Hearings(() => ctx.bots)
  const acts = new LRUCache<string, number>(actCache)
  // What was said before is a replay. Some platforms tell whole seconds.
  const start = Math.floor(Date.now() / 1000) * 1000

  /** Whether people have acted too often on an incident: nobody does so on purpose, and the answers would flood the chat. */
  const isFlooded = ({ id }: Incident): boolean => {
    const count = (acts.get(id) ?? 0) + 1
    acts.set(id, count)
    return count > most
  }

  /** Does what a member asks for. @returns whether it was about an incident, and this member may act on it */
  const handle = async ({ wish, way, source, said, identities, find }: Call): Promise<boolean> => {
    const { bot, target, userId, name, time } = source
    const { platform = '', selfId = '' } = bot
    // A standby does nothing, because the active relay does.
    if (time < start || await relay.active().then(() => false, () => true)) return false
    const known = directory.findBy(platform, userId)
    const actor: Actor = { name: name || userId, ...known, account: `${platform}:${userId}`, way }
    try {
      const found = find(placeOf(`${platform}:${selfId}`, writeTarget(target)), actor)
      const allowed = found.filter(incident => target.kind === 'private' || incidents.mayAct(incident, actor))
      if (allowed.length < found.length) logger.debug(say('may-not-act', { who: `${platform}:${userId}`, incidents: found.map(({ id }) => id) }))
      if (allowed.length === 0 || hearings.isOwnOrDuplicate(source, said, identities)) return false
      for (const incident of allowed) {
        const from = { bot, target }
        if (isFlooded(incident)) logger.debug(say('act-too-often', { id: incident.id }))
        else if (wish.action === 'who') await incidents.answerIn(incident, from)
        else await incidents.act(incident.id, wish.action, actor, { from, ...wish.action === 'silence' && { until: Date.now() + wish.span } })
      }
      return true
    } catch (error) {
      logger.warn(say('member-cannot-act', { reason: RelayError.from(error).logText }))
      return false
    }
  }

  /** Starts handling a message; `undefined` for nearly all messages. */
  const hear = (session: Session): Promise<boolean> | undefined => {
    const incoming = readIncoming(session)
    const { text, isMention } = incoming.address
    const wish = readWord(text)
    if (!wish) return
    const { quote, source } = incoming
    if (!source || (quote === '' && !isMention)) return
    const call = { wish, source, said: incoming.text, identities: identitiesOf(source) }
    if (quote !== '') return handle({ ...call, way: 'quote', find: chat => incidents.ofMessage(chat, quote) })
    return handle({ ...call, way: 'mention', find: chat => onlyOne(incidents.ofChat(chat)) })
  }

  ctx.middleware((session, next) => {
    const handled = hear(session)
    return handled ? handled.then(ended => ended ? undefined : next()) : next()
  }, true)

  listenForReactions(ctx, source => {
    const { isAdded, emoji, messageId, bot, time } = source
    const [wish] = emoji.flatMap(name => readReaction(name) ?? [])
    if (!wish || (!isAdded && wish.action !== 'take')) return
    const said = JSON.stringify([messageId, emoji, isAdded])
    const call = { way: 'reaction', source, said, identities: [JSON.stringify([bot, source.userId, said, time])] } as const
    if (isAdded) void handle({ ...call, wish, find: chat => incidents.ofMessage(chat, messageId) })
    else void handle({ ...call, wish: { action: 'release' }, find: (chat, actor) => incidents.ofMessage(chat, messageId).filter(({ state, owner }) => (
      state === 'taken' && owner?.way === 'reaction' && owner.account === actor.account
    )) })
  })
}

function onlyOne<T>(list: readonly T[]): readonly T[] {
  return list.length === 1 ? list : []
}
