import type { Language } from './language'

/** Writes a text of the table. @param write writes the value of a place `{name}` */
export function fill([english, chinese]: readonly [string, string], language: Language, write: (name: string) => string): string {
  return (language === 'zh-CN' ? chinese : english).replace(/\{(\w+)\}/g, (_, name: string) => write(name))
}

/** Writes a list with commas. */
export function listed(parts: readonly string[], language: Language): string {
  return parts.join(language === 'zh-CN' ? '、' : ', ')
}
