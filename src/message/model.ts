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
export type Item = TextItem | MediaItem

/** Plain text: whatever markup it holds arrives letter for letter. */
export interface TextItem {
  type: 'text'
  text: string
}

/** A picture, video or file. */
export interface MediaItem {
  type: 'image' | 'file' | 'video'
  link: Link
}

/** An item of a batch, or why it is none. */
export type ParsedItem = Item | RelayError

/** What a caller wants to be sent, read from its request. */
export interface MessageRequest {
  /** Whether the answer tells of one message, or of each item of a list. */
  mode: 'single' | 'batch'
  target: Target
  bot: BotSelector
  /** One for a single message, and that one is right; in a batch an item may be an error. */
  items: readonly ParsedItem[]
  /** After which time it is not to be delivered any more, in milliseconds. */
  expiresIn?: number
}

/** What a command callback wants to be sent. */
export interface Reply {
  /** Absent: to where the command came from. */
  target?: Target
  items: ParsedItem[]
}
