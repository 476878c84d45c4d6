import type { PlannedItem, PlannedRequest } from './plan'

/** The outcome of an item as a caller knows it; `unknown` without an answer. */
export type Told = 'sent' | 'refused' | 'unsent' | 'unanswered' | 'unknown'

/** What the caller knows of one item. */
export interface ItemAccount {
  told: Told
  /** The IDs of a success. */
  ids: readonly string[]
  /** The number of the newest ledger entry when the success was first told. */
  seq?: number
  /** Whether the item was told to be unanswered before it was told to be sent. */
  isLate?: boolean
}

/** What callers know of one message or batch. All requests with the same key count as one. Times are positions in the order of events. */
export interface Account {
  /** The first request. */
  request: PlannedRequest
  items: readonly PlannedItem[]
  results: ItemAccount[]
  /** When the first request was issued. */
  issued: number
  /** When the message was first told to be sent or accepted. */
  accepted?: number
  /** The accepted delivery, until its end is known. */
  deliveryId?: string
  /** Whether the answer to a request with this key was lost and nothing was told since. The message may have been sent. */
  hasLostAnswer: boolean
  /** The delivery of the last answer. Its record must agree with the answer. */
  recordId?: string
  /** The calls of the delivery, according to its record. */
  attempts?: number
  /** When the first request was issued, on the monotonic clock. */
  start: number
  /** All answers, for a report. */
  history: string[]
}

export function openAccount(request: PlannedRequest, issued: number): Account {
  return {
    request, items: request.items, results: request.items.map(() => ({ told: 'unknown', ids: [] })), issued, hasLostAnswer: false,
    start: performance.now(), history: [],
  }
}

/**
 * Records an answer.
 *
 * @param seq the number of the newest ledger entry
 * @returns contradictions to earlier answers
 */
export function record(account: Account, results: readonly ItemAccount[], seq: number): string[] {
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
