import { useConfig } from '@koishijs/client'
import { computed } from 'vue'
import { english, type Texts } from './en-US'
import { chinese } from './zh-CN'

const config = useConfig()

/** The language of the console, which its settings say; without one that of the browser. */
export const locale = computed<'zh-CN' | 'en-US'>(() => (config.value.locale ?? navigator.language).startsWith('zh') ? 'zh-CN' : 'en-US')

/** What the page says, in that language. */
export const texts = computed<Texts>(() => locale.value === 'zh-CN' ? chinese : english)

/** A moment of today as a time, another one with its date. */
export function writeMoment(moment: string | number | undefined): string {
  if (moment === undefined || moment === '') return '–'
  const date = new Date(moment)
  const isToday = date.toDateString() === new Date().toDateString()
  return new Intl.DateTimeFormat(locale.value, { ...!isToday && { dateStyle: 'short' }, timeStyle: 'medium', hourCycle: 'h23' }).format(date)
}
