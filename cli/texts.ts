// What the command says, in the language of the terminal.
import { fill, listed } from '../src/texts/fill'
import type { Language } from '../src/texts/language'
import { cli } from '../src/texts/table/cli'
import type { Value, ValuesOf } from '../src/texts/text'

/** The GitHub Action stays at English. */
let language: Language = 'en-US'

/** Speaks the language of the locale: that of the first variable that is set (POSIX, section 8.2). */
export function speakLike({ LC_ALL, LC_MESSAGES, LANG }: NodeJS.ProcessEnv): void {
  language = (LC_ALL || LC_MESSAGES || LANG || '').startsWith('zh') ? 'zh-CN' : 'en-US'
}

/** The language that is spoken, in which the relay is to answer too. */
export function spoken(): Language {
  return language
}

/** A text of the command, written. `say` of src/ would bring the texts of the whole relay into the bundle. */
export function say<I extends keyof typeof cli>(id: I, ...[values]: ValuesOf<I>): string {
  const given: Readonly<Record<string, Value>> = values ?? {}
  return fill(cli[id], language, name => {
    const value = given[name]
    return Array.isArray(value) ? listed(value.map(String), language) : String(value)
  })
}
