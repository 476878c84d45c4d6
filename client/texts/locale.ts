import { useConfig, useStorage } from '@koishijs/client'
import { computed, watch } from 'vue'

/** The languages of the page, each by its own name. */
export const languageNames = { 'zh-CN': '中文', 'en-US': 'English' } as const
export type Locale = keyof typeof languageNames

/** The language that every console has until somebody chooses another one: it says nothing about what its user reads. */
const untouched: Locale = 'zh-CN'

const config = useConfig()
/** The language that somebody chose in this browser, in the settings of the console or by the switch of the page. */
const chosen = useStorage<{ locale?: string }>('message-relay', 1)

// The settings are empty until the console has read them: that is no choice.
watch(() => config.value.locale, (now, before) => {
  if (before !== undefined && now !== before) chosen.value.locale = now
})

/** The language of the page: the one that was chosen, or else that of the browser. */
export const locale = computed<Locale>(() => {
  const { locale: inConsole = untouched } = config.value
  const word = chosen.value.locale ?? (inConsole === untouched ? navigator.language : inConsole)
  return word.startsWith('zh') ? 'zh-CN' : 'en-US'
})

/** Chooses the language of the console, and thereby of the page. */
export function setLocale(value: Locale): void {
  chosen.value.locale = value
  config.value.locale = value
}
