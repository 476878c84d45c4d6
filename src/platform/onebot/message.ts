import type { h } from 'koishi'
import { hash } from '../../lib/crypto'
import { unwrap } from '../../lib/koishi'
import { fieldsOf, isObject, toText, type JsonObject } from '../../lib/shape'
import type { Target } from '../../message/model'
import { readMessage, type Segment } from '../../message/segments'
import { cleanWording, forgive } from '../failure'
import { toPage } from '../history'
import { toMention, type IncomingSupport } from '../incoming'
import { SendError, type HistoryPage, type LoadedItem, type LoadedMedia, type Receipt } from '../port'
import { classify, withoutCall } from '../qq-answers'
import { unreadable } from '../web'

/** How an element becomes a segment: the type and the field of the segment, and the attribute of the element with the value. */
const forms: ReadonlyMap<string, readonly [type: string, field: string, attribute: string]> = new Map([
  ['text', ['text', 'text', 'content']],
  ['at', ['at', 'qq', 'id']],
  ['quote', ['reply', 'id', 'id']],
  ['img', ['image', 'file', 'src']],
  ['image', ['image', 'file', 'src']],
  ['video', ['video', 'file', 'src']],
  ['audio', ['record', 'file', 'src']],
])

/**
 * The segments of a message: an uploaded file is one segment of the type `file`.
 *
 * @param elements made of the items, also by other plugins
 * @returns `undefined` when another plugin has added an element that only the adapter's own encoder knows
 */
export function toSegments([item]: readonly LoadedItem[], elements: readonly h[]): Segment[] | undefined {
  const [element, ...more] = elements
  const isFile = item?.type === 'file' && element?.type === 'file' && element.attrs.src === item.src && more.length === 0
  if (isFile) return [toFileSegment(item)]
  const segments = elements.flatMap(toSegment)
  return segments.length === elements.length ? segments : undefined
}

/** The action and the parameters that send these segments. */
export function toCall({ kind, id, group }: Target, message: readonly Segment[]): [action: string, params: JsonObject] {
  const to = { [kind === 'group' ? 'group_id' : 'user_id']: toNumber(id), ...group && { group_id: toNumber(group) } }
  const [segment] = message
  if (segment?.type !== 'file') return [`send_${kind}_msg`, { ...to, message }]
  const { file, name } = segment.data
  return [`upload_${kind}_file`, { ...to, file, name }]
}

/** A segment in a list; an empty list for an element of another form. */
function toSegment({ type, attrs, children }: h): Segment[] {
  const [name = '', field = '', attribute = ''] = forms.get(type) ?? []
  const fields: JsonObject = attrs
  const value = type === 'at' && fields.type === 'all' ? 'all' : fields[attribute]
  if (typeof value !== 'string' || children.length > 0) return []
  return [{ type: name, data: { [field]: field === 'file' ? toFile(value) : value } }]
}

/** The size of inline data is known, that of a file on a disk or behind a link is not. */
function toFileSegment({ name, src, path }: LoadedMedia): Segment {
  const [head = ''] = inline.exec(src) ?? []
  const size = head && Buffer.byteLength(src.slice(head.length), 'base64')
  return { type: 'file', data: { name, file: path ?? toFile(src), size } }
}

const inline = /^data:[^,]*;base64,/i

/** The form in which OneBot takes bytes: implementations read `data:` differently, but all know `base64://`. */
function toFile(src: string): string {
  return src.replace(inline, 'base64://')
}

/**
 * The parts of a message that stay the same in the history of a platform. Platforms rename pictures and videos, change their links and
 * sizes, trim texts and break lines differently.
 */
export interface Content {
  /** Equal for equal texts and kinds of media in the same order. */
  digest: string
  files: readonly FileTraits[]
}

interface FileTraits {
  /** Implementations differ in the field with the name, so there may be several. */
  names: readonly string[]
  /** In bytes; `NaN` or 0 when the platform does not say. */
  size: number
}

/** Stands between the parts of a message. */
const border = '\0'

/**
 * Segments that implementations drop while they send the rest. NapCat forgets the IDs of messages when it starts, and knows 5,000;
 * neither it nor LuckyLilliaBot mentions anybody in a private chat. Sources: NapCatQQ `packages/napcat-onebot/api/msg.ts`,
 * `packages/napcat-common/src/message-unique.ts`; LuckyLilliaBot `src/onebot11/transform/message/outgoing.ts`.
 */
const omitted: ReadonlySet<string> = new Set(['at', 'reply'])

/** The content of a message made of these segments, for look-ups. Segments that may be dropped are left out. */
export function contentOf(segments: readonly Segment[]): Content {
  let words = ''
  const files: FileTraits[] = []
  for (const { type, data } of segments) {
    if (type === 'file') files.push(traitsOf(data))
    // Text is written as it is, because the platform may divide and merge texts; any other segment between borders.
    if (type === 'text') words += toText(data.text).replaceAll(border, '')
    else if (!omitted.has(type)) words += `${border}${type}${border}`
  }
  const parts = words.replace(/\r\n?/g, '\n').split(border)
  return { digest: hash(parts.map(part => part.trim()).join(border)), files }
}

/** The content of the `message` of an event or of a history, `undefined` when it is not a message. */
export function readContent(message: unknown): Content | undefined {
  const segments = readMessage(message)
  return segments && contentOf(segments)
}

/** Whether two messages look the same. Files are compared by their names and, where both are known, by their sizes. */
export function isSameContent(a: Content, b: Content): boolean {
  return a.digest === b.digest && a.files.every((file, index) => isSameFile(file, b.files[index]))
}

/** A text that is equal for messages that look the same, whatever the sizes of their files. */
export function likenessOf({ digest: parts, files }: Content): string {
  return files.length === 0 ? parts : hash([parts, ...files.map(({ names }) => names[0] ?? '')].join(border))
}

/** The name is in `file` (NapCat, LuckyLilliaBot), `name` (go-cqhttp) or `file_name` (Lagrange). */
function traitsOf({ name, file_name: fileName, file, file_size: fileSize, size }: JsonObject): FileTraits {
  return { names: [name, fileName, file].filter(text => typeof text === 'string'), size: Number(fileSize ?? size) }
}

function isSameFile(a: FileTraits, b: FileTraits | undefined): boolean {
  const hasSameSize = !a.size || !b?.size || a.size === b.size
  return hasSameSize && a.names.some(name => b?.names.includes(name))
}

/** Reads the report of a message that the bot's own account sent; `undefined` for any other event. */
export function readReport(event: JsonObject, selfId: string): { chat: string, id: string, content: Content } | undefined {
  // All events of a bot come here, so most of them fail this check.
  if (event.post_type !== 'message_sent' && event.post_type !== 'message') return
  const [id, target] = [toText(event.message_id), targetOf(event)]
  if (!id || !target.id || !isOwn(event, selfId)) return
  const content = readContent(event.message)
  return content && { chat: chatOf(target), id, content }
}

/** The name of a chat among those of a bot. */
export function chatOf({ kind, id }: Target): string {
  return `${kind} ${id}`
}

/**
 * Reads the history of a chat.
 *
 * @param asked the data of the answer to a question for it
 * @param content the content of the message that is looked for
 * @returns `undefined` when there is no history: the action is unknown, its data has an unknown form, or the last messages are missing
 * @throws SendError for any other failure, which may be a passing one
 */
export async function readHistory(asked: Promise<unknown>, selfId: string, content: Content): Promise<HistoryPage | undefined> {
  const data = await asked.catch(forgive('empty-chat', { messages: [] })).catch(forgive('unknown-action', undefined))
  const { messages } = fieldsOf(data)
  if (!Array.isArray(messages)) return
  // LuckyLilliaBot has `null` for a message that it leaves out.
  const all = messages.filter(isObject)
  // A private chat of Lagrange, which alone has a style, ends with the last message of the other side, and so may one of SnowLuma, which
  // alone leaves the bot's ID out: what is absent may have arrived. Sources: LagrangeDev/Lagrange.Core, branch v1,
  // `Lagrange.OneBot/Core/Operation/Message/GetFriendMessageHistoryOperation.cs`; SnowLuma/SnowLuma
  // `packages/onebot/src/modules/message-actions.ts`.
  const isPartial = ({ message_style: style, self_id: bot }: JsonObject): boolean => style !== undefined || bot === undefined
  if (all.some(message => message.message_type === 'private' && isPartial(message))) return
  // NapCat has the number that the server gave to a message; zero where it gave none. Others have no such field.
  const hasSequences = all.some(({ real_seq: sequence }) => sequence !== undefined)
  return toPage(all, {
    isOwn: message => isOwn(message, selfId),
    timeOf: ({ time }) => Number(toText(time) || NaN) * 1000,
    idOf: ({ message_id: id }) => toText(id),
    isEqual: ({ message }) => {
      const found = readContent(message)
      return found && isSameContent(found, content)
    },
    isSeen: ({ real_seq: sequence }) => !hasSequences || Number(toText(sequence)) > 0,
  })
}

/** Whether the bot's own account sent a message, here or on another device. */
function isOwn({ sender, user_id: userId }: JsonObject, selfId: string): boolean {
  return toText(fieldsOf(sender).user_id ?? userId) === selfId
}

/** The chat of a reported message. A report of a private one has the bot as its `user_id` and the other side as its `target_id`. */
function targetOf({ message_type: type, target_id: userId, group_id: groupId }: JsonObject): Target {
  return type === 'private' ? { kind: 'private', id: toText(userId) } : { kind: 'group', id: toText(groupId) }
}

/** Reads messages from OneBot 11. */
export const incomingOneBot: IncomingSupport = {
  readText: session => messageText(eventOf(session)),
  quoteOf: session => toText(readMessage(eventOf(session).message)?.find(({ type }) => type === 'reply')?.data.id),
  // OneBot's report of a message from another device of the account.
  isOwn: session => eventOf(session).post_type === 'message_sent',
  // NapCat has zero where the server gave no number.
  sequenceOf: session => toText(eventOf(session).real_seq).replace(/^0$/, ''),
  targetOf(session) {
    const { message_type: type, sub_type: subType, sender, user_id: userId, group_id: groupId } = eventOf(session)
    if (type !== 'private' || subType !== 'group') return
    // LuckyLilliaBot and go-cqhttp name the group within the sender, NapCat beside it.
    const group = toText(fieldsOf(sender).group_id ?? groupId)
    return { kind: 'private', id: toText(userId), ...group !== unknownGroup && { group } }
  },
}

/** NapCat names it in a temporary chat whose group it cannot find. */
const unknownGroup = '284840486'

/** The event that the adapter made a session of, without fields when the session is of another platform. */
export function eventOf(session: object): JsonObject {
  return fieldsOf(Reflect.get(unwrap(session), 'onebot'))
}

/**
 * The text of a OneBot message as the member typed it, with mentions as `@<id>`. It is read from the event and not from the elements of the
 * adapter, which inserts blanks next to pictures.
 *
 * @param event its `message` is an array of segments or a string with CQ codes
 * @returns `undefined` when the event has no such `message`
 */
export function messageText(event: unknown): string | undefined {
  return readMessage(fieldsOf(event).message)?.map(({ type, data }) => {
    if (type === 'text') return toText(data.text)
    return type === 'at' ? toMention(data.qq) : ''
  }).join('')
}

/**
 * Reads the data of the whole answer to a call.
 *
 * In OneBot 11 `status` and `retcode` say the same twice: `ok` and 0, `async` and 1, or `failed` and another number. The answer counts when
 * `retcode` is a number and `status`, if present, agrees with it. Only with `failed` is 1 a failure. A failed upload of Lagrange has its
 * reason in place of the status.
 * Sources: https://github.com/botuniverse/onebot-11/blob/master/communication/http.md; LagrangeDev/Lagrange.Core, branch v1,
 * `Lagrange.OneBot/Core/Operation/File/UploadGroupFileOperation.cs`
 *
 * @throws SendError for a failure; `unanswered` for an answer that is neither a success nor a failure
 */
export function readData(answer: unknown): unknown {
  const { status: given, retcode, data, wording, message, msg } = fieldsOf(answer)
  // Without a status the code alone counts.
  const status = given ?? ''
  if (retcode === 0 && (status === 'ok' || status === '')) return data
  const code = Number.isInteger(retcode) ? Number(retcode) : 0
  const isFailure = code !== 0 && (status === 'failed' || (typeof status === 'string' && status !== 'ok' && code !== 1))
  if (!isFailure) throw unreadable()
  const texts = [wording, message, msg, status === 'failed' ? '' : status].map(toText).filter(Boolean).map(withoutCall)
  const { outcome = 'refused', cause: causeId, isFinal } = classify(code, texts.join('\n')) ?? {}
  if (outcome === 'sent') return
  throw new SendError(outcome, cleanWording(texts[0] ?? '') ?? `retcode ${code}`, { causeId, isFinal })
}

/** Reads the answer to a send. @throws SendError */
export function readReceipt(answer: unknown): Receipt {
  const id = toText(fieldsOf(readData(answer)).message_id)
  return { messageIds: id === '' ? [] : [id] }
}

/** An ID as a number where that is exact: implementations differ in whether they accept a text. */
export function toNumber(id: string): number | string {
  const number = Number(id)
  return Number.isSafeInteger(number) ? number : id
}
