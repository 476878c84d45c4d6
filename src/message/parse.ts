import { isErrorCode, RelayError } from '../errors'
import { printable } from '../lib/log'
import { parseLink, writeLink } from './link'
import type { Address, BotSelector, Item, MessageRequest, ParsedItem, Reply, Target, TargetNames } from './model'
import { readAddress } from './target'

/** A JSON object whose fields are not looked at yet. */
export type JsonObject = Readonly<Record<string, unknown>>

/** The longest ID of a group, user, bot or platform that is taken, in characters. */
const maxIdLength = 255

// Built once: the compiler makes such a pattern anew wherever it stands.
const control = /\p{Cc}/u

/** The most items of a batch, or of the answer of a callback. */
const maxItems = 1000

/** The longest time after which a message may expire, in seconds: 30 days. */
const maxExpiry = 30 * 24 * 60 * 60

/**
 * Reads the body of `POST /webhook`: a single message, or a batch where it has `messages`.
 *
 * @param names those that `to` may have in the place of a target
 * @throws RelayError `bad-request`, `no-such-target`. An item of a batch that is wrong does not throw: its error stands in its place.
 */
export function parseRequest(body: unknown, names: TargetNames = new Map()): MessageRequest {
  if (!isObject(body)) throw new RelayError('bad-request', 'the body must be a JSON object')
  const expiry = parseExpiry(body)
  const { target, bot } = parseDestination(body, names)
  const { messages } = body
  if (messages === undefined || messages === null) return { mode: 'single', target, bot, ...expiry, items: [parseItem(body)] }
  if (!Array.isArray(messages)) throw new RelayError('bad-request', 'messages must be an array')
  refuseTooMany(messages)
  if (messages.length === 0) throw new RelayError('bad-request', 'messages must not be empty')
  return { mode: 'batch', target, bot, ...expiry, items: messages.map(parseItemSafely) }
}

/** The fields that say what an item is. */
const itemFields: ReadonlySet<string> = new Set(['type', 'msg', 'url'])
/** The fields that a request may have. */
const requestFields: ReadonlySet<string> = new Set(['to', 'group_id', 'user_id', 'platform', 'self_id', 'expires_in', 'messages', ...itemFields])

/** How many unknown fields are named at most, and the longest name, in characters. */
const maxUnknown = 20
const maxUnknownLength = 64

/**
 * Names the fields of a request that have no meaning, such as `expire_in` or, in an item of a batch, `messages[3].caption`. Those that
 * are null count as absent. The names are cut, and fit for a line of a log.
 *
 * @param body as `parseRequest` has taken it
 */
export function unknownFields(body: unknown): string[] {
  if (!isObject(body)) return []
  const names = fieldsBeside(body, requestFields, '')
  const { messages } = body
  if (!Array.isArray(messages)) return names
  for (const [index, item] of messages.entries()) {
    if (names.length >= maxUnknown) break
    if (isObject(item)) names.push(...fieldsBeside(item, itemFields, `messages[${index}].`))
  }
  return names.slice(0, maxUnknown)
}

function fieldsBeside(object: JsonObject, known: ReadonlySet<string>, prefix: string): string[] {
  return Object.keys(object).filter(name => !known.has(name) && object[name] !== null).slice(0, maxUnknown)
    .map(name => printable((prefix + name).slice(0, maxUnknownLength)))
}

/** Items as plain JSON, for a store. */
export function writeItems(items: readonly ParsedItem[]): JsonObject[] {
  return items.map(item => {
    if (item instanceof RelayError) return { error: item.code, msg: item.message }
    return item.type === 'text' ? { type: 'text', msg: item.text } : { type: item.type, url: writeLink(item.link) }
  })
}

/** Reads what `writeItems` wrote. What a newer release takes for wrong stands as its error. */
export function readItems(stored: unknown): ParsedItem[] {
  if (!Array.isArray(stored)) return []
  return stored.map((value: unknown) => {
    const { error, msg }: JsonObject = isObject(value) ? value : {}
    return isErrorCode(error) ? new RelayError(error, typeof msg === 'string' ? msg : undefined) : parseItemSafely(value)
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
  if (reply !== undefined && reply !== null && typeof reply !== 'string') {
    throw new RelayError('bad-request', 'reply must be a string')
  }
  let items: ParsedItem[]
  if (Array.isArray(messages)) refuseTooMany(messages)
  if (Array.isArray(messages) && messages.length > 0) items = messages.map(parseItemSafely)
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

/** Where a request goes, and through which bot. */
function parseDestination(body: JsonObject, names: TargetNames): Pick<MessageRequest, 'target' | 'bot'> {
  const bot = parseBot(body)
  const target = parseTarget(body)
  const { to } = body
  if (to === undefined || to === null || to === '') {
    if (!target) throw new RelayError('bad-request', 'to, group_id or user_id is required')
    return { target, bot }
  }
  if (target) throw new RelayError('bad-request', 'give to, group_id or user_id, only one of them')
  if (typeof to !== 'string') throw new RelayError('bad-request', 'to must be one target, as text')
  const found = resolve(to, names)
  const platform = agree(bot.platform, found.platform)
  const selfId = agree(bot.selfId, found.selfId)
  return { target: found.target, bot: { ...platform !== undefined && { platform }, ...selfId !== undefined && { selfId } } }
}

/** What a text leads to: the target that it is, or the one that a name stands for. */
function resolve(to: string, names: TargetNames): Address & BotSelector {
  const address = readAddress(to)
  if (address) return address
  const named = names.get(to)
  const [first] = named?.addresses ?? []
  if (!named || !first) throw new RelayError('no-such-target')
  if (named.isList) throw new RelayError('bad-request', 'to must lead to one target, and this name leads to a list of them')
  return { ...first, ...named.selfId !== undefined && { selfId: named.selfId } }
}

/** What a request says of the bot together with what its target says of it. */
function agree(asked: string | undefined, given: string | undefined): string | undefined {
  if (asked !== undefined && given !== undefined && asked !== given) {
    throw new RelayError('bad-request', 'to leads to another bot than the one that platform and self_id name')
  }
  return asked ?? given
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

/** `expires_in` is in seconds, and may be a fraction. */
function parseExpiry({ expires_in: seconds }: JsonObject): { expiresIn?: number } {
  if (seconds === undefined || seconds === null) return {}
  if (typeof seconds !== 'number' || !(seconds > 0) || seconds > maxExpiry) {
    throw new RelayError('bad-request', `expires_in must be a number of seconds, above 0 and up to ${maxExpiry}`)
  }
  return { expiresIn: seconds * 1000 }
}

function parseId(body: JsonObject, field: string): string | undefined {
  const value = body[field]
  if (value === undefined || value === null || value === '') return
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  if (typeof value !== 'string') throw new RelayError('bad-request', `${field} must be a string or a whole number`)
  if (value.length > maxIdLength || !value.trim() || control.test(value)) {
    throw new RelayError('bad-request', `${field} is not an ID`)
  }
  return value
}

function parseItemSafely(value: unknown): ParsedItem {
  try {
    if (!isObject(value)) throw new RelayError('bad-request', 'an item of messages must be an object')
    return parseItem(value)
  } catch (error) {
    return RelayError.from(error)
  }
}

function parseItem(fields: JsonObject): Item {
  const type: unknown = fields.type ?? 'text'
  switch (type) {
    case 'text':
      return { type, text: parseText(fields) }
    case 'image':
    case 'file':
    case 'video':
      return { type, link: parseUrl(fields, type) }
    default:
      throw new RelayError('bad-request', 'type must be text, image, file or video')
  }
}

function parseText({ msg }: JsonObject): string {
  if (msg === undefined || msg === null) throw new RelayError('bad-request', 'msg is required for type text')
  if (typeof msg !== 'string') throw new RelayError('bad-request', 'msg must be a string')
  if (!msg.trim()) throw new RelayError('bad-request', 'msg must not be blank')
  return toText(msg)
}

/** Half of a surrogate pair becomes U+FFFD on its way in UTF-8 anyway. As it was it would not be found again in the platform's history. */
function toText(value: string): string {
  return value.toWellFormed()
}

function parseUrl({ url }: JsonObject, type: string) {
  if (url === undefined || url === null || url === '') throw new RelayError('bad-request', `url is required for type ${type}`)
  if (typeof url !== 'string') throw new RelayError('bad-request', 'url must be a string')
  return parseLink(url)
}
