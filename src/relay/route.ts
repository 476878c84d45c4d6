import { RelayError } from '../errors'
import type { Language } from '../lib/language'
import type { Address, ParsedItem } from '../message/model'
import { writeAddress } from '../message/target'
import { mayHaveArrived, outcomeOf, type Change, type Delivery, type Results } from './delivery'
import type { RouteState, RungEnd } from './flow'

/** The present rung of a route; `undefined` without a route. */
export function currentRung(route: RouteState | undefined): Address | undefined {
  return route?.rungs[route.index]
}

/** Whether a route has a further rung. */
export function hasNextRung(route: RouteState | undefined): boolean {
  return route !== undefined && route.index + 1 < route.rungs.length
}

/**
 * The change by which a delivery falls back to its next rung. `undefined` if it ends here: at the last rung, after an item has arrived, or
 * after one that may have, unless the route says to go on. A batch never falls back once an item may have arrived.
 *
 * @param results the results of the present rung
 * @param at when that ended, in milliseconds since the epoch
 */
export function nextRung({ flow, mode }: Delivery, results: Results, at: number): Change | undefined {
  const { route } = flow
  const present = currentRung(route)
  const next = route?.rungs[route.index + 1]
  if (!present || !next) return
  const goesOnUnknown = route.whenUnknown === 'next' && mode === 'single'
  if (results.some(result => goesOnUnknown ? result?.success : mayHaveArrived(result))) return
  return {
    state: 'queued', target: next.target, bot: '', results: results.map(() => undefined), open: [],
    flow: { ...flow, route: { ...route, index: route.index + 1, past: [...route.past, endOf(present, results, at)] } },
  }
}

function endOf(rung: Address, results: Results, at: number): RungEnd {
  const failed = results.find(result => result?.success === false)
  const reason = failed?.success === false ? failed.error.message : 'nothing was sent'
  return { target: writeAddress(rung), outcome: outcomeOf(failed), reason, at }
}

/** The change by which a retried delivery starts at its first rung with a bot. The record keeps the end of a later rung. */
export function firstRung({ flow, results, updatedAt }: Delivery, hasBot: (rung: Address) => boolean): Change {
  const { route } = flow
  const present = currentRung(route)
  const index = Math.max(route?.rungs.findIndex(hasBot) ?? 0, 0)
  const first = route?.rungs[index]
  if (!route || !first || results.some(result => result?.success)) return {}
  const past = present && index < route.index ? [...route.past, endOf(present, results, updatedAt)] : route.past
  return { target: first.target, bot: '', flow: { ...flow, route: { ...route, index, past } } }
}

const repetition: Readonly<Record<Language, string>> = {
  'en-US': '(May be a repetition: the first attempt was not confirmed.)',
  'zh-CN': '（可能重复：此前的发送未得到确认。）',
}

/**
 * The items of a delivery for the present rung. After an unanswered rung, the text begins with a line that says that it may be a
 * repetition.
 */
export function itemsForRung({ flow: { route, policy } }: Delivery, items: readonly ParsedItem[]): readonly ParsedItem[] {
  if (!route?.past.some(({ outcome }) => outcome === 'unanswered')) return items
  const first = items.findIndex(item => !(item instanceof RelayError) && item.type === 'text')
  const line = policy?.lang ? repetition[policy.lang] : `${repetition['zh-CN']} ${repetition['en-US']}`
  return items.map((item, index) => index === first && 'text' in item ? { ...item, text: `${line}\n${item.text}` } : item)
}
