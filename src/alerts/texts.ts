import type { Language } from '../texts/language'

/**
 * The kinds of alerts: accounts that are offline or restricted, so that nobody sees their messages; targets that are paused, closed for a
 * while (`held`), or refuse messages until a person changes something (`gone`); messages that expired.
 */
export const kinds = ['offline', 'restricted', 'paused', 'held', 'gone', 'expired'] as const
export type Kind = typeof kinds[number]

/** A target or bot in trouble. */
export interface Subject {
  /** Such as `group:123456`; absent for a bot. */
  target?: string
  /** `platform:selfId`; absent if none was chosen yet. */
  bot?: string
  /** In milliseconds since the epoch. */
  since: number
  /** The reason, in the language of the alert. */
  reason?: string
  /** How often the trouble came back since the last alert; absent if it did not. */
  times?: number
}

/** An alert, or the notice that its troubles are over. */
export interface Alert {
  kind: Kind
  isOver: boolean
  subjects: readonly Subject[]
}

interface Wording {
  firing: string
  /** What the reader can do. */
  advice: string
  over: string
}

/** The most subjects that a text names. */
const maxNamed = 10

const wordings: Readonly<Record<Language, Readonly<Record<Kind, Wording>>>> = {
  'en-US': {
    paused: {
      firing: 'Message relay: sending is paused after repeated failures:',
      advice: 'Check whether the bot is still in the group or a friend of the user, and whether the platform answers. The relay resumes by itself; messages that it refused have to be sent again.',
      over: 'Message relay: no longer paused:',
    },
    offline: {
      firing: 'Message relay: accounts are offline and cannot send:',
      advice: 'Check that the platform and the OneBot implementation are running, and log in again if the account is logged out. Deferred messages wait.',
      over: 'Message relay: back online:',
    },
    restricted: {
      firing: 'Message relay: the platform accepts messages from these accounts, but nobody sees them:',
      advice: 'Risk control may have blocked the account: log in by hand to check, and send less. The relay sends one message at a time until one arrives.',
      over: 'Message relay: messages from these accounts arrive again:',
    },
    held: {
      firing: 'Message relay: the bot has not been able to speak in these chats for ten minutes:',
      advice: 'Check whether the bot is muted there, or its account is logged out or restricted. Deferred messages wait and are sent by themselves; GET /queues shows how many there are.',
      over: 'Message relay: the bot can speak again, and waiting messages are being sent:',
    },
    gone: {
      firing: 'Message relay: these chats no longer accept messages from the bot, and messages to them failed:',
      advice: 'Check whether the bot is still in the group or a friend of the user, or change the target. POST /deliveries/retry?state=failed resends what failed.',
      over: 'Message relay: no more failures there within the last hour:',
    },
    expired: {
      firing: 'Message relay: messages expired before they could be delivered:',
      advice: 'Check in GET /statusz that the bot is online and the target is not paused. GET /deliveries?state=expired lists the messages; resend those that are still wanted.',
      over: 'Message relay: no more messages expired within the last hour:',
    },
  },
  'zh-CN': {
    paused: {
      firing: '消息转发：因连续失败，已暂停向以下目标发送：',
      advice: '请检查机器人是否仍在群中、是否仍是好友，以及平台是否应答。暂停会自动结束；已失败的消息需要重新发送。',
      over: '消息转发：以下目标已恢复发送：',
    },
    offline: {
      firing: '消息转发：以下账号已离线，无法发送消息：',
      advice: '请检查平台与 OneBot 实现是否在运行；如果账号已掉线，请重新登录。延后发送的消息会等到恢复后发出。',
      over: '消息转发：以下账号已重新上线：',
    },
    restricted: {
      firing: '消息转发：平台接受了以下账号的消息，但没有人能看到：',
      advice: '账号可能被风控：请登录该账号查看，并减少发送。在有消息送达之前，每次只发一条。',
      over: '消息转发：以下账号的消息又能送达了：',
    },
    held: {
      firing: '消息转发：机器人已有十分钟无法在以下聊天中发言：',
      advice: '请检查机器人是否被禁言，账号是否掉线或受限。延后发送的消息会等到恢复后自动发出；GET /queues 显示有多少条在等待。',
      over: '消息转发：机器人已可以在以下聊天中发言，等待的消息正在发出：',
    },
    gone: {
      firing: '消息转发：以下聊天已不再接收机器人的消息，发往这些聊天的消息失败了：',
      advice: '请检查机器人是否仍在群中、是否仍是好友，或更换目标。POST /deliveries/retry?state=failed 可以重新发送失败的消息。',
      over: '消息转发：发往以下聊天的消息一小时内没有再失败：',
    },
    expired: {
      firing: '消息转发：发往以下目标的消息没能在有效期内发出，已丢弃：',
      advice: '请用 GET /statusz 查看机器人是否在线、目标是否被暂停。GET /deliveries?state=expired 列出这些消息；仍然需要的请重新发送。',
      over: '消息转发：发往以下目标的消息一小时内没有再过期：',
    },
  },
}

const since: Readonly<Record<Language, (time: string) => string>> = { 'en-US': time => `, since ${time}`, 'zh-CN': time => `，自 ${time} 起` }
const counted: Readonly<Record<Language, (times: number) => string>> = { 'en-US': times => ` (${times} more times since the last alert)`, 'zh-CN': times => `（上次告警后又出现 ${times} 次）` }
const because: Readonly<Record<Language, string>> = { 'en-US': ': ', 'zh-CN': '：' }
const more: Readonly<Record<Language, (count: number) => string>> = { 'en-US': count => `and ${count} more`, 'zh-CN': count => `以及另外 ${count} 个` }

/** Writes an alert: the kind, the subjects with reasons and times, and the advice. */
export function writeAlert({ kind, isOver, subjects }: Alert, language: Language): string {
  const { firing, advice, over } = wordings[language][kind]
  const named = subjects.slice(0, maxNamed)
  return [
    isOver ? over : firing,
    ...named.map(({ target, bot, since: begin, reason, times }) => {
      const name = target === undefined ? bot ?? '' : bot === undefined ? target : `${target} (${bot})`
      return [
        name, ...reason === undefined ? [] : [because[language], reason], since[language](formatTime(begin)),
        ...times === undefined ? [] : [counted[language](times)],
      ].join('')
    }),
    ...subjects.length > named.length ? [more[language](subjects.length - named.length)] : [],
    ...isOver ? [] : [advice],
  ].join('\n')
}

/** A time in the time zone of the bot, to the minute. */
function formatTime(time: number): string {
  return new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'short' }).format(time)
}
