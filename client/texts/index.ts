import { computed } from 'vue'
import { causes, isCauseId } from '../../src/message/causes'
import type { Hold } from '../api'
import { chinese, english, type Texts } from './all'
import { locale } from './locale'

export { languageNames, locale, setLocale } from './locale'

/** What the page says, in its language. */
export const texts = computed<Texts>(() => locale.value === 'zh-CN' ? chinese : english)
/** A moment of today as a time, another one with its date; in a list, whose head has the zone. */
export function writeTime(moment: string): string {
  const date = new Date(moment)
  const now = new Date()
  if (date.toDateString() === now.toDateString()) return format(date, { timeStyle: 'medium' })
  const isThisYear = date.getFullYear() === now.getFullYear()
  return format(date, isThisYear ? { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' } : { dateStyle: 'short', timeStyle: 'short' })
}

/** The same for a moment that stands alone, with its zone. */
export function writeMoment(moment: string | number | undefined): string {
  if (moment === undefined || moment === '') return '–'
  const date = new Date(moment)
  const isToday = date.toDateString() === new Date().toDateString()
  return `${format(date, { ...!isToday && { dateStyle: 'medium' }, timeStyle: 'medium' })} ${zone(date)}`
}

/** The zone of the times of the page, such as `GMT+8`, as it is at a moment. */
export function zone(date = new Date()): string {
  const parts = new Intl.DateTimeFormat(locale.value, { timeZoneName: 'short' }).formatToParts(date)
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'UTC'
}

function format(date: Date, options: Intl.DateTimeFormatOptions): string {
  return new Intl.DateTimeFormat(locale.value, { ...options, hourCycle: 'h23' }).format(date)
}

/** Why something is held, in the language of the page where the page knows the cause, and until when. */
export function describeHold({ cause, reason, until }: Hold): string {
  const why = isCauseId(cause) ? causes[cause][locale.value === 'zh-CN' ? 'zh' : 'en'] : reason
  return texts.value.common.held(why, until && writeMoment(until))
}

/** A size in bytes, for somebody who wants to know roughly how much it is. */
export function writeSize(bytes: number): string {
  const [unit, divisor] = bytes < 1000 ? ['B', 1] : bytes < 1e6 ? ['kB', 1000] : ['MB', 1e6]
  return `${new Intl.NumberFormat(locale.value, { maximumFractionDigits: 1 }).format(bytes / divisor)} ${unit}`
}
