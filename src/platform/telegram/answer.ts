import type { CauseId } from '../../message/causes'
import type { Target } from '../../message/model'
import { fieldsOf } from '../../message/parse'
import type { SendError } from '../port'
import { retryAfterOf, toFailure, unreadable, type WebAnswer } from '../web'

/** What Telegram's words mean in a group and in a private chat. */
interface Row {
  words: RegExp
  group: CauseId
  /** The same as in a group unless given. */
  private?: CauseId
}

/**
 * The descriptions of refused calls. The first row that fits counts. Telegram gives no codes, and says that its words may change:
 * https://core.telegram.org/bots/api#making-requests. They are those of its server, tdlib/telegram-bot-api `Client.cpp`
 * (`check_chat_access`, `fail_query_with_error`) and tdlib/td `MessagesManager.cpp` (`process_send_message_fail_error`),
 * `MessageContent.cpp` (`can_send_message_content`), `DialogManager.cpp`.
 */
const rows: readonly Row[] = [
  { words: /upgraded to a supergroup/i, group: 'moved' },
  { words: /bot was kicked from|bot is not a member of|CHANNEL_PRIVATE/i, group: 'removed' },
  { words: /blocked by the user|USER_IS_BLOCKED/i, group: 'blocked' },
  { words: /user is deactivated|can't initiate conversation|can't send messages to (?:the )?bot/i, group: 'not-friend' },
  { words: /chat not found|group chat was deleted|(?:PEER|CHAT)_ID_INVALID|CHANNEL_INVALID/i, group: 'no-such-group', private: 'not-friend' },
  { words: /message thread not found|TOPIC_(?:DELETED|ID_INVALID)/i, group: 'no-such-group' },

  { words: /TOPIC_CLOSED/, group: 'all-muted' },
  { words: /need administrator rights in the channel|CHAT_ADMIN_REQUIRED/i, group: 'forbidden' },
  // Rights to send pictures or files are about the item alone.
  { words: /rights to send (?:a message|text messages)|no write access|CHAT_(?:WRITE|SEND_PLAIN)_FORBIDDEN|CHAT_RESTRICTED/i, group: 'muted' },

  { words: /(?:message|caption|text) is too long|_TOO_LONG/i, group: 'too-long' },
  { words: /text is empty|text must be non-empty|MESSAGE_EMPTY/i, group: 'empty' },
  {
    words: /too (?:big|large)|file must be non-empty|wrong file identifier|unsupported extension|\b(?:PHOTO|IMAGE|VIDEO|MEDIA|FILE)_/i,
    group: 'media-failed',
  },

  { words: /^(?:unauthorized|not found$|(?:bad request: )?logged out)/i, group: 'logged-out' },
]

/** How long to wait where a limit does not say, in milliseconds. */
const defaultWait = 5_000

/** The result of a call. @throws SendError where it has none */
export function readResult(answer: WebAnswer, { kind }: Target): unknown {
  const { status, body, headers } = answer
  const { ok, result, error_code: code, description, parameters } = fieldsOf(body)
  if (ok === true) return result
  const { retry_after: wait, migrate_to_chat_id: moved } = fieldsOf(parameters)
  if (ok !== false && status < 400) throw unreadable()
  throw failure(typeof code === 'number' ? code : status, kind, typeof description === 'string' ? description : '', Number(wait) * 1000 || retryAfterOf(headers), moved)
}

function failure(status: number, kind: Target['kind'], description: string, wait: number | undefined, moved: unknown): SendError {
  const row = rows.find(({ words }) => words.test(description))
  const causeId = kind === 'private' ? row?.private ?? row?.group : row?.group
  const words = typeof moved === 'number' ? `${description}, the ID is ${moved} now` : description
  return toFailure(status, { words, causeId, limit: status === 429 ? { scope: 'chat', after: wait ?? defaultWait } : undefined })
}
