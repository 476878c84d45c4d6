import { isErrorCode, RelayError } from '../errors'
import { printable } from '../lib/log'
import { parseLink, writeLink } from './link'
import { parseDestinations } from './destination'
import type { BotSelector, Content, Destinations, Item, MediaItem, ParsedItem, Reply, Target, TargetNames } from './model'
import { writeTarget } from './target'

/** A JSON object whose fields are not looked at yet. */
export type JsonObject = Readonly<Record<string, unknown>>

/** The longest ID of a group, user, bot or platform that is taken, in characters. */
const maxIdLength = 255

// Built once: the compiler makes such a pattern anew wherever it stands.
const control = /\p{Cc}/u

/** The most items of a batch, or of the answer of a callback. */
export const maxItems = 1000

/** The longest time after which a message may expire, in seconds: 30 days. */
const maxExpiry = 30 * 24 * 60 * 60

/**
 * Reads the body of `POST /webhook` without its target: a single message, or a batch where it has `messages`.
 *
 * @throws RelayError `bad-request`. An item of a batch that is wrong does not throw: its error stands in its place.
 */
export function parseContent(body: unknown): Content {
  const fields = demandObject(body)
  const expiry = parseExpiry(fields)
  const { messages } = fields
  if (messages === undefined || messages === null) return { mode: 'single', ...expiry, items: parseSingle(fields) }
  if (!Array.isArray(messages)) throw new RelayError('bad-request', 'messages must be an array')
  refuseTooMany(messages)
  if (messages.length === 0) throw new RelayError('bad-request', 'messages must not be empty')
  return { mode: 'batch', ...expiry, items: parseItems(messages) }
}

/**
 * Reads where the body of `POST /webhook` wants to be sent.
 *
 * @param names those that `to` may have in the place of a target
 * @throws RelayError `bad-request`, `no-such-target`
 */
export function parseTo(body: unknown, names: TargetNames = new Map()): Destinations {
  const fields = demandObject(body)
  const bot = parseBot(fields)
  const target = parseTarget(fields)
  const { to } = fields
  if (to === undefined || to === null || to === '') {
    if (!target) throw new RelayError('bad-request', 'to, group_id or user_id is required')
    return { list: [{ target, bot, asked: writeTarget(target) }], isList: false }
  }
  if (target) throw new RelayError('bad-request', 'give to, group_id or user_id, only one of them')
  if (typeof to === 'string') return parseDestinations([to], false, bot, names)
  if (!Array.isArray(to) || !to.every(word => typeof word === 'string')) throw new RelayError('bad-request', 'to must be one target, as text, or a list of them')
  return parseDestinations(to, true, bot, names)
}

/**
 * Reads which bot a body like that of `POST /webhook` wants, where its target is named elsewhere.
 *
 * @throws RelayError `bad-request`, also where it names a target
 */
export function parseSelector(body: unknown): BotSelector {
  const fields = demandObject(body)
  const { to } = fields
  const hasTarget = (to !== undefined && to !== null && to !== '') || parseTarget(fields) !== undefined
  if (hasTarget) throw new RelayError('bad-request', 'the target is in the path: leave out to, group_id and user_id')
  return parseBot(fields)
}

/** The fields that say what an item of a batch is. */
const itemFields: ReadonlySet<string> = new Set(['type', 'msg', 'url', 'user_id', 'message_id'])
/** The fields that a batch may have, and those that a request may have which is a single message. */
const batchFields: ReadonlySet<string> = new Set(['to', 'group_id', 'user_id', 'platform', 'self_id', 'expires_in', 'messages'])
const singleFields: ReadonlySet<string> = new Set([...batchFields, 'type', 'msg', 'url', 'at', 'reply_to'])

/** How many fields without a meaning are named at most, and the longest name, in characters. */
const maxIgnored = 20
const longestIgnored = 64

/**
 * Names the fields of a request that have no meaning, such as `expire_in`, in an item of a batch `messages[3].caption`, or beside one `at`.
 * Those that are null count as absent. The names are cut, and fit for a line of a log.
 *
 * @param body that was taken
 */
export function ignoredFields(body: unknown): string[] {
  if (!isObject(body)) return []
  const { messages } = body
  if (!Array.isArray(messages)) return fieldsBeside(body, singleFields, '')
  const names = fieldsBeside(body, batchFields, '')
  for (const [index, item] of messages.entries()) {
    if (names.length >= maxIgnored) break
    if (isObject(item)) names.push(...fieldsBeside(item, itemFields, `messages[${index}].`))
  }
  return names.slice(0, maxIgnored)
}

function fieldsBeside(object: JsonObject, known: ReadonlySet<string>, prefix: string): string[] {
  return printNames(Object.keys(object).filter(name => !known.has(name) && object[name] !== null), prefix)
}

/** Names that have no meaning, as a caller and the log are told of them: at most 20 of them, and cut. */
export function printNames(names: readonly string[], prefix = ''): string[] {
  return names.slice(0, maxIgnored).map(name => printable((prefix + name).slice(0, longestIgnored)))
}

/** Items as plain JSON, for a store. */
export function writeItems(items: readonly ParsedItem[]): JsonObject[] {
  return items.map(item => item instanceof RelayError ? { error: item.code, msg: item.message } : writeItem(item))
}

function writeItem(item: Item): JsonObject {
  switch (item.type) {
    case 'text':
      return { type: item.type, msg: item.text }
    case 'at':
      return { type: item.type, user_id: item.userId ?? everybody }
    case 'reply':
      return { type: item.type, message_id: item.messageId }
    default:
      return { type: item.type, url: writeLink(item.link), ...item.name !== undefined && { name: item.name } }
  }
}

/** Reads what `writeItems` wrote. What a newer release takes for wrong stands as its error. */
export function readItems(stored: unknown): ParsedItem[] {
  if (!Array.isArray(stored)) return []
  return stored.map((value: unknown) => {
    const { error, msg, name }: JsonObject = isObject(value) ? value : {}
    if (isErrorCode(error)) return new RelayError(error, typeof msg === 'string' ? msg : undefined)
    const item = parseItemSafely(value)
    return 'link' in item && typeof name === 'string' ? { ...item, name } : item
  })
}

/**
 * Reads the answer of a command callback. `undefined` means no reply.
 *
 * @throws RelayError `bad-request` when the target or the shape as a whole is wrong; a wrong item stands as its error
 */
export function parseReply(body: JsonObject): Reply | undefined {
  const { reply, messages } = body
  if (messages !== undefined && messages !== null && !Array.isArray(messages)) {
    throw new RelayError('bad-request', 'messages must be an array')
  }
  let items: ParsedItem[]
  if (Array.isArray(messages)) refuseTooMany(messages)
  if (Array.isArray(messages) && messages.length > 0) items = parseItems(messages)
  else if (reply !== undefined && reply !== null && typeof reply !== 'string') throw new RelayError('bad-request', 'reply must be a string')
  else if (reply?.trim()) items = [{ type: 'text', text: toText(reply) }]
  else return
  // Unlike a request, an answer may name both: the group wins.
  const group = parseId(body, 'group_id')
  const target = group === undefined ? parseTarget(body) : { kind: 'group' as const, id: group }
  return { ...target && { target }, items }
}

/** Tells a JSON object from every other value. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function refuseTooMany({ length }: readonly unknown[]): void {
  if (length > maxItems) throw new RelayError('bad-request', `messages must hold at most ${maxItems} items`)
}

function demandObject(body: unknown): JsonObject {
  if (!isObject(body)) throw new RelayError('bad-request', 'the body must be a JSON object')
  return body
}

function parseTarget(body: JsonObject): Target | undefined {
  const group = parseId(body, 'group_id')
  const user = parseId(body, 'user_id')
  if (group !== undefined && user !== undefined) throw new RelayError('bad-request', 'give group_id or user_id, not both')
  if (group !== undefined) return { kind: 'group', id: group }
  if (user !== undefined) return { kind: 'private', id: user }
}

function parseBot(body: JsonObject): BotSelector {
  const { platform } = body
  if (platform !== undefined && platform !== null && typeof platform !== 'string') {
    throw new RelayError('bad-request', 'platform must be a string')
  }
  const selfId = parseId(body, 'self_id')
  return { ...platform && { platform }, ...selfId !== undefined && { selfId } }
}

/**
 * Reads after which time a message is not to be delivered any more.
 *
 * @param seconds may be a fraction; null counts as absent
 * @throws RelayError `bad-request`
 */
export function parseExpiry({ expires_in: seconds }: JsonObject): Pick<Content, 'expiresIn'> {
  if (seconds === undefined || seconds === null) return {}
  if (typeof seconds !== 'number' || !(seconds > 0) || seconds > maxExpiry) {
    throw new RelayError('bad-request', `expires_in must be a number of seconds, above 0 and up to ${maxExpiry}`)
  }
  return { expiresIn: seconds * 1000 }
}

/**
 * Reads an ID, which may be a whole number; `undefined` where there is none.
 *
 * @throws RelayError `bad-request`
 */
export function parseId(body: JsonObject, field: string): string | undefined {
  const value = body[field]
  if (value === undefined || value === null || value === '') return
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  if (typeof value !== 'string') throw new RelayError('bad-request', `${field} must be a string or a whole number`)
  if (value.length > maxIdLength || !value.trim() || control.test(value)) {
    throw new RelayError('bad-request', `${field} is not an ID`)
  }
  return value
}

/** Reads a list of items. A reply that nothing goes with is wrong: no platform takes it by itself. */
function parseItems(values: readonly unknown[]): ParsedItem[] {
  const items = values.map(parseItemSafely)
  const hasPlace = items.some(item => !(item instanceof RelayError) && (item.type === 'text' || item.type === 'image' || item.type === 'at'))
  return hasPlace ? items : items.map(item => item instanceof RelayError || item.type !== 'reply' ? item : loneReply())
}

function loneReply(): RelayError {
  return new RelayError('bad-request', 'a reply needs a text, picture or mention that it goes with')
}

function parseItemSafely(value: unknown): ParsedItem {
  try {
    if (!isObject(value)) throw new RelayError('bad-request', 'an item of messages must be an object')
    return parseItem(value)
  } catch (error) {
    return RelayError.from(error)
  }
}

/** In the place of the ID of a user: everybody. */
const everybody = 'all'

function parseItem(fields: JsonObject): Item {
  switch (fields.type) {
    case 'at': {
      const userId = parseId(fields, 'user_id')
      if (userId === undefined) throw new RelayError('bad-request', `user_id is required for type at: an ID, or "${everybody}" for everybody`)
      return { type: 'at', userId: parseMentioned(userId) }
    }
    case 'reply': {
      const messageId = parseId(fields, 'message_id')
      if (messageId === undefined) throw new RelayError('bad-request', 'message_id is required for type reply')
      return { type: 'reply', messageId }
    }
    default:
      return parseMain(fields)
  }
}

/**
 * Reads whom a mention is of; `null` stands for everybody.
 *
 * @throws RelayError `bad-request` for what could be more than an ID: many an adapter writes it into its markup as it is, and not every
 *   key may mention everybody
 */
export function parseMentioned(id: string): string | null {
  if (!/^[^\s<>&"'`\p{C}]+$/u.test(id)) throw new RelayError('bad-request', 'this is not the ID of somebody to mention')
  // Zero is everybody to go-cqhttp and Lagrange.
  if (/^[+-]?0+$/.test(id)) throw new RelayError('bad-request', `0 is the ID of nobody: "${everybody}" mentions everybody`)
  return id === everybody ? null : id
}

/** Reads an item that can stand alone. */
function parseMain(fields: JsonObject): Item {
  const type: unknown = fields.type ?? 'text'
  switch (type) {
    case 'text':
      return { type, text: parseText(fields) }
    case 'image':
    case 'file':
    case 'video':
    case 'audio':
      return { type, link: parseUrl(fields, type) }
    default:
      throw new RelayError('bad-request', 'type must be text, image, file, video or audio, and in messages at or reply as well')
  }
}

/** Reads a single message with what goes with it: whom it mentions (`at`), and what it answers (`reply_to`). */
function parseSingle(fields: JsonObject): Item[] {
  const main = parseMain(fields)
  const mentioned = fields.at === undefined || fields.at === null ? [] : [fields.at].flat().flatMap(at => parseId({ at }, 'at') ?? [])
  if (mentioned.length > maxItems) throw new RelayError('bad-request', `at must hold at most ${maxItems} IDs`)
  const messageId = parseId(fields, 'reply_to')
  if (mentioned.length === 0 && messageId === undefined) return [main]
  if (main.type !== 'text' && main.type !== 'image') throw new RelayError('bad-request', 'at and reply_to go with a text or an image')
  return [
    ...messageId === undefined ? [] : [{ type: 'reply' as const, messageId }],
    ...mentioned.map(id => ({ type: 'at' as const, userId: parseMentioned(id) })),
    main,
  ]
}

function parseText({ msg }: JsonObject): string {
  if (msg === undefined || msg === null) throw new RelayError('bad-request', 'msg is required for type text')
  if (typeof msg !== 'string') throw new RelayError('bad-request', 'msg must be a string')
  if (!msg.trim()) throw new RelayError('bad-request', 'msg must not be blank')
  return toText(msg)
}

/** Half of a surrogate pair becomes U+FFFD on its way in UTF-8 anyway. As it was it would not be found again in the platform's history. */
export function toText(value: string): string {
  return value.toWellFormed()
}

function parseUrl({ url }: JsonObject, type: MediaItem['type']) {
  if (url === undefined || url === null || url === '') throw new RelayError('bad-request', `url is required for type ${type}`)
  if (typeof url !== 'string') throw new RelayError('bad-request', 'url must be a string')
  return parseLink(url)
}
