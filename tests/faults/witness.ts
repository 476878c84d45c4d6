import type { LedgerEntry } from '../../simulator'
import type { Account, Told } from './account'
import { countIn } from './judge'
import { hasRecords } from './kind'
import { isForgetful, type Plan, type PlannedItem } from './plan'
import type { Run } from './run'
import { isTooSlow } from './tracker'

/** An item with what was told of it in the end. */
interface Word {
  item: PlannedItem
  account: Account
  told: Told
  /** The newest entry of the ledger when it was told to be sent. */
  seq: number
  /** Whether its caller was told that it is unanswered and did not wait on: then it may be overtaken. */
  isLeft: boolean
}

/**
 * Compares what callers were told with what is in the chats, and knows nothing else: neither which call was struck by what, nor how the
 * relay goes about it. It asks less than `judge` where the settings allow that a message is there more than once.
 *
 * @param later as for `judge`
 * @returns what is wrong
 */
export function testify(run: Run, later: readonly Plan[] = []): string[] {
  const ledger = run.ledger()
  return run.plan.targets.flatMap(({ kind, id }, target) => {
    const entries = ledger.filter(entry => entry.target.id === id)
    const accounts = run.accounts.filter(({ request }) => request.target === target)
    const isOnce = hasRecords(run.plan.kind, kind) && !isBet(run)
    return [...testifyCounts(accounts, entries, isOnce, later.some(isForgetful)), ...testifyOrder(run, accounts, entries, isOnce)]
  })
}

/** Whether the documentation leaves open that a message comes twice: the platform is slower, or its history shorter. */
function isBet({ plan }: Run): boolean {
  return plan.faults.some(({ fault }) => isTooSlow(fault, plan.kind)) || isForgetful(plan)
}

/** What is equal counts together, and so do pictures, which look alike in every history. */
function testifyCounts(accounts: readonly Account[], entries: readonly LedgerEntry[], isOnce: boolean, isMisled: boolean): string[] {
  const classes = new Map<string, Word[]>()
  for (const word of wordsOf(accounts)) {
    const name = word.item.type === 'image' ? 'pictures' : word.item.token
    classes.set(name, [...classes.get(name) ?? [], word])
  }
  return [...classes].flatMap(([name, words]) => {
    const tokens = [...new Set(words.map(({ item }) => item.token))]
    const countUntil = (seq: number): number => entries.filter(entry => entry.seq <= seq)
      .reduce((sum, entry) => sum + tokens.reduce((found, token) => found + countIn(entry, token), 0), 0)
    const count = countUntil(Infinity)
    const sent = words.filter(({ told }) => told === 'sent').sort((a, b) => a.seq - b.seq)
    const open = words.filter(({ told }) => told === 'unanswered' || told === 'unknown')
    const problems: string[] = []
    const summary = words.map(({ told, account }) => `${told} (request ${account.request.name})`).join(', ')
    if (count < sent.length) problems.push(`${name} is there ${count} times: ${summary}`)
    // Each of them was there when it was told to be.
    for (const [index, { seq, account }] of sent.entries()) {
      if (count < sent.length || countUntil(seq) > index) continue
      problems.push(`${name} was told to be sent before it was there (request ${account.request.name})`)
    }
    const followedUp = open.filter(({ item, account }) => isMisled && item.type !== 'file' && account.request.deferred)
    const mayBeThere = sent.length + open.length + followedUp.length
    // A call that was taken for lost was carried out after all, and the further one was refused.
    const isLostBet = !isOnce && words.some(({ told, account: { attempts = 0 } }) => told === 'refused' && attempts > 1)
    if (count > mayBeThere && (isOnce || mayBeThere === 0) && !isLostBet) problems.push(`${name} is there ${count} times, more than ${mayBeThere}: ${summary}`)
    return problems
  })
}

/** What was accepted before another one was asked for is there before it, where nothing allows it to be overtaken. */
function testifyOrder({ plan }: Run, accounts: readonly Account[], entries: readonly LedgerEntry[], isOnce: boolean): string[] {
  const names = new Map<string, number>()
  const words = wordsOf(accounts)
  for (const { item } of words) names.set(item.token, (names.get(item.token) ?? 0) + 1)
  // Of one that may come twice the first counts: the other is what a slow platform was still carrying out.
  const placed = words.flatMap(({ item, told, isLeft, account }) => {
    if (told !== 'sent' || isLeft || item.type === 'image' || names.get(item.token) !== 1) return []
    const seqs = entries.filter(entry => countIn(entry, item.token) > 0).map(({ seq }) => seq)
    return seqs.length === 0 ? [] : [{ account, first: Math.min(...seqs), last: isOnce ? Math.max(...seqs) : Math.min(...seqs) }]
  })
  return placed.flatMap(({ account: earlier, last }) => {
    const { accepted, attempts = 0, request: { deferred }, items } = earlier
    if (accepted === undefined) return []
    // What waits holds its queue as long as it can be tried again, which only a text can.
    const holds = isOnce && attempts > 0 && attempts <= plan.kind.retries && items.every(({ type }) => type === 'text')
    if (deferred && !holds) return []
    return placed.filter(({ account: later, first }) => later !== earlier && later.issued > accepted && first < last)
      .map(({ account: later }) => `request ${earlier.request.name} was accepted before request ${later.request.name} was issued, and is there after it`)
  })
}

function wordsOf(accounts: readonly Account[]): Word[] {
  return accounts.flatMap(account => account.items.map((item, index): Word => {
    const { told, seq = Infinity, isLate = false } = account.results[index] ?? { told: 'unknown' }
    // Where a repeat went unheard after a failure that leaves the key free, that one may have been sent.
    const isOutdated = account.isUnheard && (told === 'refused' || told === 'unsent')
    return { item, account, told: isOutdated ? 'unknown' : told, seq, isLeft: isLate && !account.request.deferred }
  }))
}
