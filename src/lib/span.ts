import type { Language } from '../texts/language'
import { day, hour, minute } from './time'

const units = {
  'zh-CN': { day: '天', hour: '小时', minute: '分钟', second: '秒', yesterday: '昨天' },
  'en-US': { day: 'd', hour: 'h', minute: 'min', second: 's', yesterday: 'yesterday' },
}

/** A span of milliseconds for people, in its two largest units: `1 小时 5 分钟`, `41 min`. */
export function writeSpan(ms: number, language: Language): string {
  const names = units[language]
  const parts = [
    [Math.floor(ms / day), names.day], [Math.floor(ms % day / hour), names.hour], [Math.floor(ms % hour / minute), names.minute],
    [Math.floor(ms % minute / 1000), names.second],
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  // Nobody needs the seconds of minutes.
  const shown = first < 0 ? parts.slice(-1) : parts.slice(first, Math.max(first + 1, Math.min(first + 2, 3)))
  return shown.filter(([count], index) => index === 0 || count > 0).map(([count, name]) => `${count} ${name}`).join(' ')
}

/** A time for people: `02:13`, `昨天 02:13`, or `12-05 02:13` on another day. @param zone that of this process by default */
export function writeMoment(at: number, now: number, language: Language, zone?: string): string {
  // The form of Sweden is that of ISO 8601.
  const local = (time: number): string => new Date(time).toLocaleString('sv-SE', { timeZone: zone })
  const [date = '', time = ''] = local(at).split(' ')
  const clock = time.slice(0, 5)
  if (local(now).startsWith(date)) return clock
  return local(now - day).startsWith(date) ? `${units[language].yesterday} ${clock}` : `${date.slice(5)} ${clock}`
}
