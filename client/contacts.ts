import { shallowRef } from 'vue'
import { call } from './api'
import { listOf, textOf } from './fields'
import { targets } from './inventory'
import { texts } from './texts'

/** Somebody whom a bot can write to. */
export interface Contact {
  target: string
  name: string
}

/**
 * The groups and friends of a bot.
 *
 * @param bot as `platform:id`; empty for the first that is online
 * @returns `undefined` where it does not tell them
 */
export async function loadContacts(bot: string): Promise<Contact[] | undefined> {
  const { isRight, data } = await call('GET', '/contacts', { ...bot && { query: { bot } } })
  if (!isRight) return
  return ([['group', data.groups], ['private', data.friends]] as const).flatMap(([kind, list]) => {
    return listOf(list).map(({ id, name }) => ({ target: `${kind}:${textOf(id)}`, name: textOf(name) }))
  })
}

/** All bots, as `platform:id`. */
export const bots = shallowRef<readonly string[]>([])

/** Names of groups and friends by the bot and the target. */
const names = shallowRef<ReadonlyMap<string, string>>(new Map())

/** How long they are taken for good, in milliseconds: each look asks the platforms. */
const lifetime = 60_000
let asked = -Infinity

/** Asks all bots that are online whom they know, unless that was done a short while ago. */
export async function refreshNames(): Promise<void> {
  if (performance.now() - asked < lifetime) return
  const { isRight, data } = await call('GET', '/statusz')
  if (!isRight) return
  asked = performance.now()
  const all = listOf(data.bots).map(({ platform, self_id: id, status }) => ({ bot: `${textOf(platform)}:${textOf(id)}`, isOnline: status === 'online' }))
  bots.value = all.map(({ bot }) => bot)
  const lists = await Promise.all(all.filter(({ isOnline }) => isOnline).map(async ({ bot }) => {
    return (await loadContacts(bot) ?? []).map(({ target, name }): [string, string] => [`${bot} ${target}`, name])
  }))
  names.value = new Map([...names.value, ...lists.flat()])
}

/** The bot that an address names, as `platform:id`, and the chat; a platform alone stays with the chat. */
export function splitAddress(address: string): { bot: string, chat: string } {
  const [, bot = '', chat = address] = /^(?:([^:]+:[^:]+):)?((?:group|private):.+)$/.exec(address) ?? []
  return { bot, chat }
}

/** What an HTTP address is called, which the relay tells as `http:group:oncall/3`: its place among the ways of a name. */
function nameOfWay(address: string): string {
  const [, name, place] = /^http:group:(.+)\/(\d+)$/.exec(address) ?? []
  return name === undefined ? '' : texts.value.common.pair(name, texts.value.targets.way(Number(place)))
}

/** What a chat is called by the first bot that knows it; empty where none does. */
export function nameAnywhere(address: string): string {
  const { chat: target } = splitAddress(address)
  for (const [place, name] of names.value) if (place.endsWith(` ${target}`)) return name
  return nameOfWay(address)
}

/** What a target is called by its platform, or else by the name that was given to it; empty where neither says it. */
export function nameOf(target: string, bot: string): string {
  const platform = bot.slice(0, bot.indexOf(':'))
  const isIt = (address: string): boolean => address === target || address === `${platform}:${target}`
  const named = targets.value?.find(({ to }) => to.length === 1 && to.some(isIt))
  return names.value.get(`${bot} ${target}`) || (named?.name ?? nameOfWay(`${platform}:${target}`))
}

/** The groups and people that the bots know, each once. */
export function knownChats(): Contact[] {
  const found = new Map([...names.value].map(([place, name]) => [place.slice(place.indexOf(' ') + 1), name]))
  return [...found].map(([target, name]) => ({ target, name }))
}
