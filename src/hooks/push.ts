// The fields of services for push messages besides title and text: Bark, Gotify, ntfy, PushDeer, Pushover, PushPlus, Server酱, Telegram,
// WxPusher.
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject } from '../lib/shape'
import { address, headerText, linked, line, object, objects, parsed, textOf } from './fields'
import { withEmoji } from './markup'
import type { Severity } from '../message/model'
import { markOfColor, markOfWord, ratingOfPriority, severityIn, severityOfWord } from './marks'

/** The fields with a link, and those with its name. */
const links = [
  ['url', 'url_title'], ['link', ''], ['click', ''], ['attach', 'filename'], ['image', ''], ['photo', ''], ['video', ''], ['document', ''], ['audio', ''],
] as const

/** The fields with a severity, the best first. */
const severities = ['severity', 'level', 'status', 'state', 'type']

/** Fields that say how to deliver, and those for machines, in small letters and without `_` and `-`. */
const controls = new Set(`
  actions appid archive async attachmentbase64 attachments attachmenttype autocopy automaticallycopy avatar avatarurl badge cache call
  callback callbackurl channel chatid ciphertext contenttype copy date delay delete devicekeys disablenotification
  disablewebpagepreview email encoding encrypted entities expire extras filename firebase format group groupid html htmlcontent icon
  iconemoji iconurl id isarchive iv linkpreviewoptions markdown messageid messagethreadid messagetype monospace msgtype noip
  notificationid number openid option parsemode phonenumber priority protectcontent recipients rendermode replymarkup
  reportingcontroller reportinginstance retry sequenceid short sign signatureversion signingcerturl sound spt sptlist tag tags target
  template time timestamp to topic topicarn topicids ttl uids unsubscribeurl urltitle userid username uuid verifypay verifypaytype
  volume webhook`.trim().split(/\s+/))

/** Values that name a kind of markup, and random ones, such as the key of a user. */
const saysNothing = /^(?:markdown|md|html|text|txt|plain|json|note|link|image)$|^(?=\D{0,100}\d)[A-Za-z\d]{28,}$/i

/** The longest text with actions, in UTF-16 units. */
const maxActions = 4000
/** The most links of a message. */
const maxLinks = 20
/** The most tags that are read. */
const maxTags = 20

/** The shortest value that is looked for in the text, in UTF-16 units: a shorter one may be there by chance. */
const minRepeated = 12
/** The most fields that are looked at, and how much of the text. */
const maxFields = 2000
const maxSaid = 4000

/** The headers of ntfy, in UTF-8 or encoded by RFC 2047, as fields. */
export function fieldsOfHeaders(headers: IncomingHttpHeaders): JsonObject {
  const read = (...names: readonly string[]): string => textOf(headerText(headers, ...names))
  return {
    title: read('x-title', 'title', 'ti', 't'), message: read('x-message', 'message', 'm'), click: read('x-click', 'click'),
    attach: read('x-attach', 'attach'), actions: read('x-actions', 'actions', 'action'), tags: read('x-tags', 'tags', 'tag', 'ta'),
    priority: read('x-priority', 'priority', 'prio', 'p'),
  }
}

/** The links of a message, each `name (url)`, by the names of their fields. */
export function linksOf(fields: JsonObject): [name: string, link: string][] {
  const { actions, extras, reply_markup: markup } = fields
  const { click, bigImageUrl } = object(object(extras)['client::notification'])
  const { inline_keyboard: rows } = object(parsed(markup))
  const buttons = [
    { url: object(click).url }, { url: bigImageUrl },
    // Other actions of ntfy than `view` are calls of an interface.
    ...actionsOf(actions).filter(({ action = 'view' }) => action === 'view'),
    ...Array.isArray(rows) ? rows.flatMap(row => objects(row)) : [],
  ]
  return [
    ...links.map(([name, title]): [string, string, string] => [name, line(fields[title]), address(fields[name])]),
    ...buttons.map(({ label, text, url }): [string, string, string] => ['', line(label ?? text), address(url)]),
  ].flatMap(([name, title, url]): [string, string][] => url === '' ? [] : [[name, linked(title, url)]]).slice(0, maxLinks)
}

/** The actions of ntfy: a list, JSON as text, or its short syntax: `view, "Open it", https://example.com; http, …`. */
function actionsOf(value: unknown): JsonObject[] {
  if (typeof value !== 'string' || /^\s*\[/.test(value)) return objects(parsed(value))
  return split(value.slice(0, maxActions), ';').map(action => Object.fromEntries(split(action, ',').map((part, index) => {
    const [, name = ['action', 'label', 'url'][index] ?? '', text = ''] = /^(?:([\w.-]{1,40})\s*=)?\s*(.*)$/s.exec(part) ?? []
    return [name.toLowerCase(), text.replace(/^(["'])(.*)\1$/s, '$2')]
  })))
}

/** Splits a text at a mark that is not inside quotes. */
function split(text: string, mark: ',' | ';'): string[] {
  const parts = text.match(mark === ',' ? /(?:"[^"]*"|'[^']*'|[^,"'])+/g : /(?:"[^"]*"|'[^']*'|[^;"'])+/g) ?? []
  return parts.map(part => part.trim())
}

/** The first field with a severity, its mark, which is empty for an ordinary one, and the severity. */
export function severityOf(fields: JsonObject, headers: JsonObject): [name: string, mark: string, severity: Severity | undefined] {
  // The scales of ntfy, Pushover and Gotify.
  const [high, highest] = 'topic' in fields || headers.priority !== '' ? [4, 5] as const : 'user' in fields ? [1, 2] as const : [8, 10] as const
  const rating = ratingOfPriority(fields.priority, high, highest)
  const tags = tagsOf(fields.tags)
  const tagged = tags.map(markOfTag).join('')
  if (tagged !== '') {
    const severity = tags.flatMap(tag => severityOfWord(tag) ?? [])[0] ?? severityIn(tagged) ?? rating?.severity
    return ['tags', tagged, severity !== 'ok' && rating?.severity === 'critical' ? 'critical' : severity]
  }
  for (const name of severities) {
    const mark = markOfWord(fields[name])
    if (mark !== undefined) return [name, mark, severityOfWord(fields[name])]
  }
  const color = markOfColor(fields.color ?? fields.themecolor)
  if (color !== '') return ['color', color, severityIn(color)]
  return ['priority', rating?.mark ?? '', rating?.severity]
}

/** The tags of ntfy that are no emoji: its apps list them below the message. */
export function wordsOf(tags: unknown): string {
  // A name with `_` is that of an emoji which is not known.
  return tagsOf(tags).filter(tag => !tag.includes('_') && markOfTag(tag) === undefined).join(', ')
}

/** The emoji that a tag names, or the mark of its word; `undefined` for any other tag. */
function markOfTag(tag: string): string | undefined {
  const emoji = withEmoji(`:${tag}:`)
  return emoji === `:${tag}:` ? markOfWord(tag) : emoji
}

function tagsOf(tags: unknown): string[] {
  return (Array.isArray(tags) ? tags.slice(0, maxTags) : textOf(tags).split(',', maxTags)).map(tag => line(tag)).filter(tag => tag !== '')
}

/**
 * The fields that tell what a message is about: neither read already, nor for the service, nor random.
 *
 * @param said what the message says; a value in it is not repeated
 */
export function othersOf(payload: JsonObject, used: ReadonlySet<string>, said: string): JsonObject {
  const start = said.slice(0, maxSaid)
  return Object.fromEntries(Object.entries(payload).slice(0, maxFields).filter(([key, value]) => {
    const name = key.toLowerCase()
    if (used.has(name) || controls.has(name.replace(/[_-]/g, ''))) return false
    if (typeof value !== 'string') return true
    return !saysNothing.test(value.slice(0, 200)) && (value.length < minRepeated || !start.includes(value))
  }))
}

/** The object that an event of Kubernetes or Flux is about, as Flux writes it, and the reason: `deployment/shop.apps Unhealthy`. */
export function objectOf({ involvedobject: involved, regarding, reason }: JsonObject): string {
  const { kind, name, namespace } = object(involved ?? regarding)
  const whole = [line(name), line(namespace)].filter(each => each !== '').join('.')
  return whole === '' ? '' : `${line(kind).toLowerCase()}/${whole} ${line(reason)}`.trim()
}
