import type { Language } from './language'
import { day, hour, minute } from './time'

const units = {
  'zh-CN': { day: '天', hour: '小时', minute: '分钟', second: '秒' },
  'en-US': { day: 'd', hour: 'h', minute: 'min', second: 's' },
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

/** A time for people, in the time zone of this process: `02:13`, or `12-05 02:13` on another day than the present one. */
export function writeMoment(at: number, now: number): string {
  const [date = '', time = ''] = localTexts(at)
  return date === localTexts(now)[0] ? time.slice(0, 5) : `${date.slice(5)} ${time.slice(0, 5)}`
}

/** Date and time in the form of ISO 8601, which Sweden uses. */
function localTexts(at: number): string[] {
  return new Date(at).toLocaleString('sv-SE').split(' ')
}
