import { quietUntil } from '../../src/message/quiet'
import { writeAddress } from '../../src/message/target'
import { longestLimit } from '../../src/platform/port'
import { backoff, longestPreparation } from '../../src/relay/send/attempt'
import { nameOf } from '../../src/relay/look-up/claims'
import { isUnfinished, outcomeOf, type Delivery, type Open } from '../../src/relay/delivery/delivery'
import type { ProcessClock } from './clock'
import type { Disturbance, PlannedRequest } from './plan'
import { chatName, type Call, type Entry, type Question } from './platform'
import { longestStop, type Account, type Issue, type Run } from './run'

/**
 * The first judge. Compares what callers were told, and the records, with the messages in the chats. The second judge, `watch`, checks only
 * the calls. The functions at the end excuse what docs/not-promised.md and docs/flow.md do not promise.
 *
 * @returns the problems
 */
export function judge(run: Run): string[] {
  return [
    ...run.problems,
    ...run.accounts.flatMap(account => [
      ...judgeAnswers(run, account), ...judgeWords(run, account), ...judgeDoubles(run, account), ...judgeRecord(run, account),
      ...judgeExpiry(run, account), ...judgeTime(run, account), ...judgeWays(run, account), ...judgeDigest(run, account),
      ...judgeWaiting(run, account), ...judgePatience(run, account),
    ]),
    ...judgeTries(run), ...judgeLimits(run), ...judgeRestrictions(run), ...run.plan.isHeld ? judgeHeld(run) : [],
    ...watch(run),
  ]
}

/** Every caller gets an answer, and no answer is an internal error. */
function judgeAnswers(run: Run, { request, issues }: Account): string[] {
  return issues.flatMap(({ word, process }, nth) => {
    if (word?.kind === 'failed' && word.code === 'internal') return [`request ${request.name} failed by accident`]
    return word || isKilled(run, process) || isStoppedAtDisk(run, process) ? [] : [`request ${request.name} got no answer (${nth + 1})`]
  })
}

/** How long a queue with waiting callers may be idle beyond the time of a call, in milliseconds. */
const longestIdle = 12_000

/** No caller waits while its queue is idle, and none waits after its turn for longer than all calls may take. */
function judgeWaiting(run: Run, account: Account): string[] {
  const { request: { name, chat: place, mode }, marks, issues } = account
  const { chats, policy: { timeout, retries }, queues: { interval } } = run.plan
  const { target: { id }, calls } = chats[place] ?? { target: {}, calls: [] }
  if (isForLater(account) || hasWrongClock(run) || calls.some(call => call?.heldFor !== undefined)) return []
  // Each call waits for a flush, behind one that is running.
  const away = run.plan.moments.reduce((sum, { what }) => sum + ('away' in what ? what.away : 'ms' in what && isOfDisk(what) ? what.ms : 0), 0)
  const flushes = 2 * Math.max(run.plan.flushTakes, ...run.plan.moments.map(({ what }) => what.kind === 'slow' ? what.takes : 0))
  const slowness = flushes * (retries + 2) + (hasDiskFault(run) ? timeout : 0) + away
  const isOwn = (each: Call | Question): boolean => 'marks' in each && each.marks.some(mark => marks.includes(mark))
  return issues.flatMap(({ at, process, word }, nth) => {
    if (!word) return []
    const isHere = ({ chat }: Call | Question): boolean => chat.endsWith(`:${id}`)
    // During a rate limit nothing can happen.
    const limits = run.calls.flatMap(call => {
      const { outcome, answeredAt: begunAt = Infinity, fault: { limit } = {} } = call
      return limit && outcome === 'limited' && (limit.scope === 'account' || isHere(call)) ? [{ begunAt, until: begunAt + limit.after, isOwn: false }] : []
    })
    const happened = [...run.calls, ...run.questions].filter(each => each.process === process && isHere(each))
      .map(each => ({ begunAt: each.begunAt, until: Math.min(each.answeredAt ?? Infinity, each.begunAt + timeout), isOwn: isOwn(each) }))
      .concat(limits).sort((a, b) => a.begunAt - b.begunAt)
    const turn = Math.min(happened.find(({ begunAt, isOwn }) => isOwn && begunAt >= at)?.begunAt ?? Infinity, word.at)
    let busyUntil = at
    let idle = 0
    for (const { begunAt, until } of [...happened, { begunAt: turn, until: turn }]) {
      if (until < at || begunAt > turn) continue
      idle = Math.max(idle, begunAt - busyUntil)
      busyUntil = Math.max(busyUntil, until)
    }
    // An open call of an earlier request with the same key is looked up first.
    let longest = timeout + 2_000 + (nth > 0 ? 2 * timeout : 0) + slowness
    for (let failures = 1; failures <= retries; failures++) longest += Math.max(backoff(failures, 1), interval) + timeout
    return [
      ...idle > longestIdle + slowness ? [`request ${name} waited for its turn (${nth + 1}) while nothing happened for ${idle} ms`] : [],
      ...mode === 'single' && word.at - turn > longest ? [`request ${name} had its answer (${nth + 1}) ${word.at - turn} ms after its turn`] : [],
    ]
  })
}

/** The codes of answers that say only that this request was not accepted. */
const plainCodes: ReadonlySet<string> = new Set(['standby', 'store-down', 'storage-full'])

/** What callers were told agrees with the chats. */
function judgeWords(run: Run, account: Account): string[] {
  const { request, marks, issues } = account
  return issues.flatMap((issue, nth) => {
    const { word } = issue
    if (!word || word.kind === 'accepted') return []
    const isRetried = account.operations.some(({ kind, id }) => kind === 'retry' && id === issue.id)
    const isPlain = word.kind === 'failed' && plainCodes.has(word.code)
    const late = run.calls.filter(({ name, begunAt }) => name.startsWith(issue.id) && (isPlain || begunAt > word.at))
    if ((isPlain || (word.kind === 'failed' && word.outcome === 'unsent')) && late.length > 0 && !isRetried) {
      return [`request ${request.name} was told that nothing was accepted (${nth + 1}), and left nevertheless`]
    }
    if (isPlain || (word.kind === 'failed' && word.outcome === undefined)) return []
    const since = roundOf(run, account, nth)
    return marks.flatMap((mark, index) => {
      const outcome = word.kind === 'results' ? word.outcomes[index] : word.outcome
      // Ignores messages that an operator's retry sends at the same moment.
      const at = retriedAt(account) === word.at ? word.at - 1 : word.at
      const problems = judgeOutcome(run, { mark, outcome, since, at: outcome === 'sent' ? word.at : at })
      if (word.kind === 'results' && problems.length === 0) problems.push(...judgeIds(run, account, mark, word.messageIds[index] ?? []))
      return problems.map(problem => `request ${request.name} was told (${nth + 1}) of item ${index}: ${problem}`)
    })
  })
}

/** @param since when the first call was made that the outcome may cover, @param at when the outcome was told */
function judgeOutcome(
  run: Run, { mark, outcome, since, at }: { mark: string, outcome: string | undefined, since: number, at: number },
): string[] {
  // With `when_unknown: next`, an outcome other than `sent` is that of the last way. An earlier, unanswered way may have arrived.
  if (outcome !== 'sent' && goesOnUnknown(run, mark)) return []
  const entries = entriesOf(run, mark).filter(({ call }) => (call.begunAt >= since || outcome === 'sent') && call.begunAt <= at)
  if (outcome === 'sent' && !entries.some(({ time }) => time <= at) && !isTakenForEqual(run, mark) && !isLateEqual(run, mark)) return ['sent, but it is not there']
  const isAlienTime = Math.abs(run.plan.platform.offset) > 5_000 && isMisdated(run)
  if ((outcome === 'refused' || outcome === 'unsent') && !isAlienTime && entries.some(entry => !isCarriedOutLate(entry) && (!isMisreported(entry) || isClear(run, mark)))) return [`${outcome}, but it is there`]
  return []
}

/** The IDs that were told belong to the message. */
function judgeIds(run: Run, { request }: Account, mark: string, ids: readonly string[]): string[] {
  if (request.mode === 'batch' || isOneOfEquals(run, mark) || isTakenForEqual(run, mark)) return []
  const own = new Set(entriesOf(run, mark).map(({ id }) => id))
  return ids.every(id => own.has(id)) ? [] : [`${ids.join()}, but it is ${[...own].join() || 'not there'}`]
}

/** A message is in the chat once. */
function judgeDoubles(run: Run, account: Account): string[] {
  return account.marks.flatMap(mark => {
    const entries = entriesOf(run, mark).filter(entry => !isCarriedOutLate(entry))
    if (entries.length <= 1 || mayComeTwice(run, account, mark) || isRepeatedByNextWay(account, entries)) return []
    const starts = account.issues.flatMap(({ at }, nth) => roundOf(run, account, nth) === at ? [at] : [])
    // If the key was free again, an earlier delivery may still send its message by itself.
    const askedAt = ({ name, begunAt }: Call): number => account.issues.find(({ id }) => name.startsWith(id))?.at ?? begunAt
    const rounds = new Set(entries.map(({ call }) => starts.findLast(at => at <= askedAt(call))))
    return rounds.size >= entries.length ? [] : [`item ${mark} is there ${entries.length} times`]
  })
}

/** An accepted request ends, and its record tells how. */
function judgeRecord(run: Run, account: Account): string[] {
  const { request: { name, expiresIn, deferred }, marks, issues, operations, record } = account
  const accepted = issues.find(issue => issue.word?.kind === 'accepted')
  const isWithdrawn = operations.some(({ kind, result }) => kind === 'withdraw' && ['forgotten', 'unknown', 'store-down'].includes(result))
  if (!record) {
    const isSent = account.request.hasKey && issues.some(({ word }) => word?.kind === 'results' && word.outcomes.includes('sent'))
    return (accepted ?? isSent) && !isWithdrawn ? [`request ${name} was accepted, and has no record`] : []
  }
  if (isUnfinished(record.state)) return waitsForClock(run, account) ? [] : [`request ${name} is ${record.state} for ever`]
  if (record.state === 'expired' && expiresIn === undefined) return [`request ${name} expired without a time to expire`]
  const nth = issues.findIndex(issue => issue.id === record.id)
  const since = issues[nth]?.at ?? 0
  const problems = marks.flatMap((mark, index) => {
    const outcome = outcomeOf(record.results[index])
    // If the record says that nothing arrived, a repeat of the key or a retry of an earlier delivery may have sent the message since.
    const at = outcome === 'sent' ? Infinity : Math.min(retriedAt(account) - 1, issues[nth + 1]?.at ?? Infinity)
    return judgeOutcome(run, { mark, outcome, since, at }).map(problem => `the record of request ${name} says of item ${index}: ${problem}`)
  })
  const last = issues.findLast(issue => issue.word?.kind === 'results' && issue.word.id === record.id)
  const told = last?.word
  const goesOn = account.request.wishes?.route?.whenUnknown === 'next'
  if (last && told?.kind === 'results') {
    const isOld = isSuperseded(run, account, last)
    for (const [index, outcome] of told.outcomes.entries()) {
      const now = outcomeOf(record.results[index])
      // With `when_unknown: next` the outcome is that of the last way, and another relay may have continued with the next one.
      const isOfEarlierWay = goesOn && outcome === 'sent' && run.acquisitions.length > 1
      const isUnwritten = (now === 'unanswered' || (now === 'unsent' && outcome === 'refused')) && isNotWritten(run, last)
      // A repeat whose answer was lost in a kill may have sent the message again.
      const isRepeated = issues.at(-1) !== last
      const isLate = entriesOf(run, marks[index] ?? '').some(isCarriedOutLate)
      const mayChange = outcome === 'unanswered' || isOfEarlierWay || isUnwritten || isRepeated || isLate || operations.some(({ result }) => result !== 'conflict')
      if (now !== outcome && !mayChange && !(record.state === 'sent' && outcome !== 'sent') && !(isOld && now === 'unanswered')) {
        problems.push(`request ${name} was told that item ${index} is ${outcome}, and its record says ${now}`)
      }
    }
  }
  const calls = callsOf(run, account)
  const isUncalled = deferred && accepted && calls.length === 0 && operations.length === 0 && !isNeverReady(run, account)
  if (record.state === 'failed' && isUncalled) {
    const errors = record.results.map(result => result && !result.success ? result.error.code : 'none')
    problems.push(`request ${name} was accepted, and failed without a call: ${errors.join()}`)
  }
  const isRefused = calls.some(call => !isPostponed(account, call) && call.outcome !== 'sent') || isNeverReady(run, account)
  const mustArrive = deferred && accepted && operations.length === 0 && expiresIn === undefined
  if (record.state === 'failed' && mustArrive && !isRefused) {
    problems.push(`request ${name} was accepted, and failed although nothing refused it for good`)
  }
  const open = marks.filter((_, index) => outcomeOf(record.results[index]) === 'unanswered')
  const isLeft = deferred && operations.length === 0 && expiresIn === undefined && (account.digest ?? record).open.every(message => (
    message.calls <= run.plan.policy.retries && !hasEqual(run, account.digest ?? record, message)
  ))
  if (record.state === 'unanswered' && isLeft && open.every(mark => canTell(run, account, mark))) {
    problems.push(`request ${name} is unanswered for ever, although it is absent and has attempts left`)
  }
  return problems
}

/** A message that was accepted while its chat was closed arrives once, and in order. */
function judgeHeld(run: Run): string[] {
  const accepted = run.accounts.flatMap(({ request: { name }, issues: [issue], marks: [mark = ''] }) => (
    issue?.word?.kind === 'accepted' ? [{ name, at: issue.at, until: issue.word.at, entries: entriesOf(run, mark) }] : []
  ))
  return accepted.flatMap(({ name, at, entries: [entry, ...others] }) => {
    if (!entry || others.length > 0) return [`request ${name} is there ${entry ? others.length + 1 : 0} times`]
    const isLater = (before: Entry | undefined): boolean => before?.call.chat === entry.call.chat && before.time > entry.time
    const late = accepted.find(({ until, entries: [before] }) => until < at && isLater(before))
    return late ? [`request ${name} is there before request ${late.name}`] : []
  })
}

/**
 * A muted chat is tried again after a minute at the earliest, unless the platform reported it as open, another message has arrived since,
 * or this message had arrived before.
 */
function judgeTries(run: Run): string[] {
  const problems: string[] = []
  let muted: Call[] = []
  for (const call of run.calls) {
    const isSameQueue = ({ chat, process }: Call): boolean => chat === call.chat && process === call.process
    const before = muted.find(isSameQueue)
    const wait = before ? call.begunAt - before.begunAt : Infinity
    const isOpened = run.openings.some(({ chat, at }) => chat === call.chat && before && at > before.begunAt && at < call.begunAt)
    const hasArrived = before?.marks.some(mark => entriesOf(run, mark).some(({ time }) => time <= call.begunAt))
    if (call.outcome === 'muted' && wait < 59_000 && !hasArrived && !isOpened) problems.push(`${call.chat} is muted, and was tried again after ${wait} ms`)
    if (call.outcome !== 'muted' && call.outcome !== 'sent') continue
    muted = muted.filter(each => !isSameQueue(each))
    // If the relay ended before the answer, the next relay does not know that the chat is muted. Nor is an answer heard after a log-out.
    const { begunAt, answeredAt = Infinity, process: own, leftAt } = call
    const over = [...run.endings, ...run.acquisitions]
    const isHeard = leftAt === undefined && !over.some(({ process, at }) => process === own && at >= begunAt && at <= answeredAt)
    if (call.outcome === 'muted' && isHeard) muted.push(call)
  }
  return problems
}

/** No call is made during a rate limit that the process knows. */
function judgeLimits({ calls }: Run): string[] {
  return calls.flatMap(({ chat, process, outcome, answeredAt = Infinity, fault }) => {
    const { scope, after } = fault?.limit ?? { scope: 'chat', after: 0 }
    if (outcome !== 'limited') return []
    const [sid = ''] = chat.split(' ')
    const early = calls.find(call => call.process === process && call.begunAt > answeredAt && call.begunAt < answeredAt + after
      && (scope === 'chat' ? call.chat === chat : call.chat.startsWith(`${sid} `)))
    const wait = early && early.begunAt - answeredAt
    return early ? [`${chat} wanted no calls for ${after} ms, and ${early.marks.join()} was called for after ${wait} ms`] : []
  })
}

/** A caller who would have to wait for more than 10 seconds gets 503. After such a limit, its request makes no further call. */
function judgePatience(run: Run, account: Account): string[] {
  // After an operator's retry, no caller waits any more.
  if (isForLater(account) || account.issues.length > 1 || account.operations.some(({ kind }) => kind === 'retry')) return []
  // A frozen process may find the limit over when it continues.
  if (run.plan.moments.some(({ what }) => what.kind === 'freeze')) return []
  const calls = callsOf(run, account)
  // A call during which the account was logged out is open, whatever is answered later: its caller waits for it.
  const isLong = ({ outcome, fault, leftAt }: Call): boolean => outcome === 'limited' && leftAt === undefined && (fault?.limit?.after ?? 0) > longestLimit
  const { answeredAt = Infinity } = calls.find(isLong) ?? {}
  // A message that another plugin held until the limit was over gets its call nevertheless, and so do the parts of its batch behind it.
  const next = calls.find(({ begunAt }) => begunAt > answeredAt)
  return next && next.fault?.heldFor === undefined ? [`request ${account.request.name} was called for again after a long limit`] : []
}

/** An account is restricted only after three lost calls to two chats, without a success between them. */
function judgeRestrictions({ restrictions, calls, ledger, plan: { policy: { timeout } } }: Run): string[] {
  return restrictions.flatMap(({ at, process, sid }) => {
    const own = calls.filter(call => call.process === process && call.chat.startsWith(`${sid} `) && call.begunAt < at)
    // A success after the time of a call, or after the call had settled, does not interrupt the series of lost calls.
    const last = own.findLastIndex(({ outcome, begunAt, answeredAt = Infinity }) => (
      outcome === 'sent' && answeredAt < Math.min(at, begunAt + timeout)
    ))
    const isSeen = (call: Call): boolean => ledger.some(entry => entry.call === call && entry.time < at && !isCarriedOutLate(entry))
    const lost = own.slice(last + 1).filter(call => !isSeen(call))
    const isFalse = lost.length < 3 || new Set(lost.map(({ chat }) => chat)).size < 2
    return isFalse ? [`${sid} is restricted after ${lost.length} calls that came to nothing`] : []
  })
}

/** No call is made for an expired message. */
function judgeExpiry(run: Run, account: Account): string[] {
  const { request: { name, expiresIn, wishes }, issues, operations } = account
  if (expiresIn === undefined || operations.length > 0 || hasWrongClock(run) || hasDiskFault(run)) return []
  // After a start or a reload, the time counts from when the relay is ready.
  if (issues.some(({ at }) => run.endings.some(ending => ending.at <= at && ending.at > at - 7_000))) return []
  const [first] = callsOf(run, account)
  // The message was in time for its turn, but another plugin of the bot held it.
  if (placesOf(account).some(place => run.plan.chats[place]?.calls.some(call => call?.heldFor !== undefined))) return []
  // A message that was in time for its turn, and was leaving when its relay ended, is looked up before it leaves.
  const mustLast = mustBeKept(account.request) || (wishes?.digest ?? wishes?.route) !== undefined
  if (first && mustLast && run.endings.some(({ at }) => at >= (issues[0]?.at ?? 0) && at <= first.begunAt)) return []
  const issue = first && issues.findLast(issue => issue.at <= first.begunAt)
  // Its row is flushed after its turn, behind a flush that is running.
  const late = 100 + 2 * run.plan.flushTakes
  return !first || !issue || first.begunAt <= issue.at + (wishes?.sendIn ?? 0) + expiresIn + late ? [] : [`request ${name} left when its time was over`]
}

/** Messages leave neither before their scheduled time nor, unless urgent, in quiet hours. */
function judgeTime(run: Run, account: Account): string[] {
  const { request: { name, wishes: { sendIn = 0, quiet, urgent } = {} }, issues } = account
  const [first] = callsOf(run, account)
  if (!first || hasWrongClock(run)) return []
  // Messages that were in time for their turn, or were leaving when their relay ended, may finish in quiet hours.
  const isHeldBack = hasDiskFault(run) || run.endings.length > 0
    || run.plan.chats.some(({ calls }) => calls.some(call => call?.heldFor !== undefined))
  const due = Math.min(...issues.map(({ wall }) => wall)) + sendIn
  const isQuiet = quiet && !urgent && !isHeldBack && quietUntil(quiet, first.wall) !== undefined
  return [
    ...first.wall < due ? [`request ${name} left ${due - first.wall} ms before its time`] : [],
    ...isQuiet ? [`request ${name} left in quiet hours`] : [],
  ]
}

/** The record of a delivery with several ways names every way that was tried. */
function judgeWays(run: Run, account: Account): string[] {
  const { request: { name }, record, issues, operations } = account
  const { route } = record?.flow ?? {}
  // Another attempt of the request has its own record.
  if (!record || !route || operations.some(({ kind, id }) => kind === 'retry' && id !== record.id)) return []
  const told = [...route.past.map(({ target }) => target), writeAddress(route.ways[route.index] ?? record)]
  const asked = issues.find(({ id }) => id === record.id)?.at ?? 0
  const gone = callsOf(run, account).filter(({ begunAt }) => begunAt >= asked).map(({ chat }) => chat)
  const isTold = (chat: string): boolean => told.some(target => chat.endsWith(` ${target.slice(target.indexOf(target.includes('group:') ? 'group:' : 'private:'))}`))
  return gone.every(isTold) && route.past.length >= route.index ? [] : [`request ${name} went to ${gone.join()}, and tells of ${told.join()}`]
}

/** A member of a digest ends with the outcome of the digest. Urgent messages, and others than texts, leave by themselves. */
function judgeDigest(run: Run, { request: { name, items, wishes }, marks, record, digest, operations }: Account): string[] {
  const isShared = run.calls.some(call => marks.some(mark => call.marks.includes(mark)) && call.marks.some(mark => !marks.includes(mark)))
  const isFit = !wishes?.urgent && items.every(({ type }) => type === 'text') && (wishes?.digest !== undefined || wishes?.isHook)
  // A kill may come between the end of the members and the end of the digest.
  const isKnownToBeThere = record?.state === 'sent' && digest?.state === 'unanswered' && run.endings.length + run.acquisitions.length > 1
  return [
    ...isShared && !isFit ? [`request ${name} left with others`] : [],
    ...record && digest && !isKnownToBeThere && operations.length === 0 && outcomeOf(record.results[0]) !== outcomeOf(digest.results[0])
      ? [`request ${name} is ${record.state}, and its digest ${digest.state}`]
      : [],
  ]
}

/** The second judge: checks what the calls alone show. */
export function watch(run: Run): string[] {
  const { accounts, calls, plan: { policy: { retries, timeout }, queues: { interval } } } = run
  const problems: string[] = []
  for (const account of accounts) {
    const asked = account.issues.length + account.operations.filter(({ kind }) => kind === 'retry').length
    // A batch waits as a whole.
    const waits = waitsOf(run, account, callsOf(run, account).filter(call => isPostponed(account, call)).length)
    for (const mark of account.marks) {
      const own = calls.filter(({ marks }) => marks.includes(mark))
      // Calls of a deferred message in a closed chat do not count.
      const isForgotten = (call: Call): boolean => isForgottenRefusal(run, call) || isForgottenAbsence(run, call, own)
      const count = own.filter(call => !isPostponed(account, call) && !isForgotten(call)).length
      const { route, digest, isHook } = account.request.wishes ?? {}
      // Each way has its own retries. A member of a refused digest leaves by itself.
      const most = (retries + 1) * (asked + waits) * (route?.ways.length ?? 1) * (digest !== undefined || isHook ? 2 : 1)
      // A part of a refused message leaves by itself, with its own retries.
      if (count > most * (account.marks.length > 1 ? 2 : 1)) problems.push(`item ${mark} was called for ${count} times, not ${most}`)
    }
    problems.push(...watchOwners(run, account), ...watchWithdrawn(run, account), ...watchRetried(run, account))
  }
  const queues = new Map<string, Call[]>()
  for (const call of calls) queues.set(call.chat, [...queues.get(call.chat) ?? [], call])
  for (const queue of queues.values()) {
    for (const [place, call] of queue.entries()) {
      const before = queue[place - 1]
      if (before?.process !== call.process) continue
      const answeredAt = before.answeredAt ?? Infinity
      // A call ends early, so that there is time for a look-up. Its time includes the save before it and the work of other plugins.
      const start = before.begunAt - (before.fault?.heldFor ?? 0)
      const over = Math.min(answeredAt, before.leftAt ?? Infinity, start + timeout - Math.min(1_500, timeout / 3) - 500)
      const hasEnded = isEnded(run, before, call) || isAnsweredElsewhere(queue, before, call) || hasWrongClock(run)
        || isGivenUp(run, before, call) || isRepeat(queue, before) || isAfterLimit(run, before) || isRepeatable(run, before, call)
      if (call.begunAt < over && !hasEnded) problems.push(`the calls of ${before.marks.join()} and ${call.marks.join()} overlap`)
      const left = answeredAt <= over && !hasEnded ? answeredAt : before.begunAt
      if (call.begunAt - left < interval && !hasWrongClock(run)) problems.push(`${call.begunAt - left} ms between ${before.marks.join()} and ${call.marks.join()}`)
    }
  }
  return [...problems, ...watchOrder(run), ...run.accounts.flatMap(account => watchSettling(run, account))]
}

/** A text that was leaving when its relay ended holds its queue until it has settled, has arrived, or gets another call. */
function watchSettling(run: Run, account: Account): string[] {
  const { acquisitions, endings, ledger, plan: { policy: { retries, timeout }, platform: { hasHistory, idempotentFor } } } = run
  const { request: { name, items, expiresIn, wishes = {} }, issues, operations, marks } = account
  const isSimple = issues.length === 1 && operations.length === 0 && expiresIn === undefined && !wishes.route && wishes.digest === undefined
  const isText = items.every(({ type }) => type === 'text') && !marks.some(mark => isOneOfEquals(run, mark))
  const isAlone = callsOf(run, account).every(call => call.marks.every(mark => marks.includes(mark)))
  const canTell = hasHistory && idempotentFor === undefined && !hasWrongClock(run)
  if (!canTell || !mustBeKept(account.request) || !isForLater(account, true) || !isSimple || !isText || !isAlone) return []
  const calls = callsOf(run, account)
  return calls.slice(0, retries).flatMap((last, index) => {
    const { process, chat, answeredAt = Infinity, begunAt, settle } = last
    // After its time, a call may have ended and be looked up.
    const openUntil = Math.min(answeredAt, begunAt + timeout)
    const ended = endings.find(ending => ending.process === process && ending.at >= begunAt && ending.at < openUntil)
    const next = ended && acquisitions.find(({ at }) => at > ended.at)
    // A relay that is ending still receives the answers of its calls.
    if (!next || (ended.kind === 'reload' && answeredAt < next.at)) return []
    const over = [...endings.filter(ending => ending.process === next.process), ...acquisitions].filter(({ at }) => at > next.at)
    const arrived = ledger.filter(({ call }) => calls.includes(call))
    // A relay that knows only when the call was made counts the settling time from its own start.
    const settled = (ended.kind === 'reload' ? begunAt : next.at) + settle
    const until = Math.min(settled, calls[index + 1]?.begunAt ?? Infinity, ...over.map(({ at }) => at), ...arrived.map(({ time }) => time))
    const isOf = ({ process, begunAt }: Call): boolean => process === next.process && begunAt > next.at && begunAt < until
    // Messages that were accepted earlier are before it in the queue, even if they came late from another way or a digest.
    const issuedAt = ({ issues: [first] }: Account): number => first?.at ?? 0
    const later = run.accounts.filter(other => issuedAt(other) > issuedAt(account))
    // Messages with a call before its own get their old place back.
    const earlier = new Set(run.calls.filter(call => call.begunAt < begunAt).flatMap(call => call.marks))
    const wasTried = ({ marks }: Call): boolean => marks.some(mark => earlier.has(mark))
    const isBehind = (call: Call): boolean => !wasTried(call) && later.some(({ marks }) => marks.some(mark => call.marks.includes(mark)))
    const others = run.calls.filter(call => call.chat === chat && isOf(call) && isBehind(call))
    return others.map(({ marks, begunAt }) => `${marks.join()} left ${settled - begunAt} ms before request ${name} had settled`)
  })
}

/** A standby makes no calls. Those for durable messages are made by a process that has the file, and only until another one has it. */
function watchOwners({ acquisitions, calls }: Run, { request, marks }: Account): string[] {
  return calls.filter(call => call.marks.some(mark => marks.includes(mark))).flatMap(({ process, begunAt, marks }) => {
    if (!acquisitions.some(each => each.process === process && each.at <= begunAt)) return [`a standby called for ${marks.join()}`]
    if (!mustBeKept(request)) return []
    const own = acquisitions.findLastIndex(each => each.process === process && (each.at < begunAt || (each.at === begunAt && each.isOpen)))
    const isOver = acquisitions.slice(own).some(other => other.process !== process && other.isOpen && other.at < begunAt)
    return isOver || !acquisitions[own]?.isOpen ? [`${marks.join()} was called for by a relay that does not have the folder`] : []
  })
}

/** What was withdrawn does not leave. */
function watchWithdrawn({ calls }: Run, { request, operations }: Account): string[] {
  const withdrawn = operations.filter(({ kind, result }) => kind === 'withdraw' && result === 'forgotten')
  const hasLeft = withdrawn.some(({ id, at }) => calls.some(({ name, begunAt }) => name.startsWith(id) && begunAt > at))
  return hasLeft ? [`request ${request.name} left after it was withdrawn`] : []
}

/** What was retried is tried, also after a power cut. */
function watchRetried(run: Run, account: Account): string[] {
  const { request, operations, record } = account
  const retried = operations.findLast(({ kind, result }) => kind === 'retry' && result === 'done')
  const isTried = callsOf(run, account).some(({ begunAt }) => retried && begunAt >= retried.at - longestStop)
  return retried?.id === record?.id && record?.state === 'failed' && !isTried && !isNeverReady(run, account)
    ? [`request ${request.name} was retried, and not tried again`]
    : []
}

/** A message leaves before another that was issued later, if both needed only one call. */
function watchOrder(run: Run): string[] {
  const ready = run.accounts.flatMap(account => {
    const calls = callsOf(run, account)
    const [first] = calls
    const isSimple = first && account.operations.length === 0 && account.issues.length === 1 && calls.every(({ outcome }) => outcome === 'sent')
    const issue = account.issues[0]
    const { urgent, sendIn, digest, quiet, route } = account.request.wishes ?? {}
    if (sendIn !== undefined || route || (!urgent && (digest !== undefined || quiet))) return []
    if (!isSimple || !issue || calls.length > account.marks.length) return []
    // A relay that has just started accepts nothing before it has the folder.
    const start = run.acquisitions.find(({ process, at }) => process === issue.process && at >= issue.at && at <= first.begunAt)
    return [{ account, first, issue, accepted: start?.at ?? issue.at }]
  })
  return ready.flatMap(before => ready.flatMap(after => (
    before.first.chat === after.first.chat && before.first.process === after.first.process
    && before.issue.process === after.issue.process && before.accepted < after.issue.at
    && after.first.begunAt < before.first.begunAt && !mayStepAside(run, before)
      ? [`request ${before.account.request.name} was issued before request ${after.account.request.name}, and left after it`]
      : []
  )))
}

/** Whether the answer to a call was that nothing can be sent now. A deferred message is then tried again until it is possible. */
function isPostponed(account: Account, { outcome }: Call): boolean {
  return outcome === 'unsent' || outcome === 'limited' || outcome === 'logged-out' || (isForLater(account) && (outcome === 'about-target' || outcome === 'muted'))
}

/** A deferred message that is not ready within a minute counts as refused. */
function isNeverReady({ plan: { chats } }: Run, account: Account): boolean {
  return placesOf(account).some(place => chats[place]?.calls.some(fault => (fault?.heldFor ?? 0) >= longestPreparation))
}

/** Whether a call was refused while its relay was ending. The next relay tries a deferred message again. */
function isForgottenRefusal({ endings }: Run, { outcome, process, answeredAt = Infinity }: Call): boolean {
  return outcome === 'refused' && endings.some(ending => ending.process === process && ending.at >= answeredAt && ending.at <= answeredAt + longestStop)
}

/** Whether a message settled without arriving, and its process ended before the next call: the next process counts anew. */
function isForgottenAbsence({ endings, ledger, plan: { policy: { settleTime } } }: Run, call: Call, own: readonly Call[]): boolean {
  if (ledger.some(entry => entry.call === call)) return false
  const next = Math.min(...own.filter(({ begunAt }) => begunAt > call.begunAt).map(({ begunAt }) => begunAt))
  return endings.some(({ process, at }) => process === call.process && at >= call.begunAt + settleTime && at < next)
}

/** Whether a request has to outlive its process. */
function mustBeKept({ hasKey, deferred }: PlannedRequest): boolean {
  return hasKey || deferred !== undefined
}

/**
 * Whether no caller waits for the delivery: it is deferred, or an operator retried it.
 *
 * @param isSure whether quiet hours and digests do not count, which defer a delivery only at some times
 */
function isForLater({ request: { deferred, wishes }, operations }: Account, isSure = false): boolean {
  const { sendIn, route, digest, quiet } = wishes ?? {}
  const isHeld = (sendIn ?? route ?? (isSure ? undefined : digest ?? quiet)) !== undefined
  return deferred !== undefined || isHeld || operations.some(({ kind, result }) => kind === 'retry' && result === 'done')
}

function entriesOf({ ledger }: Run, mark: string): Entry[] {
  return ledger.filter(({ call }) => call.marks.includes(mark))
}

function callsOf({ calls }: Run, { marks }: Account): Call[] {
  return calls.filter(call => call.marks.some(mark => marks.includes(mark)))
}

/** From when on an answer counts. All requests with one key are one, for as long as the key is known. */
function roundOf(run: Run, { request: { hasKey, event }, issues }: Account, nth: number): number {
  let first = hasKey ? issues[0] : issues[nth]
  // Where a round may have begun, or not, both the one before and this one can be over.
  let sure = first
  const lifetime = event?.lifetime ?? Infinity
  for (const issue of issues.slice(0, nth + 1)) {
    const { at, wall, word } = issue
    // The machine may have slept before the look-up, and its clock may have been set between the request and the start of its delivery.
    const isWrong = hasWrongClock(run)
    // A relay that has just begun may have waited for its folder.
    const wait = word && (isWrong || hasDiskFault(run)) ? word.at - at : 0
    const ageOf = (from = issue): number => Math.max(wall - from.wall, isWrong ? at - from.at : 0)
    const isOver = ageOf(sure) >= lifetime
    if (hasKey && (isOver || ageOf(first) + wait >= lifetime)) first = issue
    if (hasKey && isOver) sure = issue
  }
  return first?.at ?? 0
}

/** The chats that a request may go to, by their places in the plan. */
function placesOf({ request: { chat, wishes } }: Account): number[] {
  return [chat, ...wishes?.route?.ways ?? []]
}

/** When an operator retried a request, or a kill cut the answer to that short. */
function retriedAt({ operations }: Account): number {
  return operations.find(({ kind, result }) => kind === 'retry' && (result === 'done' || result === 'unknown'))?.at ?? Infinity
}

// What the documentation does not promise (docs/not-promised.md, docs/flow.md).

/**
 * A call that the platform carries out after the settling time may come twice, or be in the chat although its caller was told `refused`.
 */
function isCarriedOutLate({ time, call }: Entry): boolean {
  return time - call.begunAt >= call.settle
}

/**
 * If the history cannot tell, `chatRetryUnanswered: true` resends texts and pictures, and `retry` resends anything; so does a refusal
 * without a known cause, files only without a history. A history without faults can tell if it has no equal message and its times are
 * comparable.
 */
function mayComeTwice(run: Run, { operations }: Account, mark: string): boolean {
  const { platform: { hasHistory, retriesUnanswered } } = run.plan
  const isHeavy = entriesOf(run, mark).some(({ call }) => /\[(?:file|video)/.test(call.likeness))
  const isAsked = operations.some(({ kind, result }) => kind === 'retry' && result === 'done')
  if (isForgottenByPlatform(run, mark) || isMisdated(run)) return true
  const isRepeated = entriesOf(run, mark).some(isMisreported) ? !isHeavy || !hasHistory : retriesUnanswered && !isHeavy
  return (isAsked || isRepeated) && !isClear(run, mark)
}

/** The platform refused a message without a known cause, and carried it out. Without a clear history, the relay believes that. */
function isMisreported({ call: { fault } }: Entry): boolean {
  return fault?.answer === 'refused'
}

/** Whether the history shows a message at any time. */
function isClear(run: Run, mark: string): boolean {
  const { platform: { hasHistory, offset }, chats, moments } = run.plan
  return hasHistory && Math.abs(offset) < 5_000 && moments.length === 0 && !isOneOfEquals(run, mark)
    && chats.every(({ before, questions }) => before > 500 && questions.every(question => !question))
}

/** With a fixed tolerance for the clocks, a page without a known message cannot tell if the clocks differ by more. */
function isMisdated(run: Run): boolean {
  const { platform: { offset }, moments } = run.plan
  return (Math.abs(offset) > 5_000 || hasWrongClock(run)) && moments.some(({ what }) => ['chatter', 'restart', 'kill'].includes(what.kind))
}

/** A clock that was set back, or is behind that of the relay before, has not reached the scheduled time yet. */
function waitsForClock(run: Run, { request: { wishes } }: Account): boolean {
  return run.plan.moments.some(({ what }) => what.kind === 'clock' && (what.by < 0 || run.plan.hosts > 1)) && (wishes?.sendIn ?? wishes?.quiet) !== undefined
}

function goesOnUnknown({ accounts }: Run, mark: string): boolean {
  return accounts.some(({ marks, request: { wishes } }) => marks.includes(mark) && wishes?.route?.whenUnknown === 'next')
}

/** With `when_unknown: next` a message may arrive by several ways, and a repeat of its key sends it there again. */
function isRepeatedByNextWay({ request: { wishes } }: Account, entries: readonly Entry[]): boolean {
  const ways = entries.map(({ call: { chat, name } }) => `${name.split(' ', 1).join()} ${chat}`)
  return wishes?.route?.whenUnknown === 'next' && new Set(ways).size === entries.length
}

/**
 * A platform that deduplicates calls may carry one out twice if the clock was set or the machine slept, because the relay then
 * underestimates the time between two calls.
 */
function isForgottenByPlatform(run: Run, mark: string): boolean {
  const { platform: { idempotentFor = Infinity }, moments } = run.plan
  const isMistimed = moments.some(({ what }) => what.kind === 'clock' || (what.kind === 'freeze' && what.isAsleep))
  const times = entriesOf(run, mark).map(({ call }) => call.begunAt)
  return isMistimed && Math.max(...times) - Math.min(...times) >= idempotentFor
}

/** Whether the history can show that a message is absent, whatever happens to the relays. */
function canTell(run: Run, account: Account, mark: string): boolean {
  const { request } = account
  const places = placesOf(account)
  const { plan: { platform: { hasHistory, offset, accounts }, chats, moments } } = run
  const isAlone = entriesOf(run, mark).length === 0 && !isOneOfEquals(run, mark)
  return hasHistory && (request.hasBot || accounts.length === 1) && Math.abs(offset) < 5_000 && isAlone
    && moments.every(({ what }) => isOfDisk(what) || ['kill', 'power', 'stop', 'reload', 'cut', 'mute'].includes(what.kind))
    && chats.every(({ before, questions }, chat) => !places.includes(chat) || (before > 500 && questions.every(question => !question)))
}

/** The look-up compares content, so that equal messages cannot be told apart. */
function isOneOfEquals({ calls }: Run, mark: string): boolean {
  const likenesses = new Set(calls.filter(({ marks }) => marks.includes(mark)).map(({ chat, likeness }) => `${chat} ${likeness}`))
  return calls.some(({ chat, likeness, marks }) => !marks.includes(mark) && likenesses.has(`${chat} ${likeness}`))
}

/** Whether a message that a kill deprived of its call has an equal one. */
function hasEqual({ calls }: Run, { id, bot, target }: Delivery, { likeness, indices }: Open): boolean {
  const isEqual = (call: Call): boolean => call.likeness === likeness && call.chat === chatName(bot, target)
  return calls.some(call => isEqual(call) && !`${call.name} `.startsWith(`${nameOf(id, indices)} `))
}

/** A message that is carried out after the settling time may be taken for an equal one with a later call. */
function isLateEqual({ calls, ledger }: Run, mark: string): boolean {
  return calls.some(({ marks, chat, likeness }) => marks.includes(mark) && ledger.some(entry => (
    entry.call.chat === chat && entry.call.likeness === likeness && isCarriedOutLate(entry)
  )))
}

/**
 * A kill, or a new owner, forgets messages without a key, and so does a failure of the disk right after them. A forgotten message may be
 * taken for an equal one of the present process, and so may one that was refused without a known cause and shows too late.
 */
function isTakenForEqual(run: Run, mark: string): boolean {
  const { accounts, acquisitions, calls, ledger, endings } = run
  const isUnknown = ({ process, begunAt, answeredAt = begunAt, marks }: Call): boolean => {
    const { request } = accounts.find(account => account.marks.some(mark => marks.includes(mark))) ?? {}
    const isLast = (at: number): boolean => at >= begunAt && at <= begunAt + 120_000
    return request !== undefined && !mustBeKept(request) && (
      endings.some(ending => ending.process === process && isSudden(ending) && isLast(ending.at))
      || acquisitions.some(({ at, process: owner }) => owner !== process && at <= begunAt + 120_000)
      || (hasDiskFault(run) && acquisitions.some(({ at, process: own }) => own === process && at >= begunAt && at <= answeredAt + 1_000))
    )
  }
  const own = calls.filter(({ marks }) => marks.includes(mark))
  // The relay of a request without a key does not know what another owner has sent since.
  const mustLast = accounts.some(({ marks, request }) => marks.includes(mark) && mustBeKept(request))
  const isOfNextOwner = ({ process }: Call): boolean => !mustLast && own.some(call => (
    call.process !== process && acquisitions.some(acquisition => acquisition.process === process && acquisition.at > call.begunAt)
  ))
  const items = accounts.flatMap(({ marks, request }) => request.items.filter((_, index) => marks[index] === mark))
  const looks = items.flatMap(({ type, look }) => [look, `[file ${look}]`, `[${type}]`])
  // A kill may have come between the save before its first call and that call.
  // Of an equal message that came twice, one entry is unclaimed.
  const isDoubled = ({ marks }: Call): boolean => marks.some(each => ledger.filter(({ call }) => call.marks.includes(each)).length > 1)
  const isUnclaimed = (call: Call): boolean => isUnknown(call) || isOfNextOwner(call) || isDoubled(call) || call.fault?.answer === 'refused'
  return ledger.some(({ call }) => !call.marks.includes(mark) && isUnclaimed(call) && (
    own.length === 0 ? looks.includes(call.likeness) : own.some(({ chat, likeness }) => chat === call.chat && likeness === call.likeness)
  ))
}

/** A caller whose request waits for a flush when the process ends may get no answer. */
function isStoppedAtDisk(run: Run, process: ProcessClock): boolean {
  return hasDiskFault(run) && run.endings.some(ending => ending.process === process)
}

/** A killed process gives no answer. Its callers learn that from the broken connection. */
function isKilled({ endings }: Run, process: ProcessClock): boolean {
  return endings.some(ending => ending.process === process && isSudden(ending))
}

function isSudden({ kind }: Run['endings'][number]): boolean {
  return kind === 'kill' || kind === 'power'
}

/** The end is flushed behind. After a power cut, or if it could not be written, the next relay tells what it can. */
function isNotWritten({ losses, acquisitions, ...run }: Run, { at, word }: Issue): boolean {
  const isLost = losses.some(loss => word && loss.since <= word.at && loss.at >= at)
  return isLost || (hasDiskFault(run) && acquisitions.some(next => next.at >= at))
}

/**
 * After another relay took over, the record has what that relay found out, even about messages that the relay before knew to have arrived.
 */
function isSuperseded({ acquisitions }: Run, { request }: Account, { word, process }: Issue): boolean {
  if (!word || !mustBeKept(request)) return false
  const own = acquisitions.findLastIndex(each => each.process === process && each.at <= word.at)
  return own >= 0 && acquisitions.slice(own).some(other => other.process !== process && other.at <= word.at)
}

/** With a disk that is full, slow or away, a message that was in time for its turn may leave a little later. */
function hasDiskFault({ plan: { moments } }: Pick<Run, 'plan'>): boolean {
  return moments.some(({ what }) => isOfDisk(what))
}

function isOfDisk({ kind }: Disturbance): boolean {
  return kind === 'full' || kind === 'slow' || kind === 'unflushed' || kind === 'unusable'
}

/** Expiry is off by as much as the clock was set. */
function hasWrongClock({ plan: { moments } }: Run): boolean {
  return moments.some(({ what }) => what.kind === 'clock' || what.kind === 'freeze')
}

/**
 * An unanswered deferred text keeps its place until it has settled, unless its bot is away or the relay frozen then; other messages step
 * aside. It stays unanswered for longer only if the history does not answer or is empty, and for good unless the platform's clock is
 * behind: then the next message makes the history look as if it reached back. A message that was leaving when its relay ended or lost its
 * data steps aside as well.
 */
function mayStepAside(
  { acquisitions, endings, plan: { chats, moments, platform: { offset }, policy: { retries } } }: Run,
  { account: { request }, first, issue, accepted }: { account: Account, first: Call, issue: Issue, accepted: number },
): boolean {
  const { sid, before = 0, questions = [] } = chats[request.chat] ?? {}
  const isAway = moments.some(({ what }) => what.kind === 'freeze' || ('sid' in what && what.sid === sid))
  const isToldInTime = questions.every(question => !question) && (before > 0 || offset > -5_000)
  const holds = retries > 0 && !isAway && isToldInTime && request.items.every(({ type }) => type === 'text')
  const until = holds ? accepted : first.begunAt
  return (holds ? acquisitions : [...endings, ...acquisitions]).some(({ at }) => at >= issue.at && at <= until)
}

/** How often the retries may start over: they do so after a message had to wait for its bot or the disk. */
function waitsOf(run: Run, account: Account, unsent: number): number {
  // And after another plugin of the bot held the message.
  const held = run.plan.chats[account.request.chat]?.calls.filter(call => call?.heldFor !== undefined).length ?? 0
  return isForLater(account) ? unsent + held + timesAway(run, account) + (hasDiskFault(run) || hasWrongClock(run) ? 2 : 0) : 0
}

/** How often the bot of a request was disconnected. */
function timesAway({ calls, plan: { chats, moments } }: Run, { request }: Account): number {
  const sid = chats[request.chat]?.sid
  return calls.filter(({ chat, fault }) => fault?.cutAfter !== undefined && chat.startsWith(`${sid} `)).length
    + moments.filter(({ what }) => 'sid' in what && what.sid === sid).length
}

/** Only the first call has its full time. The caller's time may end during a later one. */
function isRepeat(queue: readonly Call[], { marks, begunAt }: Call): boolean {
  return queue.some(other => other.begunAt < begunAt && other.marks.some(mark => marks.includes(mark)))
}

/** A call after a rate limit of its chat or account, which its caller waited for, also has less than its full time. */
function isAfterLimit({ calls }: Run, { chat, process, begunAt }: Call): boolean {
  const [sid = ''] = chat.split(' ')
  return calls.some(({ chat: other, process: own, outcome, answeredAt = Infinity, fault: { limit } = {} }) => {
    if (!limit || outcome !== 'limited' || own !== process) return false
    const late = begunAt - answeredAt - limit.after
    // The delivery may be saved before the call.
    return late >= 0 && late < 1_000 && (limit.scope === 'account' ? other.startsWith(`${sid} `) : other === chat)
  })
}

/** On a platform that deduplicates calls, the next owner repeats a call at once, even while the first one is open. */
function isRepeatable({ acquisitions, plan: { platform: { idempotentFor = 0 } } }: Run, before: Call, { marks, begunAt }: Call): boolean {
  return marks.join() === before.marks.join() && begunAt - before.begunAt < idempotentFor
    && acquisitions.some(({ at }) => at > before.begunAt && at <= begunAt)
}

/** The caller's time was over, and it was told so. */
function isGivenUp({ accounts }: Run, before: Call, { begunAt }: Call): boolean {
  return accounts.some(({ marks, issues }) => before.marks.some(mark => marks.includes(mark)) && issues.some(({ word }) => (
    word?.kind === 'results' && word.at >= before.begunAt && word.at <= begunAt
  )))
}

/** Another call of the same message was answered meanwhile. */
function isAnsweredElsewhere(queue: readonly Call[], { marks }: Call, { begunAt }: Call): boolean {
  return queue.some(({ marks: others, outcome, answeredAt = Infinity }) => (
    others.join() === marks.join() && outcome === 'sent' && answeredAt <= begunAt
  ))
}

/** The relay was ended at once, or had to open its file again, and gave up its call. */
function isEnded({ endings, acquisitions }: Run, before: Call, call: Call): boolean {
  return [...endings, ...acquisitions].some(({ process, at }) => (
    process === call.process && at <= call.begunAt && at >= before.begunAt - 5_000
  ))
}
