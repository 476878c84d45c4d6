import type { RelayError } from '../errors'
import type { Language } from '../lib/language'

/** Where a message goes: a group (elsewhere called channel) or the private chat with a user. */
export interface Target { kind: 'group' | 'private', id: string }

/** A target, and where that was given its platform, such as `discord`, and the account that sends. */
export interface Address extends BotSelector { target: Target }

/** What a name for targets leads to. */
export interface Named {
  addresses: readonly Address[]
  /** Whether it was given as a list, however short. */
  isList: boolean
  /** The language of texts that the relay writes to it, where it has one of its own. */
  lang?: Language
  /** When its messages leave, where it says so. */
  policy?: Policy
  /** The ways to it, one after another; then it has no addresses of its own. */
  first?: Ladder
}

/** When messages to a name leave. What is urgent leaves at once. */
export interface Policy {
  /** The name. */
  name: string
  /** The shortest time between two messages, in milliseconds: what came meanwhile leaves as one. */
  digest?: number
  quiet?: Quiet
  /** As `Named.lang`. */
  lang?: Language
}

/** Hours in which nothing leaves, every day; over midnight where they begin after they end. */
export interface Quiet {
  /** Minutes after midnight. */
  from: number
  to: number
  /** The IANA name of the time zone. */
  zone: string
}

/** The ways to a name: a message goes by the first that takes it. */
export interface Ladder {
  rungs: readonly Rung[]
  /** For how long a rung may keep a message waiting, in milliseconds. */
  after: number
  /** What follows a rung that went unanswered. */
  whenUnknown: 'stop' | 'next'
}

/** A chat, a name for one, or an HTTP address. */
export type Rung = Address | { name: string } | HttpRung

/** An HTTP address that takes messages. */
export interface HttpRung {
  url: string
  /** Signs what is posted to it. */
  secret?: string
  /** The body that it expects; JSON of the relay's own unless given. */
  format?: 'apprise'
}

/** The platform of HTTP addresses: the ID of a target there is the name and the place of the rung, as in `oncall/2`. */
export const httpPlatform = 'http'

/** Names for targets, which can change while the relay runs. A name has no colon, which a target always has. */
export type TargetNames = ReadonlyMap<string, Named> & {
  /** Whether there may be more: those that were made while the relay ran are not read yet. */
  readonly isIncomplete?: boolean
}

/** Selects the bot that sends. */
export interface BotSelector { platform?: string, selfId?: string }

/** Where the bytes of a picture, video or file are. */
export type Link = RemoteLink | DataLink | UploadLink

/** An `http://` or `https://` link as given, with its scheme in lower case and its dot segments resolved. */
export interface RemoteLink { kind: 'remote', url: string }

/** Inline bytes in the standard alphabet of base64. */
export interface DataLink { kind: 'data', base64: string, mediaType?: string }

/** A file ID: `<uuid>/<file name>` below the upload directory. */
export interface UploadLink { kind: 'upload', id: string }

/** One thing to send. */
export type Item = TextItem | MediaItem | MentionItem | ReplyItem

/** Plain text: markup in it arrives letter for letter. */
export interface TextItem { type: 'text', text: string }

/** A picture, video, voice message or file. */
export interface MediaItem {
  type: 'image' | 'file' | 'video' | 'audio'
  link: Link
  /** The safe name of a file in the chat; by default the end of its link. */
  name?: string
}

/** A mention, which goes with the text or picture after it; `null` for everybody. */
export interface MentionItem { type: 'at', userId: string | null }

/** Makes the message around it the answer to another one. */
export interface ReplyItem { type: 'reply', messageId: string }

/** An item of a batch, or its error. */
export type ParsedItem = Item | RelayError

/** What a request says of when and how its message leaves. */
export interface Wishes {
  /** It passes digests and quiet hours. */
  urgent?: boolean
  sendAt?: SendAt
  /** Messages of one thread to one target belong together: as the caller names it. */
  thread?: string
  /** `reply` unless given. */
  threadMode?: ThreadMode
}

/** When a message joins its queue. */
export interface SendAt {
  /** In milliseconds since the epoch. */
  at: number
  /** In the words of the request. */
  written: string
}

/** How a later message of a thread goes on: it answers the first one, changes it, or takes the place of the last one. */
export const threadModes = ['reply', 'update', 'replace'] as const
export type ThreadMode = typeof threadModes[number]

/** How a text leaves that is longer than its platform takes: its beginning and all of it in a file, or several messages. */
export const longTexts = ['file', 'divide'] as const
export type LongText = typeof longTexts[number]

/** The content of a message, wherever it goes. */
export interface Content extends Wishes {
  /** Whether the answer tells of one message, or of each item of a list. */
  mode: 'single' | 'batch'
  /** The items of a single message go together, and none is an error. */
  items: readonly ParsedItem[]
  /** Time to live, in milliseconds. */
  expiresIn?: number
  /** How long texts leave by this door where the settings do not say: as they are unless given. Then each part has a result of its own. */
  longText?: LongText
}

/** Where a message goes, and through which bot. */
export interface Destination {
  target: Target
  bot: BotSelector
  /** The target in the caller's own words: only those who may send to a target learn what a name leads to. */
  asked: string
  /** The language of texts that the relay writes to it; absent where its name has none. */
  lang?: Language
  policy?: Policy
  /** The ways to it, where there are several; `target` and `bot` are the first. */
  route?: Route
}

/** A ladder whose rungs are addresses. */
export interface Route extends Omit<Ladder, 'rungs'> {
  /** The name that has it. */
  name: string
  rungs: readonly Address[]
}

/** Where a request goes. */
export interface Destinations {
  /** At least one, without duplicates. */
  list: readonly Destination[]
  /** Whether the answer is a list, however short. */
  isList: boolean
}

/** A message for one target. */
export interface MessageRequest extends Content, Pick<Destination, 'target' | 'bot' | 'policy' | 'route'> {}

/** The reply of a command callback, by default to the chat of the command. */
export interface Reply { target?: Target, items: ParsedItem[] }
