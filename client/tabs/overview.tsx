import { defineComponent, shallowRef, type VNode, type VNodeChild } from 'vue'
import { causes, isCauseId } from '../../src/message/causes'
import { call, loadDeliveries, readHold, readPage, type Delivery, type Reply } from '../api'
import { loadBeats, loadIncidents, unresolved, type Beat, type Incident } from '../duty'
import { fieldsOf, listOf, numberOf, textOf, type Fields } from '../fields'
import { keys, targets } from '../inventory'
import { describeQuietCall, readQuietCalls, type QuietCall } from '../parts/arrival'
import { labelOfDoor, notice, reasonOf, section, stateMark } from '../parts/basics'
import { readDay, readHour, totalOf, TrafficChart, type Bar, type Counts } from '../parts/chart'
import { bind, button, choice, confirm, say } from '../parts/elements'
import { describeOwner, severityMark } from '../parts/incident'
import { summarize } from '../parts/items'
import { describeTarget, viewTarget } from '../parts/target'
import { ago, Countdown } from '../parts/time'
import { usePolling } from '../poll'
import { goTo, type Place } from '../state'
import { capital, describeHold, texts, wordFor, writeAgo, writeMoment, writeNumber, writeSpan } from '../texts'

/** The present state of the relay. */
interface Now {
  reply: Reply
  /** Why a message could not be sent now; empty if it could. */
  unready: string
  accounts: Fields[]
  closed: ClosedQueue[]
  incidents: readonly Incident[]
  /** The beats that are late or failed. */
  missing: readonly Beat[]
  /** The queues with deliveries that wait for their time. */
  later: Fields[]
  waiting: number
}

const day = 24
/** The states of deliveries that did not arrive, as a filter of the list. */
const notArrived = 'failed,unanswered,expired'

/** Whether everything works: accounts, closed targets, the numbers of a day, and the last failures. */
export const OverviewTab = defineComponent({
  setup() {
    const now = shallowRef<Now>()
    /** Two days, so that the last one can be compared with the one before. */
    const hours = shallowRef<Bar[]>()
    /** Whether the counts were answered, with numbers or without. */
    const isCounted = shallowRef(false)
    /** Absent if the relay does not count days. */
    const days = shallowRef<Bar[]>()
    const period = shallowRef<'day' | 'month'>('day')
    const failures = shallowRef<Delivery[]>()
    /** Why the records cannot be read, such as a damaged file; empty if they can. */
    const problem = shallowRef('')
    /** Whether anything was ever sent; absent until that is known. */
    const isUsed = shallowRef<boolean>()

    const look = usePolling(async () => {
      const [reply, lines, ready, incidents, beats] = await Promise.all([
        call('GET', '/statusz'), call('GET', '/queues'), call('GET', '/readyz'), loadIncidents(unresolved), loadBeats(),
      ])
      const queues = listOf(lines.data.queues)
      now.value = {
        reply, unready: ready.isRight ? '' : ready.msg, accounts: listOf(reply.data.bots),
        closed: queues.filter(({ state }) => state === 'paused' || state === 'held').map(readQueue),
        incidents: 'value' in incidents ? incidents.value : [],
        missing: 'value' in beats ? beats.value.filter(({ state }) => state === 'down') : [],
        later: queues.filter(({ later }) => later !== undefined).sort((a, b) => textOf(a.next_at).localeCompare(textOf(b.next_at))),
        waiting: queues.reduce((sum, { waiting }) => sum + numberOf(waiting), 0),
      }
    })
    usePolling(async () => {
      const reply = await call('GET', '/deliveries', { query: { state: notArrived, limit: '6' } })
      problem.value = reply.isRight ? '' : reply.msg
      if (reply.isRight) failures.value = readPage(reply).deliveries
      if (failures.value?.length === 0) isUsed.value = (await loadDeliveries({ limit: '1' }))?.deliveries.length !== 0
      else isUsed.value = true
    }, 5000)
    // Counting takes longer, and the numbers change slowly.
    usePolling(async () => {
      const { isRight, data } = await call('GET', '/deliveries/counts', { query: { hours: String(2 * day) } })
      if (isRight) hours.value = listOf(data.hours).map(readHour)
      isCounted.value = true
    }, 15_000)
    usePolling(async () => {
      const offset = String(-new Date().getTimezoneOffset())
      const { isRight, data } = await call('GET', '/deliveries/counts', { query: { days: '30', offset } })
      if (isRight) days.value = Array.isArray(data.days) ? listOf(data.days).map(readDay) : undefined
    }, 120_000)

    const act = async (method: 'POST' | 'DELETE', path: string, tell: (data: Fields) => void): Promise<void> => {
      const { isRight, msg, data } = await call(method, path)
      if (isRight) tell(data)
      else say('bad', texts.value.common.failed(msg))
      await look()
    }
    const resume = ({ id }: ClosedQueue): Promise<void> => act('POST', `/queues/${encodeURIComponent(id)}/resume`, ({ held }) => {
      const t = texts.value.overview
      const hold = readHold(held)
      if (hold) say('info', t.stillHeld(describeHold(hold)))
      else say('good', t.resumed)
    })
    const drop = async ({ id, bot, target, waiting }: ClosedQueue): Promise<void> => {
      const t = texts.value.overview
      const title = t.dropTitle(describeQueue(target, bot, now.value?.accounts ?? []))
      const isSure = await confirm({ title, text: t.dropText(waiting), verb: t.drop })
      if (isSure) await act('DELETE', `/queues/${encodeURIComponent(id)}`, data => say('good', t.dropped(numberOf(data.dropped))))
    }

    return () => {
      const t = texts.value
      const { value: known } = now
      // A partial view would say that everything works before that is known.
      if (!known || isUsed.value === undefined || !isCounted.value) return <p role="status" class="relay-waiting">{t.common.loading}</p>
      if (!known.reply.isRight) return notice('bad', t.common.failed(known.reply.msg))
      const bars = (period.value === 'month' ? days.value : undefined) ?? hours.value?.slice(-day)
      const isMonth = bars !== undefined && bars === days.value
      const quiet = readQuietCalls(known.reply.data).filter(isOfSource)
      const pending = <p>{problem.value ? t.common.failed(problem.value) : t.common.loading}</p>
      return (
        <div>
          {viewHeadline(known, isUsed.value, problem.value, hours.value ?? [], failures.value ?? [])}
          {known.incidents.length > 0 && section(t.overview.incidents, viewIncidents(known.incidents))}
          {known.missing.length > 0 && section(t.overview.missing, viewMissing(known.missing))}
          {isUsed.value ? viewNumbers(hours.value, known) : viewSteps(known)}
          {known.closed.length > 0 && section(t.overview.closed, viewClosed(known, resume, drop))}
          {quiet.length > 0 && section(t.overview.noMessage, viewQuiet(quiet))}
          {known.later.length > 0 && section(t.overview.later, viewLater(known))}
          <div class="relay-main">
            {isUsed.value && section(t.overview.traffic, bars ? viewChart(bars, isMonth) : pending, days.value && choice(
              t.overview.traffic, { ...bind(period, 'value'), modelValue: isMonth ? 'month' : 'day' },
              [['day', t.overview.day], ['month', t.overview.month]],
            ))}
            {section(t.overview.accounts, viewAccounts(known.accounts))}
          </div>
          {isUsed.value && section(
            t.overview.failures, failures.value ? viewFailures(failures.value) : pending,
            failures.value && failures.value.length > 0 && button(
              t.overview.allFailures, () => goTo('deliveries', '', { state: notArrived }), { look: 'link' },
            ),
          )}
        </div>
      )
    }
  },
})

/** A queue that is paused or on hold. */
function readQueue(fields: Fields) {
  const id = textOf(fields.queue)
  const hold = readHold(fields.held)
  return {
    id, hold, bot: textOf(fields.bot), target: textOf(fields.target) || id, waiting: numberOf(fields.waiting),
    until: hold ? hold.until : textOf(fields.paused_until), reason: textOf(fields.reason),
  }
}

type ClosedQueue = ReturnType<typeof readQueue>

/** The least percentage of a day's deliveries that arrived while everything works. */
const goodShare = 95
const hour = 3_600_000

/** The headline: whether everything works. */
function viewHeadline(
  { reply: { data }, unready, accounts, closed, incidents, missing }: Now, isUsed: boolean, problem: string,
  hours: readonly Bar[], failures: readonly Delivery[],
): VNode {
  const last = sumOf(hours.slice(-day))
  // The last bar is that of the present hour of the clock.
  const haveFailed = (hours.at(-1)?.failed ?? 0) > 0
    || failures.some(({ state, updatedAt }) => state !== 'unanswered' && Date.now() - Date.parse(updatedAt) < hour)
  const t = texts.value.overview
  const restricted = accounts.filter(({ status }) => status === 'restricted').length
  const away = accounts.filter(({ status }) => status !== 'online').length - restricted
  const standbyFor = textOf(data.standby_for)
  const open = incidents.filter(({ state }) => state === 'open').length
  const troubles = [
    ...open > 0 ? [t.openIncidents(open)] : [],
    ...missing.length > 0 ? [t.missingBeats(missing.length)] : [],
    ...accounts.length === 0 ? [t.noBots] : [],
    ...away > 0 ? [t.offlineAccounts(away)] : [],
    ...restricted > 0 ? [t.restrictedAccounts(restricted)] : [],
    ...closed.length > 0 ? [t.closedTargets(closed.length)] : [],
    ...haveFailed ? [t.haveFailed] : [],
    ...(shareOf(last) ?? 100) < goodShare ? [t.fewArrived(writeShare(last))] : [],
    // With an account that can send, the data file is what is missing.
    ...standbyFor ? [t.standby(standbyFor)] : unready && away < accounts.length ? [unready] : problem ? [problem] : [],
  ]
  const isFine = troubles.length === 0
  return (
    <div class={['relay-headline', isFine ? 'good' : 'doubt']} role="status">
      <span class="relay-sign" aria-hidden="true">{isFine ? '✓' : '!'}</span>
      <strong>{isFine ? t[isUsed ? 'fine' : 'quiet'] : t.attention}</strong>
      {!isFine && <span>{texts.value.common.list(troubles)}</span>}
    </div>
  )
}

/** The numbers of a day. Each links to the deliveries that it counts. */
function viewNumbers(hours: Bar[] | undefined, { waiting, reply }: Now): VNode {
  const t = texts.value.overview
  const [before, last] = hours ? [sumOf(hours.slice(0, -day)), sumOf(hours.slice(-day))] : []
  const stat = (name: string, value: string, more: VNodeChild, state?: string, tone = ''): VNode => {
    const query: Place['query'] = { ...state !== undefined && { state }, ...state !== 'waiting,sending' && { range: '24h' } }
    return (
      <a class={['relay-stat', tone]} href={`#deliveries?${new URLSearchParams(query).toString()}`}>
        <span class="relay-stat-name">{name}</span>
        <span class="relay-number">{value}</span>
        <span class="relay-hint">{more}</span>
      </a>
    )
  }
  const number = (value: number | undefined): string => value === undefined ? '–' : writeNumber(value)
  const hasEarlier = before !== undefined && totalOf(before) > 0
  const earlier = (value: number | undefined): string => hasEarlier && value !== undefined ? t.before(writeNumber(value)) : ''
  return (
    <div class="relay-stats" role="group" aria-label={t.day}>
      {stat(t.arrived, last ? writeShare(last) : '–', last && before && describeChange(last, before))}
      {stat(t.sent, number(last?.sent), earlier(before?.sent), 'sent')}
      {stat(t.failed, number(last?.failed), earlier(before?.failed), 'failed,expired', last && last.failed > 0 ? 'bad' : '')}
      {stat(t.unanswered, number(last?.unanswered), earlier(before?.unanswered), 'unanswered', last && last.unanswered > 0 ? 'doubt' : '')}
      {stat(t.waiting, number(waiting), describeWaiting(waiting, reply.data.outbox), 'waiting,sending')}
    </div>
  )
}

function sumOf(bars: readonly Bar[]): Counts {
  const sum = (kind: keyof Counts): number => bars.reduce((total, bar) => total + bar[kind], 0)
  return { sent: sum('sent'), failed: sum('failed'), unanswered: sum('unanswered') }
}

/** The percentage of deliveries that arrived. */
function shareOf(counts: Counts): number | undefined {
  const total = totalOf(counts)
  return total === 0 ? undefined : counts.sent / total * 100
}

function writeShare(counts: Counts): string {
  const share = shareOf(counts)
  // Rounded down, so that only a full share shows 100 %.
  return share === undefined ? '–' : writeNumber(Math.floor(share * 10) / 1000, 1, 'percent')
}

function describeChange(last: Counts, before: Counts): string {
  const t = texts.value.overview
  const [share, earlier] = [shareOf(last), shareOf(before)]
  if (share === undefined) return ''
  if (earlier === undefined) return t.noneBefore
  const change = Math.round((share - earlier) * 10) / 10
  return change === 0 ? t.noChange : t.change(`${change > 0 ? '+' : '−'}${writeNumber(Math.abs(change), 1)}`)
}

function describeWaiting(waiting: number, outbox: unknown): string {
  const t = texts.value.overview
  if (waiting === 0) return t.noneWaits
  const oldest = textOf(fieldsOf(outbox).oldest)
  return oldest === '' ? '' : t.oldest(writeAgo(oldest))
}

function viewChart(bars: Bar[], isMonth: boolean): VNode {
  const t = texts.value.overview
  if (bars.every(bar => totalOf(bar) === 0)) return <p class="relay-hint">{t.nothing}</p>
  const sum = sumOf(bars)
  const open = ({ from, until }: Bar): void => {
    goTo('deliveries', '', { since: new Date(from).toISOString(), until: new Date(until).toISOString() })
  }
  return (
    <div>
      <TrafficChart bars={bars} label={t[isMonth ? 'month' : 'day']} onOpen={open} />
      <p class="relay-legend">
        {(['sent', 'failed', 'unanswered'] as const).map(kind => <span class={['relay-state', kind]}>{`${t[kind]} ${writeNumber(sum[kind])}`}</span>)}
      </p>
    </div>
  )
}

function viewAccounts(accounts: readonly Fields[]): VNode {
  const t = texts.value.overview
  if (accounts.length === 0) return <p>{t.noBots}</p>
  return (
    <ul class="relay-list">
      {accounts.map(({ platform, self_id: id, status, cause, since }) => (
        <li>
          <div class="relay-spread">
            <strong>{`${textOf(platform)}:${textOf(id)}`}</strong>
            <span class={['relay-state', status === 'online' ? 'sent' : status === 'connecting' ? 'queued' : 'failed']}>{wordFor(t.statuses, textOf(status))}</span>
          </div>
          <div class="relay-hint">
            {textOf(cause) && `${capital(textOf(cause))} · `}
            <time datetime={textOf(since)} title={writeMoment(textOf(since))}>
              {t.lasts(writeSpan(Date.now() - Date.parse(textOf(since))))}
            </time>
          </div>
        </li>
      ))}
    </ul>
  )
}

/** The account of a queue, where its platform has several; otherwise empty. */
function accountOf(bot: string, accounts: readonly Fields[]): string {
  const isSame = ({ platform }: Fields): boolean => bot.startsWith(`${textOf(platform)}:`)
  return accounts.filter(isSame).length > 1 ? bot : ''
}

/** A queue as plain text. */
function describeQueue(target: string, bot: string, accounts: readonly Fields[]): string {
  const { pair } = texts.value.common
  const account = accountOf(bot, accounts)
  return account ? pair(account, describeTarget(target, bot)) : describeTarget(target, bot)
}

function viewClosed({ closed, accounts }: Now, resume: (queue: ClosedQueue) => unknown, drop: (queue: ClosedQueue) => unknown): VNode {
  const t = texts.value.overview
  const { pair } = texts.value.common
  return (
    <ul class="relay-list relay-tall relay-closed" tabindex="0">
      {closed.map(queue => {
        const { hold, until, waiting, bot, target } = queue
        const cause = capital(hold ? hold.reason : queue.reason)
        const about = hold && isCauseId(hold.cause) ? causes[hold.cause] : 'unknown'
        const name = describeQueue(target, bot, accounts)
        return (
          <li key={queue.id}>
            <div class="relay-grow">
              <div class="relay-row">
                <strong>{viewTarget(target, bot)}</strong>
                <span class="relay-hint">{accountOf(bot, accounts)}</span>
                <span class="relay-chip doubt">{until === '' ? wordFor(t.ends, about) : <Countdown until={until} />}</span>
              </div>
              <div title={cause}>{cause || t.paused}</div>
            </div>
            <div class="relay-row">
              {waiting > 0 && <span class="relay-hint">{t.waitingHere(waiting)}</span>}
              {button(t.resume, () => resume(queue), { describes: pair(t.resume, name) })}
              {waiting > 0 && button(t.drop, () => drop(queue), { kind: 'danger', describes: pair(t.drop, name) })}
            </div>
          </li>
        )
      })}
    </ul>
  )
}

/** How many incidents are shown. */
const maxIncidents = 5

function viewIncidents(incidents: readonly Incident[]): VNode {
  const t = texts.value.overview
  return (
    <div>
      <ul class="relay-list">
        {incidents.slice(0, maxIncidents).map(incident => (
          <li key={incident.id}>
            <span class="relay-row relay-titled relay-grow">
              {severityMark(incident.severity)}
              <a href={`#incidents/${incident.id}`}>
                <strong>{incident.title}</strong>
              </a>
            </span>
            {describeOwner(incident)}
          </li>
        ))}
      </ul>
      {incidents.length > maxIncidents && button(t.allIncidents(incidents.length), () => goTo('incidents'), { look: 'link' })}
    </div>
  )
}

function viewMissing(beats: readonly Beat[]): VNode {
  const { beats: t, keys: { never } } = texts.value
  return (
    <ul class="relay-list">
      {beats.map(({ name, last }) => (
        <li key={name}>
          <a href="#beats">
            <strong>{name}</strong>
          </a>
          <span class="relay-state failed">{texts.value.common.pair(t.last, last ? writeAgo(last) : never)}</span>
        </li>
      ))}
    </ul>
  )
}

/** Whether a call came to a source within a day. */
function isOfSource({ door, at }: QuietCall): boolean {
  return door.startsWith('hooks/') && Date.now() - Date.parse(at) < day * hour
}

/** How many sources without a message are shown. */
const maxQuiet = 5

/** The sources whose last call made no message. */
function viewQuiet(calls: readonly QuietCall[]): VNode {
  return (
    <ul class="relay-list">
      {calls.toSorted((one, other) => other.at.localeCompare(one.at)).slice(0, maxQuiet).map(call => {
        const name = call.door.replace('hooks/', '')
        return (
          <li key={name}>
            <a href={`#integrations/${encodeURIComponent(name)}`}>
              <strong>{labelOfDoor(call.door)}</strong>
            </a>
            <span class={['relay-grow', call.isRefused ? 'relay-state failed' : '']}>{describeQuietCall(call)}</span>
            <span class="relay-hint">{ago(call.at)}</span>
          </li>
        )
      })}
    </ul>
  )
}

function viewLater({ later: queues, accounts }: Now): VNode {
  const t = texts.value.overview
  return (
    <ul class="relay-list relay-tall" tabindex="0">
      {queues.map(({ queue, bot, target, later, next_at: next }) => (
        <li key={textOf(queue)} class="relay-spread">
          <span class="relay-row">
            <strong>{viewTarget(textOf(target), textOf(bot))}</strong>
            <span class="relay-hint">{accountOf(textOf(bot), accounts)}</span>
          </span>
          <span>{t.laterHere(numberOf(later), writeMoment(textOf(next)))}</span>
        </li>
      ))}
    </ul>
  )
}

function viewFailures(failures: readonly Delivery[]): VNode {
  const t = texts.value
  if (failures.length === 0) return <p class="relay-hint">{t.overview.noFailures}</p>
  return (
    <ul class="relay-list relay-failures">
      {failures.map(delivery => (
        <li key={delivery.id}>
          {stateMark(delivery)}
          <a class="relay-grow" href={`#deliveries/${delivery.id}`}>
            <span class="relay-line">
              <strong>{viewTarget(delivery.target, delivery.bot)}</strong>
              {` ${summarize(delivery.items)}`}
            </span>
            <span class="relay-hint relay-line">{capital(reasonOf(delivery))}</span>
          </a>
          <span class="relay-hint">{ago(delivery.createdAt)}</span>
        </li>
      ))}
    </ul>
  )
}

/** The steps to the first message. */
function viewSteps({ accounts }: Now): VNode {
  const t = texts.value.overview
  const areDone = [accounts.some(({ status }) => status === 'online'), (keys.value?.length ?? 0) > 0 || (targets.value?.length ?? 0) > 0, false]
  const next = areDone.indexOf(false)
  const links = [undefined, ['#integrations', t.toIntegrations], ['#send', t.toSend]] as const
  return section(t.start, (
    <ol class="relay-start">
      {t.steps.map(([title = '', text = ''], at) => (
        <li class={{ done: areDone[at] }} aria-current={at === next ? 'step' : undefined}>
          <span class="relay-sign" aria-hidden="true">{areDone[at] ? '✓' : at + 1}</span>
          <h3>{areDone[at] ? texts.value.common.named(title, t.done) : title}</h3>
          <p>{text}</p>
          {links[at] && <a href={links[at][0]}>{links[at][1]}</a>}
        </li>
      ))}
    </ol>
  ))
}
