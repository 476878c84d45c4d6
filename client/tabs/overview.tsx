import { defineComponent, shallowRef, type VNode } from 'vue'
import { call, readHold, type Hold, type Reply } from '../api'
import { fieldsOf, isFields, listOf, numberOf, textOf, type Fields } from '../fields'
import { notice, section } from '../parts/basics'
import { button } from '../parts/elements'
import { DayChart } from '../parts/chart'
import { confirmation, type Question } from '../parts/dialog'
import { describeTarget, viewTarget } from '../parts/target'
import { usePolling } from '../poll'
import { describeHold, texts, writeMoment } from '../texts'

/** A queue that waits, or is paused or held. */
interface Queue {
  id: string
  bot: string
  target: string
  waiting: number
  state: string
  pausedUntil: string
  reason: string
  hold: Hold | undefined
}

/** What goes on: bots, queues, the outbox, and the last day. */
export const OverviewTab = defineComponent({
  setup() {
    const status = shallowRef<Reply>()
    const queues = shallowRef<Queue[]>([])
    const hours = shallowRef<Fields[]>()
    const isCounted = shallowRef(false)
    const question = shallowRef<Question>()
    const said = shallowRef('')
    const problem = shallowRef('')

    const look = usePolling(async () => {
      const [now, lines] = await Promise.all([call('GET', '/statusz'), call('GET', '/queues')])
      status.value = now
      const all = listOf(lines.isRight ? lines.data.queues : now.data.queues).map(readQueue)
      queues.value = all.filter(({ waiting, state }) => waiting > 0 || isClosed(state))
    })
    // To count takes longer than to look, and changes little in the meantime.
    usePolling(async () => {
      const { isRight, data } = await call('GET', '/deliveries/counts', { query: { hours: '24' } })
      hours.value = isRight ? listOf(data.hours) : undefined
      isCounted.value = true
    }, 30_000)

    const act = async (method: 'POST' | 'DELETE', path: string, done: string): Promise<void> => {
      question.value = undefined
      const reply = await call(method, path)
      said.value = reply.isRight ? done : ''
      problem.value = reply.isRight ? '' : texts.value.common.failed(reply.msg)
      await look()
    }
    const goOn = (queue: Queue): Promise<void> => act('POST', `/queues/${encodeURIComponent(queue.id)}/resume`, texts.value.overview.resumed)
    const drop = ({ id, bot, target, waiting }: Queue): void => {
      const t = texts.value.overview
      question.value = {
        title: t.dropTitle(describeTarget(target, bot)), text: t.dropText(waiting), verb: t.drop(waiting),
        act: () => act('DELETE', `/queues/${encodeURIComponent(id)}`, t.dropped),
      }
    }

    return () => {
      const t = texts.value
      if (!status.value) return <p role="status">{t.common.loading}</p>
      const { data } = status.value
      return (
        <div>
          {!status.value.isRight && notice('bad', t.common.failed(status.value.msg))}
          {problem.value && notice('bad', problem.value)}
          {said.value && notice('good', said.value)}
          <div class="relay-columns">
            {section(t.overview.bots, viewBots(listOf(data.bots)))}
            {section(t.overview.outbox, <p>{describeOutbox(data.outbox)}</p>)}
          </div>
          {section(t.overview.queues, queues.value.length === 0 ? <p>{t.overview.noQueues}</p> : viewQueues(queues.value, goOn, drop))}
          {section(t.overview.day, hours.value ? <DayChart hours={hours.value} /> : <p>{t.common[isCounted.value ? 'missing' : 'loading']}</p>)}
          {confirmation(question)}
        </div>
      )
    }
  },
})

function readQueue(fields: Fields): Queue {
  const id = textOf(fields.queue)
  const pausedUntil = textOf(fields.paused_until)
  return {
    id, pausedUntil,
    bot: textOf(fields.bot),
    target: textOf(fields.target) || id,
    waiting: numberOf(fields.waiting),
    state: textOf(fields.state) || (pausedUntil ? 'paused' : 'waiting'),
    reason: textOf(fields.reason),
    hold: readHold(fields.held),
  }
}

/** Whether an operator may end what keeps a queue in this state. */
function isClosed(state: string): boolean {
  return state === 'paused' || state === 'held'
}

function viewBots(bots: Fields[]): VNode {
  const t = texts.value.overview
  const words: Partial<Record<string, string>> = {
    online: t.online, offline: t.offline, connecting: t.connecting, restricted: t.restricted,
  }
  if (bots.length === 0) return <p>{t.noBots}</p>
  return (
    <ul class="relay-list">
      {bots.map(({ platform, self_id: id, status, cause, since }) => (
        <li>
          <span>{`${textOf(platform)}:${textOf(id)}`}</span>
          <span class={['relay-state', status === 'online' ? 'sent' : 'failed']}>{words[textOf(status)] ?? textOf(status)}</span>
          {textOf(cause) && <span class="relay-reason">{texts.value.common.list([textOf(cause), writeMoment(textOf(since))])}</span>}
        </li>
      ))}
    </ul>
  )
}

function describeOutbox(outbox: unknown): string {
  const t = texts.value.overview
  if (outbox === 'unavailable') return t.unavailable
  if (!isFields(outbox)) return t.noOutbox
  const { size, oldest } = fieldsOf(outbox)
  if (numberOf(size) === 0) return t.empty
  return texts.value.common.list([t.size(numberOf(size)), ...oldest === undefined ? [] : [t.oldest(writeMoment(textOf(oldest)))]])
}

function viewQueues(queues: Queue[], goOn: (queue: Queue) => unknown, drop: (queue: Queue) => unknown): VNode {
  const t = texts.value.overview
  return (
    <ul class="relay-queues">
      {queues.map(queue => (
        <li key={queue.id}>
          <div>
            <strong>{viewTarget(queue.target, queue.bot)}</strong>
            <span class={['relay-state', isClosed(queue.state) ? 'failed' : 'queued']}>{describeState(queue)}</span>
            {queue.reason && !queue.hold && <span class="relay-reason">{queue.reason}</span>}
            <span class="relay-hint">{queue.waiting > 0 ? t.waiting(queue.waiting) : t.nobodyWaits}</span>
          </div>
          <div class="relay-row">
            {isClosed(queue.state) && button(t.resume, () => goOn(queue), {
              describes: texts.value.common.pair(t.resume, describeTarget(queue.target, queue.bot)),
            })}
            {queue.waiting > 0 && button(t.drop(queue.waiting), () => drop(queue), {
              kind: 'danger', describes: texts.value.common.pair(t.drop(queue.waiting), describeTarget(queue.target, queue.bot)),
            })}
          </div>
        </li>
      ))}
    </ul>
  )
}

function describeState({ state, pausedUntil, hold }: Queue): string {
  const t = texts.value.overview
  if (hold) return describeHold(hold)
  if (state === 'paused') return t.paused(writeMoment(pausedUntil))
  return state === 'busy' ? t.busy : t.inLine
}
