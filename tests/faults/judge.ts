import { createHash } from 'node:crypto'
import type { LedgerEntry } from '../../simulator'
import type { Account, Told } from './account'
import { hasRecords } from './kind'
import type { PlannedItem } from './plan'
import type { Run } from './run'

/** An item with its outcome, as the caller knows it. */
interface Case {
  item: PlannedItem
  account: Account
  told: Told
  ids: readonly string[]
  /** The number of the newest ledger entry when the item was told to be sent. */
  seq: number
  /** Whether the caller was told `unanswered` and did not wait any longer. Then later messages may overtake the item. */
  isLeft: boolean
}

/**
 * Compares what callers were told with the messages in the chats. The judge knows nothing else: neither which fault hit which call, nor how
 * the relay works.
 *
 * @returns the problems
 */
export function judge(run: Run): string[] {
  const ledger = run.ledger()
  const { kind, targets, faults, moments } = run.plan
  return [...run.problems, ...targets.flatMap((target, index) => {
    const entries = ledger.filter(entry => entry.target.id === target.id)
    const cases = casesOf(run.accounts.filter(({ request }) => request.target === index))
    // Without a reliable history, the relay cannot know that a message arrived.
    const isRecorded = hasRecords(kind, target.kind)
    const isOnce = isRecorded || !kind.retryUnanswered
    const isCalm = moments.length === 0 && !faults.some(fault => fault.target === index)
    const rules = { holding: isCalm ? Infinity : isRecorded ? kind.retries : 0, isOnce }
    const counted = judgeCounts(cases, entries, isOnce, !kind.retryUnanswered)
    return [...counted, ...judgeIds(cases, entries), ...judgeOrder(cases, entries, rules)]
  })]
}

function casesOf(accounts: readonly Account[]): Case[] {
  return accounts.flatMap(account => account.items.map((item, index): Case => {
    const { told, ids, seq = Infinity, isLate = false } = account.results[index] ?? { told: 'unknown', ids: [] }
    // A repeat without an answer, after a failure that leaves the key free, may have been sent.
    const isOutdated = account.hasLostAnswer && (told === 'refused' || told === 'unsent')
    return { item, account, told: isOutdated ? 'unknown' : told, ids, seq, isLeft: isLate && !account.request.deferred }
  }))
}

/**
 * Each sent item is in the chat, and not more often than it was sent or may have been. Equal items are counted together.
 *
 * @param areEqualOnce whether equal texts also come once, although the history cannot always distinguish them
 */
function judgeCounts(cases: readonly Case[], entries: readonly LedgerEntry[], isOnce: boolean, areEqualOnce: boolean): string[] {
  const problems: string[] = []
  for (const token of new Set(cases.map(({ item }) => item.token))) {
    const equal = cases.filter(({ item }) => item.token === token)
    const seqs = entries.flatMap(entry => Array<number>(countIn(entry, token)).fill(entry.seq))
    const sent = equal.filter(({ told }) => told === 'sent').sort((a, b) => a.seq - b.seq)
    const most = sent.length + equal.filter(({ told }) => told === 'unanswered' || told === 'unknown').length
    // Files are never resent on suspicion.
    const mayDouble = !(isOnce && (areEqualOnce || equal.length === 1)) && most > 0 && equal.some(({ item }) => item.type !== 'file')
    const told = equal.map(one => `${[one.told, ...one.ids].join(' ')} (request ${one.account.request.name}: ${one.account.history.join(', ')})`).join('; ')
    if (seqs.length < sent.length || (seqs.length > most && !mayDouble)) {
      problems.push(`${token} is there ${seqs.length} times, not ${sent.length} to ${most}: ${told}`)
    } else if (sent.some(({ seq }, index) => (seqs[index] ?? Infinity) > seq)) problems.push(`${token} was told to be sent before it was there: ${told}`)
  }
  return problems
}

/** How often an entry contains an item. */
function countIn(entry: LedgerEntry, token: string): number {
  if (token.startsWith('[')) return entry.text.split(token).length - 1
  const sha256 = createHash('sha256').update(Buffer.from(token, 'base64')).digest('hex')
  return entry.media.filter(medium => medium.sha256 === sha256).length
}

/** The sent items without an equal one, with their entries. Those of equal items cannot be told apart. */
function placesOf(cases: readonly Case[], entries: readonly LedgerEntry[]): (Case & { own: LedgerEntry[] })[] {
  return cases.filter(one => one.told === 'sent' && cases.every(other => other === one || other.item.token !== one.item.token))
    .map(one => ({ ...one, own: entries.filter(entry => countIn(entry, one.item.token) > 0) }))
    .filter(({ own }) => own.length > 0)
}

/** The IDs that were told belong to the messages. */
function judgeIds(cases: readonly Case[], entries: readonly LedgerEntry[]): string[] {
  return placesOf(cases, entries).flatMap(({ item, ids, own, account }) => {
    const known = own.map(({ messageId }) => String(messageId))
    const isWrong = item.type !== 'file' && ids.some(id => !known.includes(id))
    return isWrong ? [`${item.token} was told to be ${ids.join()}, but is ${known.join()} (request ${account.request.name})`] : []
  })
}

/**
 * A message that was accepted before another one was issued is in the chat before it, unless it stepped aside.
 *
 * @param holding up to how many attempts a deferred text holds its queue; `Infinity` if all calls are answered
 */
function judgeOrder(
  cases: readonly Case[], entries: readonly LedgerEntry[], { holding, isOnce }: { holding: number, isOnce: boolean },
): string[] {
  // If a message may come twice, its first entry counts. The other is a late one of a slow platform.
  const places = placesOf(cases, entries).filter(({ isLeft }) => !isLeft).map(({ account, own }) => {
    const seqs = own.map(({ seq }) => seq)
    return { account, first: Math.min(...seqs), last: isOnce ? Math.max(...seqs) : Math.min(...seqs) }
  })
  return places.flatMap(({ account: earlier, last }) => {
    const { accepted, attempts = 0, request: { deferred, name }, items } = earlier
    // A deferred message without an answer holds its queue only if it is a text with attempts left.
    const holds = attempts > 0 && attempts <= holding && (holding === Infinity || items.every(({ type }) => type === 'text'))
    if (accepted === undefined || (deferred && !holds)) return []
    const before = places.filter(({ account: later, first }) => later !== earlier && later.issued > accepted && first < last)
    return before.map(({ account: { request, history } }) => (
      `request ${name} (${earlier.history.join(', ')}) was accepted before request ${request.name} (${history.join(', ')}), and is there after it`
    ))
  })
}
