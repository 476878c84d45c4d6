import { demand, isErrorCode, RelayError } from '../errors'
import { safeName } from '../lib/file-name'
import { printable } from '../lib/log'
import { fieldsOf, isObject, toText, type JsonObject } from '../lib/shape'
import { day, parseTime } from '../lib/time'
import { either, isSet, mustBe } from '../lib/words'
import { isText, say, type Text } from '../texts/text'
import { parseLink, writeLink } from './link'
import { everybody, parseMentions } from './mentions'
import {
  severities, threadModes, type BotSelector, type Content, type Destinations, type Item, type MediaItem, type ParsedItem, type Reply,
  type SendAt, type Severity, type Target, type TargetNames, type ThreadMode, type Wishes,
} from './model'
import { parseDestinations, toPlatform, writeTarget } from './target'

/** The longest ID of a group, user, bot or message, in characters. */
const maxIdLength = 255
/** The most items of a batch, or of the answer of a callback. */
export const maxItems = 1000
/** The longest time to live, in seconds: 30 days. */
const maxExpiry = 30 * 24 * 60 * 60
/** How far ahead a message may be scheduled, in milliseconds. */
const longestAhead = 30 * day
const longestThread = 200

// Compiled only once: a literal in a function is compiled for each call.
const control = /\p{Cc}/u
const mentionable = /^[^\s<>&"'`\p{C}]+$/u

/** The fields of a request that set when and how its message is sent. */
export const wishFields = ['urgent', 'send_at', 'thread', 'thread_mode', 'severity', 'mention'] as const

const bodyRule = say('body-object')

/**
 * Reads the content of a body of `POST /webhook`: a batch if it has `messages`, otherwise a single message.
 *
 * @throws RelayError `bad-request`. The error of an invalid item of a batch is not thrown, but takes the place of the item.
 */
export function parseContent(body: unknown): Content {
  demand(isObject(body), bodyRule)
  const expiry = { ...parseExpiry(body), ...parseWishes(body) }
  const messages = body.messages ?? undefined
  if (messages === undefined) {
    const main = parseItem(body, true)
    const isAlone = body.at === undefined && body.reply_to === undefined
    return { mode: 'single', ...expiry, items: isAlone ? [main] : addCompanions(main, body) }
  }
  const values = readMessages(messages)
  demand(values.length > 0, say('no-messages'))
  return { mode: 'batch', ...expiry, items: parseItems(values) }
}

/**
 * Reads the destinations of a body of `POST /webhook`.
 *
 * @param names the names of targets, for `to`
 * @throws RelayError `bad-request`, `no-such-target`
 */
export function parseTo(body: unknown, names: TargetNames = new Map()): Destinations {
  const { bot, target, to } = parseRoute(body)
  if (to === '') {
    demand(target !== undefined, foundInstead(say('target-required'), fieldsOf(body), knownFields(fieldsOf(body))))
    return { list: [{ target, bot, asked: writeTarget(target) }], isList: false }
  }
  demand(!target, say('one-target-field'))
  const isFit = typeof to === 'string' || (Array.isArray(to) && to.every(word => typeof word === 'string'))
  demand(isFit, say('to-text-or-list'))
  return parseDestinations(to, bot, names)
}

/**
 * Reads the bot of a body whose target is in the path.
 *
 * @throws RelayError `bad-request`, also if the body names a target
 */
export function parseSelector(body: unknown): BotSelector {
  const { bot, target, to } = parseRoute(body)
  demand(!target && to === '', say('target-in-path'))
  return bot
}

function parseRoute(body: unknown): { bot: BotSelector, target: Target | undefined, to: unknown } {
  demand(isObject(body), bodyRule)
  const { platform, to } = body
  demand(platform === undefined || platform === null || typeof platform === 'string', mustBe('platform', say('string')))
  const selfId = parseId(body, 'self_id')
  const group = parseId(body, 'group_id')
  const user = parseId(body, 'user_id')
  demand(group === undefined || user === undefined, say('group-or-user'))
  const id = group ?? user
  return {
    bot: { ...platform && { platform: toPlatform(platform) }, ...selfId !== undefined && { selfId } },
    target: id === undefined ? undefined : { kind: group === undefined ? 'private' : 'group', id },
    to: to ?? '',
  }
}

/** The fields of an item of each type, besides `type`; the first is required. */
const ownFields: ReadonlyMap<unknown, readonly string[]> = new Map(Object.entries({
  text: ['msg'], image: ['url'], file: ['url', 'name'], video: ['url'], audio: ['url'], at: ['user_id'], reply: ['message_id'],
} satisfies Record<Item['type'], string[]>))

/** The fields of an item of a batch, of a batch, and of a single message, without those that depend on the type. */
const itemFields: ReadonlySet<string> = new Set(['type'])
const batchFields: ReadonlySet<string> = new Set(['to', 'group_id', 'user_id', 'platform', 'self_id', 'expires_in', 'messages', ...wishFields])
const singleFields: ReadonlySet<string> = new Set([...batchFields, 'type', 'at', 'reply_to'])

/** The fields of a callback's answer. */
export const replyFields: ReadonlySet<string> = new Set(['reply', 'messages', 'group_id', 'user_id'])

/** The most names of ignored fields that are reported, and their greatest length in characters. */
const maxIgnored = 20
const longestIgnored = 64
/** How many fields the error about a missing one names. */
const mostFound = 5

/**
 * The names of fields without a meaning in a valid request, such as `expire_in`, the `msg` of a picture, or `messages[3].caption` in an
 * item of a batch. Null and an empty text count as absent. The names are safe for a log line.
 */
export function ignoredFields(body: unknown): string[] {
  if (!isObject(body)) return []
  const names = unknownFields(body, knownFields(body))
  const { messages } = body
  if (!Array.isArray(messages)) return names
  for (const [index, item] of messages.entries()) {
    if (names.length >= maxIgnored) break
    if (isObject(item)) names.push(...unknownFields(item, itemFields, `messages[${index}].`))
  }
  return names.slice(0, maxIgnored)
}

function knownFields({ messages }: JsonObject): ReadonlySet<string> {
  return Array.isArray(messages) ? batchFields : singleFields
}

/**
 * Adds the fields without a meaning to the error about a missing one: callers know other interfaces, where `msg` is `text` and
 * `group_id` is `chat_id`. Which of the fields was meant is left to the caller.
 *
 * @param known as for `unknownFields`
 */
export function foundInstead(failure: Text, object: JsonObject, known: ReadonlySet<string>): Text {
  return tellFound(failure, unknownFields(object, known))
}

/** As {@link foundInstead}, with the names themselves. */
export function tellFound(failure: Text, names: readonly string[]): Text {
  return names.length > 0 ? say('found-instead', { failure, names: names.slice(0, mostFound).map(name => JSON.stringify(name)) }) : failure
}

/** @param known the known fields; if `type` is one of them, the fields of that type are known, too */
function unknownFields(object: JsonObject, known: ReadonlySet<string>, prefix?: string): string[] {
  const own = known.has('type') ? ownFields.get(object.type ?? 'text') : undefined
  const names: string[] = []
  for (const name of Object.keys(object)) {
    const isKnown = known.has(name) || own?.includes(name)
    if (!isKnown && object[name] !== null && object[name] !== '') names.push(name)
  }
  return names.length > 0 ? printNames(names, prefix) : names
}

/** Cuts a list of ignored names to 20, and makes each safe for a log line. */
export function printNames(names: readonly string[], prefix = ''): string[] {
  return names.slice(0, maxIgnored).map(name => printable((prefix + name).slice(0, longestIgnored)))
}

/** Items as callers write them, with the texts of errors. */
export function writeItems(items: readonly ParsedItem[]): unknown[] {
  return items.map(item => {
    if (item instanceof RelayError) return { error: item.code, msg: item.said }
    const { type } = item
    if (type === 'text') return { type, msg: item.text, ...item.line !== undefined && { line: item.line } }
    if (type === 'at') return { type, user_id: item.userId ?? everybody }
    if (type === 'reply') return { type, message_id: item.messageId }
    return { type, url: writeLink(item.link), ...item.name !== undefined && { name: item.name } }
  })
}

/** Reads the result of `writeItems`, parsed with `parseTexts`. An item that this release refuses becomes an error. */
export function readItems(stored: unknown): ParsedItem[] {
  if (!Array.isArray(stored)) return []
  return stored.map((value: unknown) => {
    const { error, msg, name, line }: JsonObject = isObject(value) ? value : {}
    if (isErrorCode(error) && isText(msg)) return new RelayError(error, msg)
    const item = parseItemSafely(value)
    if ('text' in item && typeof line === 'string') return { ...item, line }
    return 'link' in item && typeof name === 'string' ? { ...item, name } : item
  })
}

/**
 * Reads the answer of a command callback; `undefined` means no reply.
 *
 * @throws RelayError `bad-request` for a wrong target or shape. The error of an invalid item takes the place of the item.
 */
export function parseReply(body: JsonObject): Reply | undefined {
  const { reply } = body
  const messages = readMessages(body.messages ?? [])
  if (messages.length === 0) {
    if (reply === undefined || reply === null) return
    demand(typeof reply === 'string', mustBe('reply', say('string')))
    if (!reply.trim()) return
  }
  const items = parseItems(messages.length > 0 ? messages : [{ msg: reply }])
  // Unlike a request, an answer may name both a group and a user: the group wins.
  const group = parseId(body, 'group_id')
  const id = group ?? parseId(body, 'user_id')
  return { ...id !== undefined && { target: { kind: group === undefined ? 'private' : 'group', id } }, items }
}

/**
 * Reads the time to live of a message.
 *
 * @param fields their `expires_in` is a number of seconds, also a fraction; null counts as absent
 * @throws RelayError `bad-request`
 */
export function parseExpiry(fields: JsonObject): Pick<Content, 'expiresIn'> {
  const seconds = fields.expires_in ?? undefined
  if (seconds === undefined) return {}
  const isTime = typeof seconds === 'number' && seconds > 0 && seconds <= maxExpiry
  demand(isTime, say('expiry-rule', { most: maxExpiry }))
  return { expiresIn: seconds * 1000 }
}

/**
 * Reads when and how to send a message. Null and an empty text count as absent.
 *
 * @param isForm whether the fields come from a form or a query, where everything is text
 * @throws RelayError `bad-request`, which names the field
 */
export function parseWishes(fields: JsonObject, isForm = false): Wishes {
  const [urgent, at, thread, mode, severity, mention] = wishFields.map(name => fields[name] === '' ? undefined : fields[name] ?? undefined)
  return {
    ...urgent !== undefined && { urgent: readUrgent(urgent, isForm) },
    ...at !== undefined && { sendAt: readSendAt(at) },
    ...thread !== undefined && { thread: readThread(thread) },
    ...mode !== undefined && { threadMode: readMode(mode) },
    ...severity !== undefined && { severity: readSeverity(severity) },
    ...mention !== undefined && { mention: parseMentions(mention) },
  }
}

function readUrgent(value: unknown, isForm: boolean): boolean {
  if (typeof value === 'boolean') return value
  const found = isForm ? ['0', 'false', '1', 'true'].indexOf(String(value)) : -1
  demand(found >= 0, mustBe('urgent', isForm ? either('1', 'true', '0', 'false') : either('true', 'false')))
  return found > 1
}

/** A date-time with an offset (RFC 3339), or seconds from now. */
function readSendAt(value: unknown): SendAt {
  const written = typeof value === 'number' || typeof value === 'string' ? String(value).trim() : ''
  const now = Date.now()
  const at = /^\d+(\.\d+)?$/.test(written) ? now + Number(written) * 1000 : parseTime(written)
  demand(!Number.isNaN(at), say('send-at-rule'))
  demand(at <= now + longestAhead, say('send-at-late'))
  return { at: Math.round(at), written }
}

function readThread(name: unknown): string {
  demand(typeof name === 'string' && name.trim() !== '' && Array.from(name).length <= longestThread, mustBe('thread', say('short-text', { most: longestThread })))
  return name.toWellFormed()
}

function readMode(value: unknown): ThreadMode {
  const mode = threadModes.find(each => each === value)
  demand(mode !== undefined, mustBe('thread_mode', either(...threadModes)))
  return mode
}

function readSeverity(value: unknown): Severity {
  const severity = severities.find(each => each === value)
  demand(severity !== undefined, mustBe('severity', either(...severities)))
  return severity
}

/**
 * Reads an ID, which may be a whole number; `undefined` if there is none.
 *
 * @throws RelayError `bad-request`
 */
export function parseId(fields: JsonObject, name: string): string | undefined {
  const value = fields[name] ?? ''
  return value === '' ? undefined : readId(value, name)
}

function readId(value: unknown, name: string): string {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  demand(typeof value === 'string', say('id-type-rule', { name }))
  demand(value.length <= maxIdLength && value.trim() !== '' && !control.test(value), say('id-rule', { name, most: maxIdLength }))
  return value
}

/**
 * Reads the user of a mention; `null` stands for everybody.
 *
 * @throws RelayError `bad-request` for text that could be more than an ID: many adapters write the ID into their markup unescaped, and
 *   mentioning everybody requires a scope
 */
export function parseMentioned(id: string): string | null {
  demand(mentionable.test(id), say('mention-id-rule'))
  // Zero is everybody to go-cqhttp and Lagrange.
  demand(!/^[+-]?0+$/.test(id), say('zero-is-nobody', { everybody }))
  return id === everybody ? null : id
}

function readMessages(messages: unknown): readonly unknown[] {
  demand(Array.isArray(messages), mustBe('messages', say('array')))
  demand(messages.length <= maxItems, say('too-many-items', { most: maxItems }))
  return messages
}

/** Reads a list of items. A reply without a text, picture or mention is invalid, because no platform accepts it alone. */
function parseItems(values: readonly unknown[]): ParsedItem[] {
  const items = values.map(parseItemSafely)
  if (items.some(item => 'type' in item && ['text', 'image', 'at'].includes(item.type))) return items
  return items.map(item => 'messageId' in item ? new RelayError('bad-request', say('reply-alone')) : item)
}

function parseItemSafely(value: unknown): ParsedItem {
  try {
    demand(isObject(value), say('item-object'))
    return parseItem(value, false)
  } catch (error) {
    return RelayError.from(error)
  }
}

/** Reads a picture, video, voice message or file. */
const media = (type: MediaItem['type']) => ({ url }: JsonObject): Item => {
  demand(typeof url === 'string', mustBe('url', say('string')))
  return { type, link: parseLink(url) }
}

/** Reads an item of each type from its fields. */
const readers: ReadonlyMap<unknown, (fields: JsonObject) => Item> = new Map(Object.entries({
  text({ msg }) {
    demand(typeof msg === 'string', mustBe('msg', say('string')))
    demand(msg.trim() !== '', say('msg-blank'))
    // UTF-8 has no lone surrogates: the history of the platform would show U+FFFD.
    return { type: 'text', text: msg.toWellFormed() }
  },
  image: media('image'),
  file: fields => ({ ...media('file')(fields), ...readName(fields) }),
  video: media('video'),
  audio: media('audio'),
  at: ({ user_id: userId }) => ({ type: 'at', userId: parseMentioned(readId(userId, 'user_id')) }),
  reply: ({ message_id: messageId }) => ({ type: 'reply', messageId: readId(messageId, 'message_id') }),
} satisfies Record<Item['type'], (fields: JsonObject) => Item>))

/** @param isAlone whether the item is a single message: then it cannot be a mention or reply */
function parseItem(fields: JsonObject, isAlone: boolean): Item {
  const type = fields.type ?? 'text'
  const read = isAlone && (type === 'at' || type === 'reply') ? undefined : readers.get(type)
  demand(read !== undefined, say('type-rule'))
  const [needed = ''] = ownFields.get(type) ?? []
  if ((fields[needed] ?? '') === '') {
    throw new RelayError('bad-request', foundInstead(say('field-required', { field: needed, type: toText(type) }), fields, isAlone ? singleFields : itemFields))
  }
  return read(fields)
}

/** Puts the mentions (`at`) and the quotation (`reply_to`) of a single message before it. */
function addCompanions(main: Item, fields: JsonObject): Item[] {
  const messageId = parseId(fields, 'reply_to')
  const mentioned = [fields.at].flat().flatMap(at => parseId({ at }, 'at') ?? [])
  demand(mentioned.length <= maxItems, say('too-many-mentions', { most: maxItems }))
  const companions: Item[] = mentioned.map(id => ({ type: 'at', userId: parseMentioned(id) }))
  if (messageId !== undefined) companions.unshift({ type: 'reply', messageId })
  const isFit = companions.length === 0 || main.type === 'text' || main.type === 'image'
  demand(isFit, say('companions-rule'))
  return [...companions, main]
}

/** Reads the name of a file in the chat; by default it is the end of the link. */
function readName({ name }: JsonObject): Pick<MediaItem, 'name'> {
  if (!isSet(name)) return {}
  demand(typeof name === 'string', mustBe('name', say('string')))
  return { name: safeName(name) }
}
