/** The languages of the texts for chats. */
export const languages = ['zh-CN', 'en-US'] as const
export type Language = typeof languages[number]

/** The language of the first locale that is Chinese or English, with or without a country; Chinese by default. */
export function languageOf(locales: readonly string[]): Language {
  return locales.find(locale => /^(?:zh|en)(?:-|$)/.test(locale))?.startsWith('en') ? 'en-US' : 'zh-CN'
}
