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
}

/** Names for targets, which can change while the relay runs. A name has no colon, which a target always has. */
export type TargetNames = ReadonlyMap<string, Named>

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

/** The content of a message, wherever it goes. */
export interface Content {
  /** Whether the answer tells of one message, or of each item of a list. */
  mode: 'single' | 'batch'
  /** The items of a single message go together, and none is an error. */
  items: readonly ParsedItem[]
  /** Time to live, in milliseconds. */
  expiresIn?: number
}

/** Where a message goes, and through which bot. */
export interface Destination {
  target: Target
  bot: BotSelector
  /** The target in the caller's own words: only those who may send to a target learn what a name leads to. */
  asked: string
  /** The language of texts that the relay writes to it; absent where its name has none. */
  lang?: Language
}

/** Where a request goes. */
export interface Destinations {
  /** At least one, without duplicates. */
  list: readonly Destination[]
  /** Whether the answer is a list, however short. */
  isList: boolean
}

/** A message for one target. */
export interface MessageRequest extends Content { target: Target, bot: BotSelector }

/** The reply of a command callback, by default to the chat of the command. */
export interface Reply { target?: Target, items: ParsedItem[] }
