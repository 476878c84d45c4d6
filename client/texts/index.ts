import type { Hold } from '../api'
import { locale, texts } from './locale'

export { languageNames, locale, setLocale, texts } from './locale'

/** The page's word for a name of the relay, or else the name itself. */
export function wordFor(names: Readonly<Partial<Record<string, string>>>, name: string): string {
  return names[name] ?? name
}

/** Roughly how long ago a moment was. */
export function writeAgo(moment: string): string {
  const seconds = (Date.parse(moment) - Date.now()) / 1000
  if (Number.isNaN(seconds)) return '–'
  // The clock of the bot may be ahead.
  if (seconds > -45) return texts.value.common.justNow
  const [unit, length] = seconds > -3000 ? ['minute', 60] as const : seconds > -79_200 ? ['hour', 3600] as const : ['day', 86_400] as const
  const ago = new Intl.RelativeTimeFormat(locale.value, { style: 'short' }).format(Math.round(seconds / length), unit)
  // A blank between digits and Chinese, as in all other texts.
  return ago.replace(/(?<=\d)(?=\p{Script=Han})/u, ' ')
}

/** A duration in its two largest units. */
export function writeSpan(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000))
  const t = texts.value.common
  const parts = ([[86_400, t.days], [3600, t.hours], [60, t.minutes], [1, t.seconds]] as const).map(([length, write], at, all) => {
    const above = all[at - 1]?.[0] ?? Infinity
    return { count: Math.floor(seconds % above / length), write }
  })
  const first = parts.findIndex(({ count }) => count > 0)
  if (first < 0) return t.seconds(0)
  return parts.slice(first, first + 2).filter(({ count }) => count > 0).map(({ count, write }) => write(count)).join(' ')
}

/** The duration of a step: in milliseconds if it is short, in its two largest units if it is long. */
export function writeDuration(milliseconds: number): string {
  const t = texts.value.common
  if (milliseconds < 1000) return t.milliseconds(Math.round(milliseconds))
  return milliseconds < 10_000 ? t.seconds(Math.round(milliseconds / 100) / 10) : writeSpan(milliseconds)
}

/** A moment with its date and time zone. */
export function writeMoment(moment: string | number | undefined): string {
  if (moment === undefined || moment === '') return '–'
  const date = new Date(moment)
  const isToday = date.toDateString() === new Date().toDateString()
  return `${format(date, { ...!isToday && { dateStyle: 'medium' }, timeStyle: 'medium' })} ${zone(date)}`
}

/** The browser's time zone at a moment, such as `GMT+8`. */
export function zone(date = new Date()): string {
  const parts = new Intl.DateTimeFormat(locale.value, { timeZoneName: 'short' }).formatToParts(date)
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'UTC'
}

/** The name of the browser's time zone. */
export const ownZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone

/** The names of time zones to choose from. @param chosen one that the browser may not know */
export function zones(chosen: string): string[] {
  return [...new Set([...Intl.supportedValuesOf('timeZone'), chosen])]
}

/** A moment in the language of the page, by the 24-hour clock. */
export function format(date: Date | number, options: Intl.DateTimeFormatOptions): string {
  return new Intl.DateTimeFormat(locale.value, { ...options, hourCycle: 'h23' }).format(date)
}

/** A moment in the format of `datetime-local`, in the browser's time zone. */
export function toLocal(moment: string | undefined): string {
  const date = new Date(moment ?? '')
  if (Number.isNaN(date.getTime())) return ''
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** Such a moment, or empty if it is none. */
export function fromLocal(value: string): string {
  const date = new Date(value)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}

/** A number with the separators of the language. A share of one is written in percent. */
export function writeNumber(value: number, digits = 0, style: 'decimal' | 'percent' = 'decimal'): string {
  return new Intl.NumberFormat(locale.value, { style, maximumFractionDigits: digits }).format(value)
}

/** A text with its first letter in upper case. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** The cause of a hold and its end. */
export function describeHold(hold: Hold): string {
  const { cause, until } = hold
  const t = texts.value.common
  if (cause === 'quiet' || cause === 'digest') return t[cause](writeMoment(until))
  return t[cause === 'paused' ? cause : 'held'](hold.reason, until && writeMoment(until))
}
