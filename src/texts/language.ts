/** The languages of the texts for chats. */
export const languages = ['zh-CN', 'en-US'] as const
export type Language = typeof languages[number]

/** The language that a word names, with or without its country. */
export function languageNamed(word: unknown): Language | undefined {
  return languages.find(each => each === word || each.split('-')[0] === word)
}

/** The language of the first locale that is Chinese or English, with or without a country; Chinese by default. */
export function languageOf(locales: readonly string[]): Language {
  return locales.find(locale => /^(?:zh|en)(?:-|$)/.test(locale))?.startsWith('en') ? 'en-US' : 'zh-CN'
}

/** The language of the machine, for what its operator reads: Chinese if its locale is, otherwise English. */
export function languageOfMachine(): Language {
  return new Intl.DateTimeFormat().resolvedOptions().locale.startsWith('zh') ? 'zh-CN' : 'en-US'
}

/** The language that a request asks for, by `?lang` or `Accept-Language` (RFC 9110, section 12.5.4); English if it names neither. */
export function languageAsked(query: string, accepted = ''): Language {
  const asked = query.includes('lang=') ? new URLSearchParams(query).get('lang') ?? '' : ''
  const weighed = accepted.split(',').map(range => {
    const [tag = '', weight = '1'] = range.trim().split(/\s*;\s*q=/)
    return [tag, Number(weight)] as const
  })
  const preferred = weighed.filter(([, weight]) => weight > 0).sort(([, a], [, b]) => b - a).map(([tag]) => tag)
  return [asked, ...preferred].find(tag => /^(?:zh|en)(?:[-_]|$)/i.test(tag))?.toLowerCase().startsWith('zh') ? 'zh-CN' : 'en-US'
}
