import { demand } from '../errors'
import { quoted } from '../lib/log'
import { isObject, withoutNull } from '../lib/shape'
import { readList } from '../lib/words'
import type { Mentions } from './model'
import { isName, toName } from './target'

/** The words that call everybody, also as the ID of a user, and nobody. */
export const everybody = 'all'
export const nobody = 'none'
const mostWords = 20

/**
 * Reads whom to call by `@`: words, or a dictionary of words by severity. Words alone stand for every severity but `ok`.
 *
 * @throws RelayError `bad-request`
 */
export function parseMentions(value: unknown): Mentions {
  const { critical, warning, info, ...others } = isObject(value) ? withoutNull(value) : { critical: value, warning: value, info: value }
  demand(Object.keys(others).length === 0, 'mention goes by critical, warning and info only')
  const entries = Object.entries({ critical, warning, info }).filter(([, words]) => words !== undefined)
    .map(([severity, words]) => [severity, parseCalled(words, 'mention')] as const)
  return Object.fromEntries(entries.filter(([, words]) => words.length > 0))
}

/** Reads whom to call: people, rotas, `all`, or `none`. @throws RelayError `bad-request`, which names the field */
export function parseCalled(value: unknown, field: string): string[] {
  const words = parsePeople(value, field, ', all or none')
  demand(words.length === 1 || !words.includes(nobody), `${field}: ${nobody} goes alone`)
  return words.filter(word => word !== nobody)
}

/** Reads a list of people and rotas. @throws RelayError `bad-request`, which names the field */
export function parsePeople(value: unknown, field: string, others = ''): string[] {
  const words = [...new Set((readList(value) ?? []).map(toName))]
  demand(words.length > 0 && words.length <= mostWords && words.every(isName), `${field} must be a person or rota${others}, or a list of these`)
  return words
}

/** All words of a mention. */
export function wordsOf(mentions: Mentions = {}): string[] {
  return [...new Set(Object.values(mentions).flat())]
}

/** Whether words call everybody. */
export function callsAll(words: readonly string[]): boolean {
  return words.includes(everybody)
}

/**
 * Checks that words mean somebody.
 *
 * @param isCalled whether a word means a person or a rota
 * @throws RelayError `bad-request`, which names the field
 */
export function demandCalled(words: readonly string[], field: string, isCalled: (word: string) => boolean): void {
  const unknown = words.find(word => word !== everybody && !isCalled(word))
  demand(unknown === undefined, `${field}: there is no person and no rota ${quoted(unknown ?? '')}`)
}
