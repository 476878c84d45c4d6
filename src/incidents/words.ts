import { parseDuration } from '../lib/time'
import { silences, type Action } from './incident'

/** What a member asks for. */
export type Wish = { readonly action: Exclude<Action, 'silence'> | 'who' } | { readonly action: 'silence', readonly span: number }

const take: Wish = { action: 'take' }
const resolve: Wish = { action: 'resolve' }
const release: Wish = { action: 'release' }
const who: Wish = { action: 'who' }
const silence: Wish = { action: 'silence', span: silences.usual }

const words = tableOf([
  [take, '我来', '认领', 'ack', 'take'],
  [resolve, '解决', '已解决', 'resolve'],
  [release, '放弃', 'release'],
  [who, '谁', 'who'],
])
const silenceWord = /^(?:静默|静音|silence|mute)\s*(\S*)$/

/**
 * Emoji, and QQ's IDs of them: the code points of emoji, and `124` for QQ's own OK sign. QQ has neither 🔕 nor ✅. The IDs are those of
 * NapNeko/NapCatQQ `packages/napcat-core/external/face_config.json` (`QCid` of `emoji`, `QSid` of `sysface`).
 */
const reactions = tableOf([
  [take, '👀', '128064', '👌', '128076', '124'],
  [silence, '💤', '128164', '🔕'],
  [resolve, '🎉', '127881', '✅'],
])

/** No word is longer, in UTF-16 code units. Most messages are. */
const longestWord = 32

/** Reads the whole text of a message, after quote and mention; `undefined` if it is no such word. */
export function readWord(text: string): Wish | undefined {
  if (text.length > longestWord) return
  const word = text.trim().toLowerCase()
  const [, length] = silenceWord.exec(word) ?? []
  return length === undefined ? words.get(word) : readSilence(length)
}

/** Reads a reaction: an emoji, or its ID on QQ. */
export function readReaction(emoji: string): Wish | undefined {
  return reactions.get(emoji)
}

function readSilence(length: string): Wish | undefined {
  const span = length === '' ? silences.usual : parseDuration(length)
  return span !== undefined && span >= silences.least && span <= silences.most ? { action: 'silence', span } : undefined
}

function tableOf(rows: readonly (readonly [Wish, ...string[]])[]): ReadonlyMap<string, Wish> {
  return new Map(rows.flatMap(([wish, ...names]) => names.map(name => [name, wish] as const)))
}
