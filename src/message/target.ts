import { RelayError } from '../errors'
import { quoted } from '../lib/log'
import { say } from '../texts/text'
import {
  httpPlatform, type Address, type BotSelector, type Destination, type Destinations, type HttpWay, type Ways, type Named, type Route,
  type Target, type TargetNames,
} from './model'

/** Of any script: marks belong to letters. Some letters and marks are invisible. */
const namePattern = /^(?=[\p{L}\p{N}])(?:(?!\p{DI})[\p{L}\p{M}\p{N}._-]){1,64}$/u
/** What a name must be. */
export const nameRule = say('name-rule')
const targetPattern = /^(group|private):(\P{Cc}{1,255})$/u
const addressPattern = /^([^:\s]{1,255}):(?:([^:\s]{1,255}):)??((?:group|private):.*)$/su

/** Other names of platforms, and Koishi's names for them. */
const otherNames: ReadonlyMap<string, string> = new Map([['feishu', 'lark']])

/** The normal form of a name: systems write `é` as one character or as two. */
export function toName(word: string): string {
  return word.normalize()
}

/**
 * Whether a word in its normal form may be a name. Variants of characters, such as those of full width, may not, because people take them
 * for the usual ones.
 */
export function isName(word: string): boolean {
  return namePattern.test(word) && word.normalize('NFKC') === word
}

/** Koishi's name of a platform: `lark` for Feishu. */
export function toPlatform(name: string): string {
  return otherNames.get(name) ?? name
}

/** Writes a target as one word, such as `group:123456`. */
export function writeTarget({ kind, id }: Target): string {
  return `${kind}:${id}`
}

/** Reads the result of `writeTarget`; `undefined` for anything else. */
export function readTarget(text: string): Target | undefined {
  const [, kind, id] = targetPattern.exec(text) ?? []
  if (id !== undefined && (kind === 'group' || kind === 'private')) return { kind, id }
}

/** The platform of a bot named `platform:selfId`; `undefined` if the name has none. */
export function platformOf(bot: string): string | undefined {
  const end = bot.indexOf(':')
  return end > 0 ? bot.slice(0, end) : undefined
}

/**
 * Reads a target, optionally after its platform, or after platform and sending account, such as `discord:group:3` and
 * `onebot:20002:group:3`; `undefined` for anything else.
 */
export function readAddress(text: string): Address | undefined {
  const bare = readTarget(text)
  if (bare) return { target: bare }
  const [, platform, selfId, rest = ''] = addressPattern.exec(text) ?? []
  const target = readTarget(rest)
  if (platform !== undefined && target) return { platform: toPlatform(platform), ...selfId !== undefined && { selfId }, target }
}

/** Writes an address as `readAddress` reads it. */
export function writeAddress({ platform, selfId, target }: Address): string {
  return [platform, selfId, writeTarget(target)].filter(part => part !== undefined).join(':')
}

/** The most targets of one request. */
export const maxTargets = 100

/**
 * Resolves words to destinations without duplicates. Each word is a target, or the name of one or several.
 *
 * @param to the words, or a text with commas between them; an extra comma makes an empty word, which is no target
 * @param bot the bot of the request
 * @throws RelayError `no-such-target`; `bad-request` for no word, more than 100 different words or targets, or a conflict with `bot`
 */
export function parseDestinations(to: string | readonly string[], bot: BotSelector, names: TargetNames): Destinations {
  const words = typeof to === 'string' ? to.split(',').map(word => word.trim()) : to
  // Without repetitions, which would multiply the work for a name with many targets.
  const different = new Set(words)
  if (different.size > maxTargets) throw tooMany()
  const found = new Map<string, Destination>()
  // A name with a list also makes the answer a list.
  let isList = typeof to !== 'string' || words.length > 1
  for (const written of different) {
    const address = readAddress(written)
    const word = address ? written : toName(written)
    const named: Named | undefined = address ? { addresses: [address], isList: false } : names.get(word)
    // While names are missing, no 404: many callers would give up.
    if (!named) throw names.failure ?? noSuchTarget(word)
    isList ||= named.isList
    const { lang, policy, first } = named
    const ways = reachOf(word, named, names)
    const route = first && routeOf(word, first, ways, bot)
    for (const { target, platform, selfId } of route ? ways.slice(0, 1) : ways) {
      const destination: Destination = {
        target, asked: word, bot: agree(bot, platform, selfId), ...lang && { lang }, ...policy && { policy }, ...route && { route },
      }
      // If a chat is named twice, its first destination counts.
      const key = keyOf(destination)
      if (!found.has(key)) found.set(key, destination)
    }
    if (found.size > maxTargets) throw tooMany()
  }
  if (found.size === 0) throw new RelayError('bad-request', say('to-empty'))
  return { list: [...found.values()], isList }
}

/** The log omits the word, which may be a text or a key in the wrong place. */
function noSuchTarget(word: string): RelayError {
  return new RelayError('no-such-target', say('no-target-named', { target: quoted(word) }), { logText: say('no-such-target') })
}

function tooMany(): RelayError {
  return new RelayError('bad-request', say('too-many-targets', { most: maxTargets }))
}

/** @throws RelayError `no-such-target` if no way is left; `bad-request` if the request names a bot */
function routeOf(name: string, { after, whenUnknown }: Ways, ways: readonly Address[], { platform, selfId }: BotSelector): Route {
  if ((platform ?? selfId) !== undefined) throw new RelayError('bad-request', say('ways-have-bots', { name }))
  if (ways.length === 0) throw noSuchTarget(name)
  return { name, ways, after, whenUnknown }
}

/** The ways of a destination; without a route, its target is the only one. */
export function waysOf({ target, bot, route }: Pick<Destination, 'target' | 'bot' | 'route'>): readonly Address[] {
  return route?.ways ?? [{ target, ...bot }]
}

/** All targets of a name, including those of its ways. A way is left out if it is a name that leads to no single chat any more. */
export function reachOf(name: string, { addresses, first }: Named, names: TargetNames): readonly Address[] {
  return first?.ways.flatMap((way, index): Address | readonly Address[] => {
    if ('target' in way) return way
    // An HTTP address becomes a target whose ID is the name and the place of the way.
    return 'url' in way ? { platform: httpPlatform, target: { kind: 'group', id: `${name}/${index + 1}` } } : chatOf(way.name, names) ?? []
  }) ?? addresses
}

/** The skipped ways: names that lead to no single chat any more. */
export function skippedWays({ first }: Named, names: TargetNames): string[] {
  return first?.ways.flatMap(way => 'name' in way && !chatOf(way.name, names) ? [way.name] : []) ?? []
}

/** Finds the HTTP address of a target, and the name that contains it. */
export function findHttpWay({ id }: Target, names: TargetNames): { way: HttpWay, name: string } | undefined {
  const [name = '', place] = id.split('/')
  const way = names.get(name)?.first?.ways[Number(place) - 1]
  return way && 'url' in way ? { way, name } : undefined
}

/** The chat of a name; `undefined` if the name has several chats, or ways. */
export function chatOf(name: string, names: TargetNames): Address | undefined {
  const { addresses = [] } = names.get(name) ?? {}
  return addresses.length === 1 ? addresses[0] : undefined
}

/** Combines the bot of a request with the bot of its target. */
function agree(asked: BotSelector, platform = asked.platform, selfId = asked.selfId): BotSelector {
  if ((asked.platform ?? platform) !== platform || (asked.selfId ?? selfId) !== selfId) {
    throw new RelayError('bad-request', say('two-bots'))
  }
  return { ...platform !== undefined && { platform }, ...selfId !== undefined && { selfId } }
}

/** Identifies a destination, independent of how the caller wrote it. */
export function keyOf({ target, bot, route }: Destination): string {
  return JSON.stringify([writeTarget(target), bot.platform ?? null, bot.selfId ?? null, ...route ? [route.name] : []])
}
