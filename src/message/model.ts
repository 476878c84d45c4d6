import type { RelayError } from '../errors'

/** Where a message goes: a group (a channel, on other platforms) or the private chat with a user. */
export interface Target {
  kind: 'group' | 'private'
  id: string
}

/** A target, and the platform that it is on where that was said. */
export interface Address {
  target: Target
  /** As Koishi names it, such as `discord`. */
  platform?: string
}

/** What a name for targets leads to. */
export interface Named {
  addresses: readonly Address[]
  /** Whether it was given as a list, however many are in it. */
  isList: boolean
  /** The account that is to send. */
  selfId?: string
}

/** Names for targets. A name has no colon, so that it is never taken for a target. */
export type TargetNames = ReadonlyMap<string, Named>

/** Which bot is to send, where several are online. */
export interface BotSelector {
  platform?: string
  selfId?: string
}

/** Where the bytes of a picture, video or file are. */
export type Link = RemoteLink | DataLink | UploadLink

/** `http://` or `https://`, as given but for the case of the scheme and for dot segments, which are resolved. */
export interface RemoteLink {
  kind: 'remote'
  url: string
}

/** Bytes that came along. */
export interface DataLink {
  kind: 'data'
  /** In the standard alphabet. */
  base64: string
  /** The media type, where one was given. */
  mediaType?: string
}

/** A file ID: `<uuid>/<file name>` below the upload directory. */
export interface UploadLink {
  kind: 'upload'
  id: string
}

/** One thing to send. */
export type Item = TextItem | MediaItem | MentionItem | ReplyItem

/** Plain text: whatever markup it holds arrives letter for letter. */
export interface TextItem {
  type: 'text'
  text: string
}

/** A picture, video, voice message or file. */
export interface MediaItem {
  type: 'image' | 'file' | 'video' | 'audio'
  link: Link
  /** What a file is shown as, fit for that; otherwise it has the name that its link ends with. */
  name?: string
}

/** A mention, which goes with the text or picture that follows it. */
export interface MentionItem {
  type: 'at'
  /** `null` for everybody. */
  userId: string | null
}

/** What makes the message that it is in the answer to another one. */
export interface ReplyItem {
  type: 'reply'
  messageId: string
}

/** An item of a batch, or why it is none. */
export type ParsedItem = Item | RelayError

/** What a caller wants to be sent, wherever it goes. */
export interface Content {
  /** Whether the answer tells of one message, or of each item of a list. */
  mode: 'single' | 'batch'
  /** Those of a single message are right and go together; in a batch an item may be an error. */
  items: readonly ParsedItem[]
  /** After which time it is not to be delivered any more, in milliseconds. */
  expiresIn?: number
}

/** Where a message goes, and through which bot. */
export interface Destination {
  target: Target
  bot: BotSelector
  /** The target in the caller's own words: what a name leads to is told to nobody who may not send there. */
  asked: string
}

/** Where a request goes. */
export interface Destinations {
  /** At least one, without doubles. */
  list: readonly Destination[]
  /** Whether the caller is answered with a list, however many are in it. */
  isList: boolean
}

/** What is to be sent to one target. */
export interface MessageRequest extends Content {
  target: Target
  bot: BotSelector
}

/** What a command callback wants to be sent. */
export interface Reply {
  /** Absent: to where the command came from. */
  target?: Target
  items: ParsedItem[]
}
