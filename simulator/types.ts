/** The OneBot implementation that is imitated. `profiles.ts` has the differences. */
export type ProfileName = 'napcat' | 'llbot' | 'lagrange' | 'gocqhttp'

/** One part of a OneBot message, `{ type, data }`. */
export interface Segment { type: string, data: Record<string, unknown> }

/**
 * A person on the platform. `id` is decimal; `card` is the name in a group, if the person has one there. `english` is the name on the
 * English page, if it is another one.
 */
export interface Person { id: string, name: string, card?: string, english?: string }

/** The target of a message: a group, or a person by account. */
export interface Target { type: 'group' | 'private', id: string }

/** How the bot referred to a medium: `file://` URL, bare path, `base64://`, `data:` URL or http(s) link. */
export type MediaForm = 'file' | 'path' | 'base64' | 'data' | 'http'

/** A medium as it arrived. Size (bytes) and SHA-256 (hex) are of the bytes read; null for a link that must not be fetched. */
export interface DeliveredMedia {
  type: 'image' | 'video' | 'record' | 'file'
  name: string
  size: number | null
  sha256: string | null
  source: MediaForm
}

/** A message or file that reached a chat. Tests assert on these rather than on answers. */
export interface LedgerEntry {
  /** Order of delivery, from 1. */
  seq: number
  /** Milliseconds since the epoch. */
  time: number
  target: Target
  kind: 'message' | 'file'
  /** Null for files. */
  messageId: number | null
  /** The OneBot action of the call. */
  action: string
  /** The text segments, joined. */
  text: string
  /** As received, without segments that a mixing rule dropped. */
  segments: Segment[]
  media: DeliveredMedia[]
}

/** One call as received. `time` in milliseconds since the epoch. */
export interface Call { action: string, params: Record<string, unknown>, echo: unknown, time: number }

/** A refused send: its target (null if it named none), its time, and the code and wording of the answer, which may be empty. */
export interface Refusal { target: Target | null, time: number, retcode: number, wording: string }

/** What goes wrong with a call. `dispatcher.ts` has the order of events. */
export type Fault
  /** Not delivered, answered with a failure; by default the profile's execution error. */
  = | { kind: 'refuse', retcode?: number, wording?: string }
  /**
   * Refused with the profile's wording: the bot is muted in the group, is not in it, sends too fast for it, or its account is logged out.
   */
    | { kind: 'muted' | 'not-member' | 'too-fast' | 'logged-out' }
  /** Accepted, but visible only in the bot's own history. The answer is the profile's for this case. */
    | { kind: 'swallowed' }
  /** Not delivered, never answered. */
    | { kind: 'silent' }
  /** Delivered, never answered. */
    | { kind: 'lost-answer' }
  /**
   * Answered after `ms`, or never if `answered` is false. Delivered at once (default), or only after `ms`, or never, with a refusal as the
   * answer. In the second case later calls may overtake it, and it is delivered even if its connection has been closed.
   */
    | { kind: 'late', ms: number, delivered?: 'now' | 'then' | 'never', answered?: boolean }
  /** Answered with the profile's "outcome unknown" failure; delivered only if requested. */
    | { kind: 'timeout', delivered?: boolean }
  /** Delivered, answered twice. */
    | { kind: 'duplicate-answer' }
  /** Delivered at once. The answer is held until a later call on the same connection has been answered. */
    | { kind: 'hold' }
  /** The connection is closed before the delivery, between delivery and answer, or after the answer. */
    | { kind: 'close', when: 'before' | 'delivered' | 'answered' }
  /** Delivered, answered ok with null data. */
    | { kind: 'null-data' }
  /** Delivered (by default), then answered with exactly this and the echo. */
    | { kind: 'answer', answer: Readonly<Record<string, unknown>>, delivered?: boolean }

/** When a fault applies. Rules are tried in the order of registration, and the first live one that matches applies. */
export interface FaultRule {
  fault: Fault
  /** Default: `/^(send_|upload_)/`. */
  action?: string | RegExp
  /** Group or user id. */
  target?: string
  match?: (call: Call) => boolean
  /** How often the fault applies; default 1, `Infinity` allowed. */
  times?: number
}

/** A registered fault. */
export interface FaultHandle { readonly hits: number, remove(): void }

/** A reaction of a member to a message in a group, or the end of one. */
export interface Reacting {
  user: string
  messageId: number
  /** QQ's ID of the emoji, such as `128064`. */
  emoji: string
  /** Default true. */
  isAdded?: boolean
  /** Fields that override those of the notice. */
  raw?: Record<string, unknown>
}

/** A message of a member. */
export interface Saying {
  /** Absent: a private message of `user`. */
  group?: string
  user: string
  text?: string
  segments?: Segment[]
  /** Default: a fresh positive one. Real platforms also have negative ones. */
  messageId?: number
  /** OneBot `sub_type`; `group` without `group` (and with `raw.target_id`) is a temporary private session. */
  subType?: string
  /** Sent from the bot's own account elsewhere: a `message_sent` event. In a private chat, `user` is the partner. */
  selfMessage?: boolean
  /** The ID of the message that is replied to. */
  replyTo?: number
  /** Fields that override those of the event. */
  raw?: Record<string, unknown>
}
