/** The languages in which texts for a chat are written. */
export const languages = ['zh-CN', 'en-US'] as const
export type Language = typeof languages[number]

/** The first of the locales that these texts are written in; some stand for both a language and those of its countries. */
export function languageOf(locales: readonly string[]): Language {
  return locales.find(locale => /^(?:zh|en)(?:-|$)/.test(locale))?.startsWith('en') ? 'en-US' : 'zh-CN'
}
