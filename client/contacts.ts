import { shallowRef } from 'vue'
import { call } from './api'
import { listOf, textOf } from './fields'
import { targets } from './inventory'
import { texts } from './texts'

/** A group or person that a bot can write to. */
export interface Contact {
  target: string
  name: string
}

/**
 * The groups and friends of a bot.
 *
 * @param bot as `platform:id`; empty for the first bot that is online
 * @returns `undefined` if the bot cannot list them
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

/** The names of groups and friends, by bot and target. */
const names = shallowRef<ReadonlyMap<string, string>>(new Map())

/** How long the names stay valid, in milliseconds. Each refresh asks the platforms. */
const lifetime = 60_000
let asked = -Infinity

/** Loads the contacts of all bots that are online, unless that happened recently. */
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

/** The bot of an address, as `platform:id`, and the chat. A platform without an ID stays part of the chat. */
export function splitAddress(address: string): { bot: string, chat: string } {
  const [, bot = '', chat = address] = /^(?:([^:]+:[^:]+):)?((?:group|private):.+)$/.exec(address) ?? []
  return { bot, chat }
}

/** The display name of an HTTP way, whose address is `http:group:oncall/3`: a name and the place among its ways. */
function nameOfWay(address: string): string {
  const [, name, place] = /^http:group:(.+)\/(\d+)$/.exec(address) ?? []
  return name === undefined ? '' : texts.value.common.pair(name, texts.value.targets.way(Number(place)))
}

/** The name that any bot knows a chat by; empty if no bot knows it. */
export function nameAnywhere(address: string): string {
  const { chat: target } = splitAddress(address)
  for (const [place, name] of names.value) if (place.endsWith(` ${target}`)) return name
  return nameOfWay(address)
}

/** The name of a target on its platform, or else the name in the relay; empty if it has neither. */
export function nameOf(target: string, bot: string): string {
  const platform = bot.slice(0, bot.indexOf(':'))
  const isIt = (address: string): boolean => address === target || address === `${platform}:${target}`
  // Of several names for one chat, the message may have been sent to any, or to none.
  const [named, another] = (targets.value ?? []).filter(({ to }) => to.length === 1 && to.some(isIt))
  return names.value.get(`${bot} ${target}`) || (named && !another ? named.name : nameOfWay(`${platform}:${target}`))
}

/** The groups and people known to the bots, each once. */
export function knownChats(): Contact[] {
  const found = new Map([...names.value].map(([place, name]) => [place.slice(place.indexOf(' ') + 1), name]))
  return [...found].map(([target, name]) => ({ target, name }))
}
