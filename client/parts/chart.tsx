import { defineComponent, shallowRef, type PropType, type VNode } from 'vue'
import { numberOf, textOf, type Fields } from '../fields'
import { format, texts, writeNumber } from '../texts'

const kinds = ['sent', 'unanswered', 'failed'] as const

/** Numbers of deliveries, by outcome. */
export type Counts = Record<typeof kinds[number], number>

/** The deliveries that ended in an hour or on a day: `from` and `until` are in milliseconds since the epoch. */
export interface Bar extends Counts { from: number, until: number }

const hour = 3_600_000

export function readHour(fields: Fields): Bar {
  const from = Date.parse(textOf(fields.hour))
  return { from, until: from + hour, ...readCounts(fields) }
}

/** A day in the browser's time zone. */
export function readDay(fields: Fields): Bar {
  const [year = 0, month = 1, day = 1] = textOf(fields.day).split('-').map(Number)
  return { from: new Date(year, month - 1, day).getTime(), until: new Date(year, month - 1, day + 1).getTime(), ...readCounts(fields) }
}

function readCounts({ sent, failed, unanswered, expired }: Fields): Counts {
  return { sent: numberOf(sent), failed: numberOf(failed) + numberOf(expired), unanswered: numberOf(unanswered) }
}

export function totalOf({ sent, failed, unanswered }: Counts): number {
  return sent + failed + unanswered
}

/**
 * A bar chart over time. Each bar is a button that opens its deliveries, and shows its numbers on hover and focus. The arrow keys move
 * between bars.
 */
export const TrafficChart = defineComponent({
  props: { bars: { type: Array as PropType<Bar[]>, required: true }, label: { type: String, required: true } },
  emits: { open: (bar: Bar) => totalOf(bar) >= 0 },
  setup(props, { emit }) {
    /** The bar whose numbers are shown. */
    const shown = shallowRef<number>()
    /** The bar that Tab focuses; at first the newest one. */
    const stop = shallowRef<number>()
    const hide = (): void => {
      shown.value = undefined
    }
    const move = (event: KeyboardEvent, at: number): void => {
      const last = props.bars.length - 1
      const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key]
      if (next === undefined) {
        if (event.key === 'Escape') hide()
        return
      }
      event.preventDefault()
      const { currentTarget: bar } = event
      const list = bar instanceof HTMLElement ? bar.closest('ol') : undefined
      const to = list?.children[Math.min(Math.max(next, 0), last)]?.firstElementChild
      if (to instanceof HTMLElement) to.focus()
    }
    return () => {
      const { bars, label } = props
      const { common, overview } = texts.value
      const top = roundUp(Math.max(...bars.map(totalOf)))
      const current = stop.value !== undefined && stop.value < bars.length ? stop.value : bars.length - 1
      return (
        <div class="relay-chart">
          <div class="relay-grid" aria-hidden="true">{[top, top / 2, 0].map(level => <span><i>{writeNumber(level)}</i></span>)}</div>
          <ol aria-label={label} onMouseleave={hide}>
            {bars.map((bar, at) => (
              <li>
                <button
                  type="button"
                  class="relay-bar"
                  tabindex={at === current ? 0 : -1}
                  aria-label={common.pair(longName(bar), overview.summary(bar.sent, bar.failed, bar.unanswered))}
                  onClick={() => emit('open', bar)}
                  onMouseenter={() => {
                    shown.value = at
                  }}
                  onFocus={() => {
                    shown.value = stop.value = at
                  }}
                  onBlur={hide}
                  onKeydown={(event: KeyboardEvent) => move(event, at)}
                >
                  {viewBar(bar, top)}
                </button>
                {isNamed(at, bars) && <span class="relay-tick" aria-hidden="true">{shortName(bar)}</span>}
                {shown.value === at && viewValues(bar, at / bars.length)}
              </li>
            ))}
          </ol>
        </div>
      )
    }
  },
})

function viewBar(bar: Bar, top: number): VNode[] {
  return kinds.filter(kind => bar[kind] > 0).map(kind => <span class={kind} style={{ height: `${bar[kind] / top * 100}%` }} />)
}

/** @param place the position of the bar, from 0 to 1 */
function viewValues(bar: Bar, place: number): VNode {
  const t = texts.value.overview
  return (
    <div class={['relay-readout', place < 0.2 ? 'first' : place > 0.8 ? 'last' : '']} aria-hidden="true">
      <strong>{longName(bar)}</strong>
      {kinds.map(kind => (
        <span class={['relay-state', kind]}>
          {t[kind]}
          <b>{writeNumber(bar[kind])}</b>
        </span>
      ))}
    </div>
  )
}

/** Rounds up to one of 2, 4, 6, 8, 10, 20, 40 …, so that half of the result is also a whole number. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)))
  return [2, 4, 6, 8, 10].map(step => step * power).find(step => step >= value) ?? 2
}

function isHour({ from, until }: Bar): boolean {
  return until - from === hour
}

/** Whether a bar has a label: every sixth hour of the clock, and every seventh day. */
function isNamed(at: number, bars: readonly Bar[]): boolean {
  const bar = bars[at]
  if (!bar) return false
  return isHour(bar) ? new Date(bar.from).getHours() % 6 === 0 : (bars.length - 1 - at) % 7 === 0
}

function shortName(bar: Bar): string {
  return format(bar.from, isHour(bar) ? { hour: '2-digit', minute: '2-digit' } : { month: 'short', day: 'numeric' })
}

function longName(bar: Bar): string {
  if (!isHour(bar)) return format(bar.from, { weekday: 'short', month: 'short', day: 'numeric' })
  return `${format(bar.from, { hour: '2-digit', minute: '2-digit' })} – ${format(bar.until, { hour: '2-digit', minute: '2-digit' })}`
}
