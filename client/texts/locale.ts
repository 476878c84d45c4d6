import { useConfig, useStorage } from '@koishijs/client'
import { computed, watch } from 'vue'
import { chinese, english, type Texts } from './all'

/** The languages of the page, each by its own name. */
export const languageNames = { 'zh-CN': '中文', 'en-US': 'English' } as const
export type Locale = keyof typeof languageNames

/** The default language of every console. It does not tell what the user reads. */
const defaultLocale: Locale = 'zh-CN'

const config = useConfig()
/** The language that the user chose in this browser, in the settings of the console or with the switch of the page. */
const chosen = useStorage<{ locale?: string }>('message-relay', 1)

// Before the console has loaded its settings, they are empty. The change when they are loaded is not a choice.
watch(() => config.value.locale, (now, before) => {
  if (before !== undefined && now !== before) chosen.value.locale = now
})

/** The language of the page: the chosen one, or else the browser's. */
export const locale = computed<Locale>(() => {
  const { locale: inConsole = defaultLocale } = config.value
  const word = chosen.value.locale ?? (inConsole === defaultLocale ? navigator.language : inConsole)
  return word.startsWith('zh') ? 'zh-CN' : 'en-US'
})

/** The texts of the page, in its language. */
export const texts = computed<Texts>(() => locale.value === 'zh-CN' ? chinese : english)

/** Sets the language of the console and of the page. */
export function setLocale(value: Locale): void {
  chosen.value.locale = value
  config.value.locale = value
}
