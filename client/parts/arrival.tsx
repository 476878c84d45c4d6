import { defineComponent, shallowRef, type PropType } from 'vue'
import { call, loadDeliveries, type Delivery } from '../api'
import { listOf, numberOf, textOf } from '../fields'
import { usePolling } from '../poll'
import { doorOf, type Source } from '../sources'
import { goTo } from '../state'
import { texts, writeMoment } from '../texts'
import { section, stateMark } from './basics'
import { button } from './elements'
import { summarize } from './items'
import { viewTarget } from './target'

/** How a key was used. */
interface Use { last: string, refused: number }

/** Waits for a call of a source, and shows the message that it made. */
export const Arrival = defineComponent({
  props: {
    source: { type: Object as PropType<Source>, required: true },
    label: { type: String, required: true },
    /** The key that it calls with; empty where any will do. */
    keyName: { type: String, required: true },
  },
  emits: ['call'],
  setup(props, { emit }) {
    /** The newest that was there before, empty for none; absent until that is known. Unlike a time, no clock has to be right for it. */
    const mark = shallowRef<string>()
    const first = shallowRef<Delivery>()
    /** How often its key was used and refused before, likewise. */
    let usedBefore: Use | undefined
    /** What became of a call that left no delivery. */
    const other = shallowRef<'silent' | 'refused'>()

    const lookAtDeliveries = async (): Promise<void> => {
      if (first.value && !['queued', 'sending'].includes(first.value.state)) return
      const page = await loadDeliveries({ door: doorOf(props.source), ...props.keyName && { key: props.keyName }, limit: '20' })
      if (!page) return
      const { value: last } = mark
      const isFirst = !first.value
      // The newest come first.
      if (last === undefined) mark.value = page.deliveries[0]?.id ?? ''
      else first.value = page.deliveries.findLast(({ id }) => id > last)
      if (isFirst && first.value) emit('call')
    }
    /** A call that makes no message leaves no delivery, and yet its key was used. */
    const lookAtKey = async (): Promise<void> => {
      if (props.keyName === '' || first.value) return
      const { isRight, data } = await call('GET', '/statusz')
      if (!isRight) return
      const { last_used: last, refused } = listOf(data.keys).find(({ name }) => name === props.keyName) ?? {}
      const used = { last: textOf(last), refused: numberOf(refused) }
      usedBefore ??= used
      if (used.last === usedBefore.last) return
      other.value = used.refused > usedBefore.refused ? 'refused' : 'silent'
      usedBefore = used
      emit('call')
    }
    usePolling(async () => {
      await lookAtKey()
      await lookAtDeliveries()
    })
    return () => {
      const { integrations: t, common } = texts.value
      const { value: delivery } = first
      if (!delivery) {
        const [title, hint] = {
          none: [mark.value ? t.waitingNext : t.waiting, mark.value === undefined ? common.loading : t.waitingHint(props.label)],
          silent: [t.noMessage, t.noMessageHint],
          refused: [t.refused, t.refusedHint],
        }[other.value ?? 'none']
        return section(title ?? '', <p role="status" class="relay-waiting">{hint}</p>)
      }
      return section(t.arrived, (
        <div role="status">
          <div class="relay-row">
            {stateMark(delivery)}
            {viewTarget(delivery.target, delivery.bot)}
            <span class="relay-aside">{writeMoment(delivery.createdAt)}</span>
          </div>
          <div class="relay-bubble"><p class="relay-said">{summarize(delivery.items)}</p></div>
          {button(t.open, () => goTo('deliveries', delivery.id), { look: 'link' })}
        </div>
      ))
    }
  },
})
