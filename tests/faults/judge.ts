import { createHash } from 'node:crypto'
import type { Call, LedgerEntry } from '../../simulator'
import type { Account, Told } from './account'
import { hasRecords } from './kind'
import { isForgetful, type Plan, type PlannedItem } from './plan'
import type { Run } from './run'
import { isTooSlow, isUnanswered } from './tracker'

/** What a run comes to. */
export interface Judgement {
  problems: string[]
  /** Messages that are there once more than they were sent, where that is allowed. */
  doubles: number
}

/** An item with what was told of it. */
interface Case {
  item: PlannedItem
  told: Told
  ids: readonly string[]
  /** Whether its caller was told that it is unanswered and did not wait on: then it may be overtaken. */
  isLeft: boolean
  account: Account
}

/**
 * Compares what callers were told with what is there.
 *
 * @param later the plans that were carried out in the same world after it: what is without an answer is still looked for then
 */
export function judge(run: Run, later: readonly Plan[] = []): Judgement {
  const ledger = run.ledger()
  const problems = [...run.problems]
  let doubles = 0
  for (const [target, { kind, id }] of run.plan.targets.entries()) {
    const entries = ledger.filter(entry => entry.target.id === id)
    const accounts = run.accounts.filter(({ request }) => request.target === target)
    const { plan } = run
    const isRecorded = hasRecords(plan.kind, kind)
    // Without a history that tells, nobody knows that it is there.
    const mayDouble = plan.kind.retryUnanswered && (!isRecorded || isForgetful(plan))
    const judged = judgeCounts(run, accounts, entries, { mayDouble, isMisled: later.some(isForgetful) })
    doubles += judged.doubles
    problems.push(...judged.problems, ...judgeIds(accounts, entries), ...judgeOrder(run, accounts, entries, { isRecorded, mayDouble }))
  }
  return { problems, doubles }
}

/** Each thing that is sent is there, and each as often as it may be. */
function judgeCounts(
  run: Run, accounts: readonly Account[], entries: readonly LedgerEntry[], { mayDouble, isMisled }: Record<'mayDouble' | 'isMisled', boolean>,
): Judgement {
  const problems: string[] = []
  let doubles = 0
  const cases = casesOf(accounts)
  // Pictures without a text look the same in every history: one may be taken for another that went unanswered, also where that was sent
  // again since and is there twice.
  const pictures = cases.filter(({ item }) => item.type === 'image')
  const isTwice = ({ item: { token } }: Case): boolean =>
    countAll(entries, token) > pictures.filter(({ item }) => item.token === token).length
  const arePooled = pictures.some(one => isOpen(one.told) || isTwice(one)) || run.plan.moments.some(({ what }) => what.kind === 'kill' || what.kind === 'stop')
  const classes = new Map<string, Case[]>()
  for (const one of cases) {
    const name = arePooled && one.item.type === 'image' ? 'pictures' : one.item.token
    classes.set(name, [...classes.get(name) ?? [], one])
  }
  for (const [name, members] of classes) {
    const tokens = new Set(members.map(({ item }) => item.token))
    const count = [...tokens].reduce((sum, token) => sum + countAll(entries, token), 0)
    const sent = members.filter(({ told }) => told === 'sent').length
    const most = sent + members.filter(({ told }) => isOpen(told)).length
    // A file is never sent again on suspicion.
    const isFile = members.every(({ item }) => item.type === 'file')
    const followedUp = members.filter(({ told, account }) => isMisled && isOpen(told) && account.request.deferred).length
    const spare = isFile ? 0 : (mayDouble ? unansweredCalls(run, tokens) : lostBets(run, tokens)) + followedUp
    doubles += Math.max(count - most, 0)
    if (count >= sent && count <= most + spare) continue
    const told = members.map(({ account, told, ids }) => `${[told, ...ids].join(' ')} (request ${account.request.name}: ${account.history.join(', ')})`)
    problems.push(`${name} is there ${count} times, not ${sent}${most + spare > sent ? ` to ${most + spare}` : ''}: ${told.join('; ')}`)
  }
  return { problems, doubles }
}

function casesOf(accounts: readonly Account[]): Case[] {
  return accounts.flatMap(account => account.items.map((item, index): Case => {
    const { told, ids, isLate = false } = account.results[index] ?? { told: 'unknown', ids: [] }
    const isOutdated = account.isUnheard && (told === 'refused' || told === 'unsent')
    return { item, told: isOutdated ? 'unknown' : told, ids, account, isLeft: isLate && !account.request.deferred }
  }))
}

function isOpen(told: Told): boolean {
  return told === 'unanswered' || told === 'unknown'
}

/** How many of these were in calls that may have gone unanswered. */
function unansweredCalls({ plan, sends }: Run, tokens: ReadonlySet<string>): number {
  const isDisturbed = plan.moments.length > 0 || plan.faults.some(({ fault }) => fault.kind === 'close')
  return sends.reduce((sum, { call, fault }) => sum + (isDisturbed || isUnanswered(fault) ? countInCall(call, tokens) : 0), 0)
}

/** How many of these were in calls that were carried out too late. */
function lostBets({ plan, sends }: Run, tokens: ReadonlySet<string>): number {
  return sends.reduce((sum, { call, fault }) => sum + (isTooSlow(fault, plan.kind) ? countInCall(call, tokens) : 0), 0)
}

/** A message has several items, all of which come once more with it. */
function countInCall({ params }: Call, tokens: ReadonlySet<string>): number {
  const text = JSON.stringify(params)
  return [...tokens].reduce((sum, token) => sum + text.split(token).length - 1, 0)
}

/** How often an item is there. */
function countAll(entries: readonly LedgerEntry[], token: string): number {
  return entries.reduce((sum, entry) => sum + countIn(entry, token), 0)
}

/** How often an item is in an entry. */
export function countIn(entry: LedgerEntry, token: string): number {
  if (token.startsWith('[')) return entry.text.split(token).length - 1
  const sha256 = createHash('sha256').update(Buffer.from(token, 'base64')).digest('hex')
  return entry.media.filter(medium => medium.sha256 === sha256).length
}

/** The items that are like no other, for which it can be told which entry is theirs. */
function uniqueCases(accounts: readonly Account[]): Case[] {
  const cases = casesOf(accounts)
  const counts = new Map<string, number>()
  for (const { item } of cases) counts.set(item.token, (counts.get(item.token) ?? 0) + 1)
  return cases.filter(({ item, told }) => item.type !== 'image' && told === 'sent' && counts.get(item.token) === 1)
}

/** The IDs that were told belong to the messages. */
function judgeIds(accounts: readonly Account[], entries: readonly LedgerEntry[]): string[] {
  return uniqueCases(accounts).flatMap(({ item, ids, account }) => {
    const own = new Set(entries.filter(entry => countIn(entry, item.token) > 0).map(({ messageId }) => String(messageId)))
    const wrong = item.type === 'file' ? [] : ids.filter(id => !own.has(id))
    return wrong.length === 0 ? [] : [`${item.token} was told to be ${wrong.join()}, but is ${[...own].join()} (request ${account.request.name})`]
  })
}

/** What was accepted before another was issued is there before it, unless it stepped aside. */
function judgeOrder(
  run: Run, accounts: readonly Account[], entries: readonly LedgerEntry[],
  { isRecorded, mayDouble }: { isRecorded: boolean, mayDouble: boolean },
): string[] {
  const problems: string[] = []
  // Of one that may come twice the first counts: the other is what a slow platform was still carrying out.
  const placeOf = (seqs: readonly number[]): number => mayDouble ? Math.min(...seqs) : Math.max(...seqs)
  const places = new Map<Account, { first: number, last: number }>()
  for (const { item, account, isLeft } of uniqueCases(accounts)) {
    if (isLeft) continue
    const own = entries.filter(entry => countIn(entry, item.token) > 0).map(({ seq }) => seq)
    const { first, last } = places.get(account) ?? { first: Infinity, last: -Infinity }
    if (own.length > 0) places.set(account, { first: Math.min(first, ...own), last: Math.max(last, placeOf(own)) })
  }
  for (const [earlier, before] of places) {
    if (mayStepAside(run, earlier, isRecorded)) continue
    for (const [later, after] of places) {
      if (earlier.accepted === undefined || later.issued <= earlier.accepted) continue
      if (before.last < after.first) continue
      problems.push(`request ${earlier.request.name} (${earlier.history.join(', ')}) was accepted before request ${later.request.name} `
        + `(${later.history.join(', ')}) was issued, but is there after it`)
    }
  }
  return problems
}

/** Whether it may have been overtaken while nobody knew whether it had arrived: only a text that can be tried again holds its queue. */
function mayStepAside({ plan, sends }: Run, { request, items, attempts = 0 }: Account, isRecorded: boolean): boolean {
  if (!request.deferred) return false
  const tokens = new Set(items.map(({ token }) => token))
  const calls = sends.filter(({ call }) => countInCall(call, tokens) > 0)
  const isDisturbed = plan.moments.length > 0 || plan.faults.some(({ fault }) => fault.kind === 'close')
  if (!isDisturbed && !calls.some(({ fault }) => isUnanswered(fault))) return false
  // It was not waited for any longer when the platform carried it out.
  if (calls.some(({ fault }) => isTooSlow(fault, plan.kind))) return true
  const isText = items.every(({ type }) => type === 'text')
  const canBeRepeated = isRecorded && !isForgetful(plan)
  return !isText || !canBeRepeated || Math.max(attempts, calls.length) > plan.kind.retries
}
