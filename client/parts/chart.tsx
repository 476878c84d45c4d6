import { defineComponent, type PropType, type VNode } from 'vue'
import { numberOf, textOf, type Fields } from '../fields'
import { locale, texts, zone } from '../texts'

/** How many deliveries of each kind ended in one hour. */
interface Hour {
  name: string
  sent: number
  failed: number
  unanswered: number
}

const size = { width: 480, height: 96, gap: 4 }

/** A day as bars, one an hour, and as a table for those who cannot see them. */
export const DayChart = defineComponent({
  props: { hours: { type: Array as PropType<Fields[]>, required: true } },
  setup: props => () => {
    const t = texts.value.overview
    const hours = props.hours.map(readHour)
    const sums = { sent: sumOf(hours, 'sent'), failed: sumOf(hours, 'failed'), unanswered: sumOf(hours, 'unanswered') }
    if (sums.sent + sums.failed + sums.unanswered === 0) return <p>{t.nothing}</p>
    const summary = t.summary(sums.sent, sums.failed, sums.unanswered)
    const highest = Math.max(...hours.map(({ sent, failed, unanswered }) => sent + failed + unanswered))
    return (
      <div>
        <p class="relay-hint">{t.highest(highest, zone())}</p>
        <svg class="relay-chart" viewBox={`0 0 ${size.width} ${size.height}`} role="img" aria-label={`${t.day}: ${summary}`} preserveAspectRatio="none">
          {hours.map((hour, at) => bars(hour, at, hours.length, highest))}
        </svg>
        <p class="relay-axis" aria-hidden="true">{hours.filter((_, at) => at % 6 === 0).map(({ name }) => <span>{name}</span>)}</p>
        <p class="relay-legend">
          {(['sent', 'failed', 'unanswered'] as const).map(kind => <span class={['relay-state', kind]}>{`${sums[kind]} ${t[kind]}`}</span>)}
        </p>
        <details>
          <summary>{t.asTable}</summary>
          <div class="relay-scroll" tabindex="0" role="region" aria-label={t.day}>
            <table>
              <thead><tr>{[t.hour(zone()), t.sent, t.failed, t.unanswered].map(name => <th scope="col">{name}</th>)}</tr></thead>
              <tbody>{hours.map(row)}</tbody>
            </table>
          </div>
        </details>
      </div>
    )
  },
})

function readHour({ hour, sent, failed, unanswered, expired }: Fields): Hour {
  const date = new Date(textOf(hour))
  const name = Number.isNaN(date.getTime()) ? textOf(hour) : new Intl.DateTimeFormat(locale.value, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(date)
  return { name, sent: numberOf(sent), failed: numberOf(failed) + numberOf(expired), unanswered: numberOf(unanswered) }
}

function sumOf(hours: Hour[], kind: 'sent' | 'failed' | 'unanswered'): number {
  return hours.reduce((sum, hour) => sum + hour[kind], 0)
}

function bars(hour: Hour, at: number, count: number, highest: number): VNode {
  const step = size.width / count
  let top = size.height
  const parts = (['sent', 'unanswered', 'failed'] as const).filter(kind => hour[kind] > 0).map(kind => {
    const height = Math.max(2, hour[kind] / highest * size.height)
    top -= height
    return <rect class={kind} x={at * step + size.gap / 2} y={Math.max(top, 0)} width={step - size.gap} height={height} />
  })
  return (
    <g>
      <title>{`${hour.name} ${texts.value.overview.summary(hour.sent, hour.failed, hour.unanswered)}`}</title>
      {parts}
    </g>
  )
}

function row({ name, sent, failed, unanswered }: Hour): VNode {
  return (
    <tr>
      <th scope="row">{name}</th>
      {[sent, failed, unanswered].map(count => <td>{count}</td>)}
    </tr>
  )
}
