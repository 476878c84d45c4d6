import { RelayError } from '../errors'
import type { BotSelector, Destination, Destinations, TargetNames } from './model'
import { readAddress, writeTarget } from './target'

/** The most targets of one request. */
const maxTargets = 100

/**
 * Finds out what words lead to: each is a target, or a name for one or several. Doubles are left out.
 *
 * @param isList whether they were given as a list; a name that stands for a list makes it one as well
 * @param bot the one that the request asks for
 * @throws RelayError `no-such-target`; `bad-request` for no word, more than 100 different words or targets, or a word that leads to
 *   another bot
 */
export function parseDestinations(words: readonly string[], isList: boolean, bot: BotSelector, names: TargetNames): Destinations {
  // How often a word stands there must not multiply what a name leads to.
  const different = new Set(words)
  if (different.size > maxTargets) throw tooMany()
  const found = new Map<string, Destination>()
  let isMany = isList
  for (const word of different) {
    const destinations = resolve(word, bot, names)
    isMany ||= destinations.isList
    for (const each of destinations.list) found.set(keyOf(each), each)
    if (found.size > maxTargets) throw tooMany()
  }
  if (found.size === 0) throw new RelayError('bad-request', 'to must not be empty')
  return { list: [...found.values()], isList: isMany }
}

function tooMany(): RelayError {
  return new RelayError('bad-request', `to must lead to at most ${maxTargets} targets, in at most ${maxTargets} different words`)
}

/**
 * Finds out what a part of a path leads to: a target, a name, or several with commas between them.
 *
 * @throws RelayError as {@link parseDestinations}; with a comma too many one of the words is empty, and leads nowhere
 */
export function parsePath(text: string, bot: BotSelector, names: TargetNames): Destinations {
  const words = text.split(',')
  return parseDestinations(words, words.length > 1, bot, names)
}

function resolve(word: string, bot: BotSelector, names: TargetNames): Destinations {
  const address = readAddress(word)
  const named = address ? { addresses: [address], isList: false } : names.get(word)
  if (!named) throw new RelayError('no-such-target')
  return {
    list: named.addresses.map(({ target, platform }) => ({ target, asked: word, bot: agree(bot, { platform, selfId: named.selfId }) })),
    isList: named.isList,
  }
}

/** What a request says of the bot together with what its target says of it. */
function agree(asked: BotSelector, given: { [name in keyof BotSelector]: string | undefined }): BotSelector {
  for (const name of ['platform', 'selfId'] as const) {
    if (asked[name] === undefined || given[name] === undefined || asked[name] === given[name]) continue
    throw new RelayError('bad-request', 'to leads to another bot than the one that platform and self_id name')
  }
  const platform = asked.platform ?? given.platform
  const selfId = asked.selfId ?? given.selfId
  return { ...platform !== undefined && { platform }, ...selfId !== undefined && { selfId } }
}

/** What a destination is known by, however it was written. */
export function keyOf({ target, bot }: Destination): string {
  return JSON.stringify([writeTarget(target), bot.platform ?? null, bot.selfId ?? null])
}
