import type { PlannedItem, PlannedRequest } from './plan'

/** What a caller was told of an item; `unknown` when no answer came. */
export type Told = 'sent' | 'refused' | 'unsent' | 'unanswered' | 'unknown'

/** What was told of one item. */
export interface ItemAccount {
  told: Told
  /** Of a success. */
  ids: readonly string[]
  /** The newest entry of the ledger when a success was told first, by its number. */
  seq?: number
  /** Whether it was told to be unanswered before it was told to be sent. */
  isLate?: boolean
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
  /** Whether the answer to a request with this key was lost, and nothing has been told of it since: it may have been sent. */
  isUnheard: boolean
  /** The delivery of the answer that was told last, which has a record that must agree with it. */
  recordId?: string
  /** Calls that its delivery took, as its record says. */
  attempts?: number
  /** When it was issued first, on the monotonic clock. */
  start: number
  /** Everything that was told, for a report. */
  history: string[]
}

export function openAccount(request: PlannedRequest, issued: number): Account {
  return {
    request, items: request.items, results: request.items.map(() => ({ told: 'unknown', ids: [] })), issued, isUnheard: false,
    start: performance.now(), history: [],
  }
}

/**
 * Takes down what was told.
 *
 * @param seq the number of the newest entry of the ledger
 * @returns what is wrong with it in the light of what was told before
 */
export function tell(account: Account, results: readonly ItemAccount[], seq: number): string[] {
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
    return now.told === 'sent' ? { ...now, seq: before.seq ?? seq, isLate: before.isLate ?? before.told === 'unanswered' } : now
  })
  account.history.push(account.results.map(({ told }) => told).join(' '))
  return problems
}
