import type { PlannedItem, PlannedRequest } from './plan'

/** What a caller was told of an item; `unknown` when no answer came. */
export type Told = 'sent' | 'refused' | 'unsent' | 'unanswered' | 'unknown'

/** What was told of one item. */
export interface ItemAccount {
  told: Told
  /** Of a success. */
  ids: readonly string[]
}

/**
 * What callers were told of one message or batch: of one request, or of all with the same key, which are one. Times are places in
 * the order of events.
 */
export interface Account {
  /** The first request. */
  request: PlannedRequest
  items: readonly PlannedItem[]
  results: ItemAccount[]
  /** When it was issued first. */
  issued: number
  /** When it was first told that it is sent, or accepted. */
  accepted?: number
  /** The delivery that was accepted for later, while its end is not known. */
  deliveryId?: string
  /** Whether a repeat went unheard: where the first request had not used up the key, that one may have been sent. */
  isUnheard: boolean
  /** Everything that was told, for a report. */
  history: string[]
}

/** An answer of the relay, as far as it tells what became of a request. */
export interface Verdict {
  results: ItemAccount[]
  /** Whether it is about an earlier request with the same key. */
  isReplay: boolean
}

export function openAccount(request: PlannedRequest, issued: number): Account {
  return { request, items: request.items, results: request.items.map(() => ({ told: 'unknown', ids: [] })), issued, isUnheard: false, history: [] }
}

/**
 * Takes down what was told.
 *
 * @returns what is wrong with it in the light of what was told before
 */
export function tell(account: Account, results: readonly ItemAccount[]): string[] {
  const problems: string[] = []
  account.results = account.results.map((before, index) => {
    const now = results[index]
    if (!now) {
      problems.push(`request ${account.request.name}: nothing was told of item ${index}`)
      return before
    }
    if (before.told === 'sent' && now.told !== 'sent') {
      problems.push(`request ${account.request.name}, item ${index}: told sent, and later ${now.told}`)
    }
    return now
  })
  account.history.push(account.results.map(({ told }) => told).join(' '))
  return problems
}
