import { Universal, type Bot } from 'koishi'

/** A bot as `GET /status` shows it. */
export interface BotState {
  platform: string
  self_id: string
  status: string
}

const states: Readonly<Record<Universal.Status, string>> = {
  [Universal.Status.OFFLINE]: 'offline',
  [Universal.Status.ONLINE]: 'online',
  [Universal.Status.CONNECT]: 'connecting',
  [Universal.Status.DISCONNECT]: 'disconnecting',
  [Universal.Status.RECONNECT]: 'reconnecting',
}

/** The bots and their state, without those that Koishi hides. */
export function describeBots(bots: Iterable<Pick<Bot, 'platform' | 'selfId' | 'status' | 'hidden'>>): BotState[] {
  const visible = [...bots].filter(bot => !bot.hidden)
  return visible.map(({ platform, selfId, status }) => ({ platform: platform ?? 'unknown', self_id: selfId, status: states[status] }))
}
