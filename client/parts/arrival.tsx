import { defineComponent, shallowRef, type PropType, type VNode } from 'vue'
import { call, loadDeliveries, type Delivery } from '../api'
import { listOf, textOf, type Fields } from '../fields'
import { usePolling } from '../poll'
import { doorOf, type Source } from '../sources'
import { goTo } from '../state'
import { capital, texts, writeMoment } from '../texts'
import { section, stateMark } from './basics'
import { button } from './elements'
import { summarize } from './items'
import { viewTarget } from './target'

/** The state before the wait. New calls are detected by comparison, because a comparison of times would need correct clocks. */
interface Seen {
  /** The ID of the newest delivery; empty for none. */
  delivery: string
  /** The times of the key's last use, and of the source's last call without a message. */
  use: string
  quiet: string
}

/** The newest call. A call without a delivery produced no message. */
interface News {
  at: string
  delivery?: Delivery
  quiet?: QuietCall
}

/** The last call of each door that made no message, from the answer of `GET /statusz`. */
export function readQuietCalls({ refusals, skipped }: Fields) {
  const read = (calls: unknown, isRefused: boolean) => listOf(calls).map(({ door, at, reason }) => {
    return { door: textOf(door), at: textOf(at), reason: textOf(reason), isRefused }
  })
  return [...read(refusals, true), ...read(skipped, false)]
}

export type QuietCall = ReturnType<typeof readQuietCalls>[number]

/** Why a call made no message. */
export function describeQuietCall({ reason, isRefused }: QuietCall): string {
  const { reached } = texts.value.integrations
  return isRefused ? capital(reason) : reached(reason)
}

/** Waits for calls of a source and shows the result of the newest one. */
export const Arrival = defineComponent({
  props: {
    source: { type: Object as PropType<Source>, required: true },
    label: { type: String, required: true },
    /** The key that the source calls with; empty if any key counts. */
    keyName: { type: String, required: true },
  },
  emits: ['call'],
  setup(props, { emit }) {
    const seen = shallowRef<Seen>()
    const news = shallowRef<News>()
    const door = doorOf(props.source)

    usePolling(async () => {
      const [page, { isRight, data }] = await Promise.all([
        loadDeliveries({ door, ...props.keyName && { key: props.keyName }, limit: '1' }), call('GET', '/statusz'),
      ])
      if (!page || !isRight) return
      const [delivery] = page.deliveries
      const quiet = readQuietCalls(data).find(each => each.door === door)
      // A call without a message leaves no delivery, but its key was used.
      const use = listOf(data.keys).find(({ name }) => name === props.keyName)?.last_used
      const before = seen.value
      const now = { delivery: delivery?.id ?? '', use: textOf(use), quiet: quiet?.at ?? '' }
      seen.value = before ?? now
      if (!before) return
      const found: News[] = [
        ...now.use === before.use ? [] : [{ at: now.use }],
        ...!quiet || now.quiet === before.quiet ? [] : [{ at: now.quiet, quiet }],
        ...!delivery || now.delivery <= before.delivery ? [] : [{ at: delivery.createdAt, delivery }],
      ]
      const last = news.value?.at
      // A call is recorded as a use of its key before it is refused or becomes a delivery.
      news.value = found.toSorted((one, other) => one.at.localeCompare(other.at)).at(-1)
      if (news.value && news.value.at !== last && !news.value.quiet?.isRefused) emit('call')
    })

    const viewWaiting = (title: string, hint: string): VNode => section(title, <p role="status" class="relay-waiting">{hint}</p>)
    return () => {
      const { integrations: t, common } = texts.value
      if (!seen.value) return viewWaiting(t.waiting, common.loading)
      if (!news.value) return viewWaiting(seen.value.delivery === '' ? t.waiting : t.waitingNext, t.waitingHint(props.label))
      const { at, delivery, quiet } = news.value
      const moment = writeMoment(at)
      if (quiet) return viewWaiting(quiet.isRefused ? t.refused : t.noMessage, common.pair(moment, describeQuietCall(quiet)))
      if (!delivery) return viewWaiting(t.noMessage, common.pair(moment, t.noMessageHint))
      return section(t.arrived, (
        <div role="status">
          <div class="relay-row">
            {stateMark(delivery)}
            {viewTarget(delivery.target, delivery.bot)}
            <span class="relay-aside">{moment}</span>
          </div>
          <div class="relay-bubble"><p class="relay-said">{summarize(delivery.items)}</p></div>
          {button(t.open, () => goTo('deliveries', delivery.id), { look: 'link' })}
        </div>
      ))
    }
  },
})
