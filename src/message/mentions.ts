import { demand } from '../errors'
import { quoted } from '../lib/log'
import { say, type Text } from '../texts/text'
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
  demand(Object.keys(others).length === 0, say('mention-severities'))
  const entries = Object.entries({ critical, warning, info }).filter(([, words]) => words !== undefined)
    .map(([severity, words]) => [severity, parseCalled(words, 'mention')] as const)
  return Object.fromEntries(entries.filter(([, words]) => words.length > 0))
}

/** Reads whom to call: people, rotas, `all`, or `none`. @throws RelayError `bad-request`, which names the field */
export function parseCalled(value: unknown, field: string): string[] {
  const words = parsePeople(value, field, say('called', { field }))
  demand(words.length === 1 || !words.includes(nobody), say('nobody-alone', { field, word: nobody }))
  return words.filter(word => word !== nobody)
}

/** Reads a list of people and rotas. @param rule what to say of anything else @throws RelayError `bad-request`, which names the field */
export function parsePeople(value: unknown, field: string, rule: Text = say('people', { field })): string[] {
  const words = [...new Set((readList(value) ?? []).map(toName))]
  demand(words.length > 0 && words.length <= mostWords && words.every(isName), rule)
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
  demand(unknown === undefined, say('unknown-person', { field, name: quoted(unknown ?? '') }))
}
