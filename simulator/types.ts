/** The OneBot implementation whose behaviour is imitated; the differences are in `profiles.ts`. */
export type ProfileName = 'napcat' | 'llbot' | 'lagrange' | 'gocqhttp'

/** One part of a OneBot message, `{ type, data }`. */
export interface Segment { type: string, data: Record<string, unknown> }

/** Somebody on the platform. `id` is decimal. */
export interface Person { id: string, name: string }

/** Where a message goes: a group, or a person by their account. */
export interface Target { type: 'group' | 'private', id: string }

/** How the bot referred to a medium: `file://` URL, bare path, `base64://`, `data:` URL or http(s) link. */
export type MediaForm = 'file' | 'path' | 'base64' | 'data' | 'http'

/** A medium as it arrived. Size (bytes) and SHA-256 (hex) are of the bytes really read; null for a link that must not be fetched. */
export interface DeliveredMedia {
  type: 'image' | 'video' | 'record' | 'file'
  name: string
  size: number | null
  sha256: string | null
  source: MediaForm
}

/** One thing that reached a chat. Tests assert on these rather than on answers. */
export interface LedgerEntry {
  /** Order of delivery, from 1. */
  seq: number
  /** Milliseconds since the epoch. */
  time: number
  target: Target
  kind: 'message' | 'file'
  /** Null for files. */
  messageId: number | null
  /** OneBot action that caused it. */
  action: string
  /** The text segments, joined. */
  text: string
  /** As received, without those that a mixing rule dropped. */
  segments: Segment[]
  media: DeliveredMedia[]
}

/** One call as received. `time` in milliseconds since the epoch. */
export interface Call { action: string, params: Record<string, unknown>, echo: unknown, time: number }

/** A send that was refused: where it was to go (null when it did not say), when, and the answer's code and words, which may be empty. */
export interface Refusal { target: Target | null, time: number, retcode: number, wording: string }

/** What goes wrong with a call; see `dispatcher.ts` for the order of events. */
export type Fault
  /** Nothing delivered, failure answer; by default the profile's execution error. */
  = | { kind: 'refuse', retcode?: number, wording?: string }
  /** Refused as the profile words it: the bot is muted in the group, is not in it, sends too fast for it, or its account is logged out. */
    | { kind: 'muted' | 'not-member' | 'too-fast' | 'logged-out' }
  /** Taken, but seen by nobody: it stands in the bot's own history only, and the answer is that of the profile for it. */
    | { kind: 'swallowed' }
  /** Not delivered, never answered. */
    | { kind: 'silent' }
  /** Delivered, never answered. */
    | { kind: 'lost-answer' }
  /**
   * Answered after `ms`, or not even then if `answered` is false. Delivered at once (default); or only then, in which case later calls
   * may overtake it, and it is delivered although the connection that brought it has been closed; or never, and the answer is a refusal.
   */
    | { kind: 'late', ms: number, delivered?: 'now' | 'then' | 'never', answered?: boolean }
  /** The profile's "outcome unknown" failure; really delivered when asked to (default: not). */
    | { kind: 'timeout', delivered?: boolean }
  /** Delivered, the answer sent twice. */
    | { kind: 'duplicate-answer' }
  /** Delivered at once, the answer held back until a later call on the same connection has been answered. */
    | { kind: 'hold' }
  /** Connection closed before the delivery, between delivery and answer, or after the answer. */
    | { kind: 'close', when: 'before' | 'delivered' | 'answered' }
  /** Delivered, answered ok with null data. */
    | { kind: 'null-data' }
  /** Delivered (unless told not to), then answered with exactly this and the echo. */
    | { kind: 'answer', answer: Readonly<Record<string, unknown>>, delivered?: boolean }

/** When a fault strikes. Rules are tried in order of registration; the first live one that matches wins. */
export interface FaultRule {
  fault: Fault
  /** Default: `/^(send_|upload_)/`. */
  action?: string | RegExp
  /** Group or user id. */
  target?: string
  match?: (call: Call) => boolean
  /** How often it strikes; default 1, `Infinity` allowed. */
  times?: number
}

/** A registered fault. */
export interface FaultHandle { readonly hits: number, remove(): void }

/** Something a member says. */
export interface Saying {
  /** Absent: a private message of `user`. */
  group?: string
  user: string
  text?: string
  segments?: Segment[]
  /** Default: a fresh positive one. Negative ones exist on real platforms. */
  messageId?: number
  /** OneBot `sub_type`; `group` without `group` (and with `raw.target_id`) is a temporary private session. */
  subType?: string
  /** Sent by the bot's own account elsewhere: a `message_sent` event. In private, `user` is the partner. */
  selfMessage?: boolean
  /** Message id replied to. */
  replyTo?: number
  /** Merged over the event. */
  raw?: Record<string, unknown>
}
