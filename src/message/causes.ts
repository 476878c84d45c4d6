import { clauses, say, words, type Text } from '../texts/text'

/**
 * The scope of a failure, and so its meaning for the next messages:
 * - `message`: another message to the same chat may succeed.
 * - `chat-closed`: the chat accepts no message for a while.
 * - `chat-gone`: the chat accepts no message until a person changes something.
 * - `account`: the account cannot send at all.
 * - `unknown`: the platform does not say, or its answer is not known.
 */
export type About = 'message' | 'chat-closed' | 'chat-gone' | 'account' | 'unknown'

/** The reported causes why a message did not arrive, or an account cannot send, and what each is about. Their texts are in the table. */
export const causes = {
  'muted': 'chat-closed',
  'all-muted': 'chat-closed',
  'too-fast': 'chat-closed',
  'restricted': 'chat-closed',

  'no-such-group': 'chat-gone',
  'removed': 'chat-gone',
  'not-friend': 'chat-gone',
  'forbidden': 'chat-gone',
  'moved': 'chat-gone',
  'blocked': 'chat-gone',

  'too-long': 'message',
  'empty': 'message',
  'at-all-limit': 'message',
  'media-failed': 'message',
  'dead-link': 'message',

  'logged-out': 'account',
  'kicked': 'account',
  'silent': 'account',
  'connecting': 'account',
  'disconnected': 'account',
  'old-adapter': 'account',
  'token-refused': 'account',
  'other-account': 'account',
  'bot-removed': 'account',
  'restricted-account': 'account',
  'not-permitted': 'account',

  'unreachable': 'unknown',
  'swallowed': 'unknown',
  'vanished': 'unknown',
  'unconfirmed': 'unknown',
  'rate-limited': 'unknown',
  'unknown-action': 'unknown',
  'empty-chat': 'unknown',
} as const satisfies Record<string, About>

/** The identifier of a cause, for programs. */
export type CauseId = keyof typeof causes

/** Checks that a value is such an identifier. */
export function isCauseId(value: unknown): value is CauseId {
  return typeof value === 'string' && Object.hasOwn(causes, value)
}

/** A cause, and what was said of it in other words than those of `causes`. Both are safe to show. */
export interface Reason {
  readonly cause: CauseId
  readonly words?: string
}

/** Causes whose words are not a platform's: an adapter or this machine has them, or they are an ID. */
const bare: ReadonlySet<CauseId> = new Set(['connecting', 'disconnected', 'other-account'])

/** Explains a cause, with the platform's words behind it; without a known cause, in these words alone. */
export function explain(cause: CauseId, said?: Text | string): Text
export function explain(cause: CauseId | undefined, said?: Text | string): Text | undefined
export function explain(cause: CauseId | undefined, said?: Text | string): Text | undefined {
  if (cause === undefined) return typeof said === 'string' ? words(said) : said
  const plain = say(`cause-${cause}`)
  if (!said) return plain
  if (cause === 'unreachable') return clauses(plain, said)
  return say(bare.has(cause) ? 'cause-with-detail' : 'cause-of-platform', { cause: plain, words: said })
}
