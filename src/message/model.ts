import type { RelayError } from '../errors'
import type { Language } from '../texts/language'

/** The chat for a message: a group (a channel, on some platforms) or the private chat with a user. */
export interface Target {
  kind: 'group' | 'private'
  id: string
  /** The group of a temporary chat, without which OneBot does not reach its user. It is no part of the identity, and is not kept. */
  group?: string
}

/** A target, and optionally its platform, such as `discord`, and the account that sends. */
export interface Address extends BotSelector { target: Target }

/** The value of a name. */
export interface Named {
  addresses: readonly Address[]
  /** Whether it was written as a list, even of one target. */
  isList: boolean
  /** The language of the relay's texts for it; absent for the default. */
  lang?: Language
  /** When its messages are sent; absent for at once. */
  policy?: Policy
  /** Its ways, tried one after the other; with them, `addresses` is empty. */
  first?: Ways
  /** Who is called by `@`. */
  mention?: Mentions
  /** Makes incidents of its threads. */
  ack?: Ack
}

/** How bad an event is, the worst first; `ok` for the end of what was wrong. */
export const severities = ['critical', 'warning', 'info', 'ok'] as const
export type Severity = typeof severities[number]

/** Whom a message calls by `@`, by its severity: the names of people and rotas, or `all`. */
export type Mentions = Partial<Readonly<Record<Severity, readonly string[]>>>

/** The rules for the incidents of a name. Times are in milliseconds. */
export interface Ack {
  /** The least severity of an event that begins an incident. */
  from: Exclude<Severity, 'ok'>
  /** The people and rotas who may act; absent for everybody in the chat. */
  who?: readonly string[]
  /** How often an owner is reminded. */
  remind?: number
  /** What happens while nobody acts. */
  escalate: readonly Step[]
}

/** A step of an escalation. */
export interface Step {
  /** When it is due, counted from the acceptance of the first message. Each step is due later than the one before. */
  after: number
  /** Whom it calls by `@`. */
  mention: readonly string[]
  /** The target or name it is sent to; absent for the chats of the incident. */
  to?: string
  /** How often the last step is repeated. */
  again?: number
}

/** When messages to a name are sent. Urgent ones are sent at once. */
export interface Policy {
  /** The name. */
  name: string
  /** The shortest time between two messages, in milliseconds: the messages in between are sent as one. */
  digest?: number
  quiet?: Quiet
  /** Whether a message is in the file before it is sent, even if its caller waits, while the file can be written. */
  durable?: boolean
  /** Equals `Named.lang`. */
  lang?: Language
}

/** Daily hours in which nothing is sent; they span midnight if `from` is after `to`. */
export interface Quiet {
  /** Minutes after midnight. */
  from: number
  to: number
  /** The IANA name of the time zone. */
  zone: string
}

/** The ways of a name: a message is sent by the first one that accepts it. */
export interface Ways {
  ways: readonly Way[]
  /** How long a message may wait for one way before the next is tried, in milliseconds. */
  after: number
  /** What to do after a way that did not answer. */
  whenUnknown: 'stop' | 'next'
}

/** One way: a chat, a name that leads to one, or an HTTP address. */
export type Way = Address | { name: string } | HttpWay

/** An HTTP address that accepts messages. */
export interface HttpWay {
  url: string
  /** Signs the posted messages. */
  secret?: string
  /** The format of the body; by default the relay's own JSON. */
  format?: 'apprise'
}

/** The platform of HTTP addresses. The ID of a target there is the name and the place of the way, as in `oncall/2`. */
export const httpPlatform = 'http'

/** The names of targets, which can change while the relay runs. A name never contains a colon, a target always does. */
export interface TargetNames {
  get: (name: string) => Named | undefined
  /** Why the names that were made while the relay ran are missing. */
  readonly failure?: Error | undefined
}

/** Selects the bot that sends. */
export interface BotSelector { platform?: string, selfId?: string }

/** The location of the bytes of a picture, video or file. */
export type Link = RemoteLink | DataLink | UploadLink

/** An `http://` or `https://` link as given, with its scheme in lower case and its dot segments resolved. */
export interface RemoteLink { kind: 'remote', url: string }

/** Inline bytes in the standard alphabet of base64. */
export interface DataLink { kind: 'data', base64: string, mediaType?: string }

/** A file ID: `<uuid>/<file name>` below the upload directory. */
export interface UploadLink { kind: 'upload', id: string }

/** One element of a message. */
export type Item = TextItem | MediaItem | MentionItem | ReplyItem

/** Plain text: markup in it arrives literally. */
export interface TextItem {
  type: 'text'
  text: string
  /** What a digest shows of it; by default all of it, in one line. */
  line?: string
}

/** A picture, video, voice message or file. */
export interface MediaItem {
  type: 'image' | 'file' | 'video' | 'audio'
  link: Link
  /** The safe name of a file in the chat; by default the end of its link. */
  name?: string
}

/** A mention, sent together with the text or picture after it; `null` mentions everybody. */
export interface MentionItem { type: 'at', userId: string | null }

/** Makes the message that contains it a reply to another one. */
export interface ReplyItem { type: 'reply', messageId: string }

/** An item of a batch, or its error. */
export type ParsedItem = Item | RelayError

/** When and how to send the message of a request. */
export interface Wishes {
  severity?: Severity
  /** Whom to call by `@`, in place of what the name says. */
  mention?: Mentions
  /** Skips digests and quiet hours. */
  urgent?: boolean
  sendAt?: SendAt
  /** The caller's name of a thread, which groups messages to one target. */
  thread?: string
  /** `reply` by default. */
  threadMode?: ThreadMode
  threadPhase?: ThreadPhase
  /**
   * When what is wrong began: in the same thread, a later one in alphabetical order means that it began anew, and an empty one that it
   * goes on. Absent if the source does not say.
   */
  begunAt?: string
}

/** When a message joins its queue. */
export interface SendAt {
  /** In milliseconds since the epoch. */
  at: number
  /** As written in the request. */
  written: string
}

/** What an event means for its thread: something is wrong, or over. What goes wrong after that starts the thread anew. */
export const threadPhases = ['on', 'over'] as const
export type ThreadPhase = typeof threadPhases[number]

/** What a later message of a thread does: reply to the first one, update it, or replace the last one. */
export const threadModes = ['reply', 'update', 'replace'] as const
export type ThreadMode = typeof threadModes[number]

/** How to send a text that is too long for its platform: its beginning and a file with the whole text, or several messages. */
export const longTexts = ['file', 'divide'] as const
export type LongText = typeof longTexts[number]

/** The content of a message, without its target. */
export interface Content extends Wishes {
  /** Whether the answer is about one message, or about each item of a list. */
  mode: 'single' | 'batch'
  /** The items of a single message are sent together, and none is an error. */
  items: readonly ParsedItem[]
  /** Time to live, in milliseconds. */
  expiresIn?: number
  /** How this door sends long texts, if the settings do not say; each part then has its own result. By default they stay as they are. */
  longText?: LongText
}

/** The target of a message, and the bot that sends it. */
export interface Destination {
  target: Target
  bot: BotSelector
  /** The target as the caller wrote it. Errors quote this, so that they do not reveal the targets of a name. */
  asked: string
  /** The language of the relay's texts for it; absent if its name has none. */
  lang?: Language
  policy?: Policy
  /** The ways, if its name has several; `target` and `bot` are the first. */
  route?: Route
}

/** The ways of a name, resolved to addresses. */
export interface Route extends Omit<Ways, 'ways'> {
  /** The name. */
  name: string
  ways: readonly Address[]
}

/** The destinations of a request. */
export interface Destinations {
  /** At least one, without duplicates. */
  list: readonly Destination[]
  /** Whether the answer is a list, even for one destination. */
  isList: boolean
}

/** A message for one target. */
export interface MessageRequest extends Content, Pick<Destination, 'target' | 'bot' | 'policy' | 'route'> {}

/** The reply of a command callback; by default it goes to the chat of the command. */
export interface Reply { target?: Target, items: ParsedItem[] }
