import type { Language } from '../lib/language'

/**
 * The scope of a failure, and so its meaning for the next messages:
 * - `message`: another message to the same chat may succeed.
 * - `chat-closed`: the chat accepts no message for a while.
 * - `chat-gone`: the chat accepts no message until a person changes something.
 * - `account`: the account cannot send at all.
 * - `unknown`: the platform does not say, or its answer is not known.
 */
export type About = 'message' | 'chat-closed' | 'chat-gone' | 'account' | 'unknown'

/** A cause in plain words, without capital and full stop: the platform's own words follow them, and alerts quote them. */
interface Explained { about: About, en: string, zh: string }

/** The reported causes why a message did not arrive, or an account cannot send. */
export const causes = {
  'muted': { about: 'chat-closed', en: 'the bot is muted in this group', zh: '机器人在该群被禁言' },
  'all-muted': { about: 'chat-closed', en: 'everybody is muted in this group', zh: '该群已开启全员禁言' },
  'too-fast': { about: 'chat-closed', en: 'too many messages a minute for this group', zh: '发言超过了该群的频率限制' },
  'restricted': { about: 'chat-closed', en: 'QQ restricts what this account may send here', zh: '账号在此被 QQ 限制发言' },

  'no-such-group': { about: 'chat-gone', en: 'there is no such group, or the bot is not in it', zh: '群不存在，或机器人不在群中' },
  'removed': { about: 'chat-gone', en: 'the bot is not in this group any more', zh: '机器人已不在该群' },
  'not-friend': { about: 'chat-gone', en: 'there is no such user, or the user is not a friend of the bot', zh: '用户不存在，或不是机器人的好友' },
  'forbidden': { about: 'chat-gone', en: 'the bot has no permission to write here', zh: '机器人没有在此发言的权限' },
  'moved': { about: 'chat-gone', en: 'the group has another ID now', zh: '该群的 ID 已更改' },
  'blocked': { about: 'chat-gone', en: 'the user and the bot have blocked one another', zh: '机器人与该用户之间已屏蔽' },

  'too-long': { about: 'message', en: 'the message is too long', zh: '消息过长' },
  'empty': { about: 'message', en: 'the platform finds nothing in the message that it can send', zh: '消息中没有平台能发送的内容' },
  'at-all-limit': { about: 'message', en: 'no more messages may mention everybody today', zh: '今天 @全体成员 的次数已用完' },
  'media-failed': { about: 'message', en: 'the platform could not read or upload the file', zh: '平台无法读取或上传该文件' },
  'dead-link': { about: 'message', en: 'the file behind the link cannot be fetched', zh: '无法下载链接指向的文件' },

  'logged-out': { about: 'account', en: 'the account is logged out, or the platform has no network', zh: '账号已掉线，或平台无法联网' },
  'kicked': { about: 'account', en: 'the account is logged out', zh: '账号已掉线' },
  'silent': { about: 'account', en: 'the platform does not answer', zh: '平台没有应答' },
  'connecting': { about: 'account', en: 'the bot is connecting', zh: '机器人正在连接' },
  'disconnected': { about: 'account', en: 'the bot is not connected', zh: '机器人没有连接到平台' },
  'old-adapter': {
    about: 'account', en: 'its adapter is for an older Koishi: install a newer version', zh: '其适配器只适用于旧版 Koishi，请安装新版',
  },
  'token-refused': {
    about: 'account',
    en: 'OneBot refused the access token: give the bot and the OneBot implementation the same one',
    zh: 'OneBot 拒绝了 access token：请让机器人和 OneBot 实现使用同一个',
  },
  'other-account': { about: 'account', en: 'OneBot is logged in to another account', zh: 'OneBot 登录的是另一个账号' },
  'bot-removed': { about: 'account', en: 'the bot was removed', zh: '机器人已被移除' },
  'restricted-account': {
    about: 'account',
    en: 'the platform takes the messages of this account, but nobody sees them, so one is sent at a time',
    zh: '平台接受该账号的消息，但没有人能看到，因此每次只发送一条',
  },
  'not-permitted': { about: 'account', en: 'the platform does not permit this to the bot: look at its permissions', zh: '平台不允许该机器人这样做，请检查其权限' },

  'unreachable': { about: 'unknown', en: 'the platform cannot be reached', zh: '无法连接到平台' },

  'swallowed': {
    about: 'unknown',
    en: 'the platform took the message, but did not confirm it: risk control may have blocked it',
    zh: '平台已接受消息但未确认，可能被风控拦截',
  },
  'vanished': { about: 'unknown', en: 'the platform does not show the message: it may have been lost on the way', zh: '平台上看不到该消息，可能已丢失' },
  'unconfirmed': { about: 'unknown', en: 'the platform does not know whether the message was sent', zh: '平台不确定消息是否已发出' },
  'rate-limited': { about: 'unknown', en: 'the platform limits how fast messages may be sent', zh: '平台限制了发送频率' },
  'unknown-action': { about: 'unknown', en: 'the platform does not know this action', zh: '平台不支持此操作' },
  'empty-chat': { about: 'unknown', en: 'the platform finds no message there', zh: '平台找不到那里的消息' },
} as const satisfies Record<string, Explained>

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
export function explain(cause: CauseId, words?: string, language?: Language): string
export function explain(cause: CauseId | undefined, words?: string, language?: Language): string | undefined
export function explain(cause: CauseId | undefined, words?: string, language: Language = 'en-US'): string | undefined {
  if (cause === undefined) return words
  const isChinese = language === 'zh-CN'
  const plain = causes[cause][isChinese ? 'zh' : 'en']
  if (!words) return plain
  if (isChinese) return `${plain}（${words}）`
  if (cause === 'unreachable') return `${plain}: ${words}`
  return `${plain} (${bare.has(cause) ? words : `platform: "${words}"`})`
}
