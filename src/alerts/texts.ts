import type { Language } from '../lib/language'

/** What alerts are about: targets to which sending is paused, bots that are offline, messages that were dropped as their time was over. */
export type Kind = 'paused' | 'offline' | 'expired'

/** What is in trouble. */
export interface Subject {
  /** Such as `group:123456`; absent where it is a bot. */
  target?: string
  /** `platform:selfId`; absent where none was chosen yet. */
  bot?: string
  /** In milliseconds since the epoch. */
  since: number
}

/** One alert, or that it is over. */
export interface Alert {
  kind: Kind
  isOver: boolean
  subjects: readonly Subject[]
}

interface Wording {
  firing: string
  /** What its reader may do. */
  advice: string
  over: string
}

/** How many subjects a text names. */
const maxNamed = 10

const wordings: Readonly<Record<Language, Readonly<Record<Kind, Wording>>>> = {
  'en-US': {
    paused: {
      firing: 'Message relay: sending is paused, because it has failed again and again:',
      advice: 'See whether the bot is muted there or not a member any more. The relay goes on by itself; what it has refused has to be sent again.',
      over: 'Message relay: not paused any more:',
    },
    offline: {
      firing: 'Message relay: offline for five minutes or more:',
      advice: 'See whether the platform and the OneBot implementation run and are logged in. The relay connects again by itself.',
      over: 'Message relay: online again:',
    },
    expired: {
      firing: 'Message relay: messages were dropped, because they could not be delivered in their time:',
      advice: 'See in GET /statusz whether the bot is online and the target is not paused. GET /deliveries?state=expired lists them; what is still wanted can be sent again.',
      over: 'Message relay: no more messages were dropped within the last hour:',
    },
  },
  'zh-CN': {
    paused: {
      firing: '消息转发：因连续失败，已暂停发送：',
      advice: '请检查机器人在那里是否被禁言或已不是成员。转发会自动恢复；已被拒绝的消息需要重新发送。',
      over: '消息转发：已不再暂停：',
    },
    offline: {
      firing: '消息转发：离线已达五分钟：',
      advice: '请检查平台与 OneBot 实现是否在运行并已登录。转发会自动重新连接。',
      over: '消息转发：已重新上线：',
    },
    expired: {
      firing: '消息转发：有消息未能在有效期内送达，已被丢弃：',
      advice: '请用 GET /statusz 查看机器人是否在线、目标是否被暂停。GET /deliveries?state=expired 列出这些消息；仍需要的可以重新发送。',
      over: '消息转发：最近一小时内不再有消息被丢弃：',
    },
  },
}

const since: Readonly<Record<Language, (time: string) => string>> = { 'en-US': time => `, since ${time}`, 'zh-CN': time => `，自 ${time} 起` }
const more: Readonly<Record<Language, (count: number) => string>> = { 'en-US': count => `and ${count} more`, 'zh-CN': count => `以及另外 ${count} 个` }

/** Writes an alert: what, which, since when, and what to do. */
export function writeAlert({ kind, isOver, subjects }: Alert, language: Language): string {
  const { firing, advice, over } = wordings[language][kind]
  const named = subjects.slice(0, maxNamed)
  return [
    isOver ? over : firing,
    ...named.map(({ target, bot, since: begin }) => {
      const name = target === undefined ? bot ?? '' : bot === undefined ? target : `${target} (${bot})`
      return name + since[language](formatTime(begin))
    }),
    ...subjects.length > named.length ? [more[language](subjects.length - named.length)] : [],
    ...isOver ? [] : [advice],
  ].join('\n')
}

/** A time in the time zone of the bot, to the minute. */
function formatTime(time: number): string {
  const date = new Date(time)
  const two = (value: number): string => String(value).padStart(2, '0')
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-')
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`
}
