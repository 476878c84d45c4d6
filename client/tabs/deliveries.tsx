import { computed, defineComponent, nextTick, reactive, ref, shallowRef, watch, type VNode } from 'vue'
import { call, loadDeliveries, type Delivery, type Page } from '../api'
import { listOf, numberOf } from '../fields'
import { field, notice, stateMark, stateWord, valueOf } from '../parts/basics'
import { button } from '../parts/elements'
import { summarize } from '../parts/items'
import { confirmation, type Question } from '../parts/dialog'
import { RecordDialog, retryable } from '../parts/record'
import { describeTarget, viewTarget } from '../parts/target'
import { usePolling } from '../poll'
import { about, goTo, place } from '../state'
import { texts, writeTime, zone } from '../texts'

/** The height of a row in pixels, as in style.css. */
const rowHeight = 44
/** How many rows are kept ready above and below what can be seen. */
const margin = 20
/** How many rows are in the document at most. */
const drawn = 2 * margin + 30
/** How many deliveries are asked for at once: all that are drawn, and more. */
const pageSize = 100
/** It sorts after every ID. */
const lastId = 'g'

const noFilters = { state: '', target: '', door: '', key: '', text: '', since: '', until: '' }

/** All deliveries, newest first. Only the rows that can be seen are in the document, so that their number does not matter. */
export const DeliveriesTab = defineComponent({
  setup() {
    const rows = shallowRef<Delivery[]>([])
    const filters = reactive({ ...noFilters })
    const next = shallowRef<string>()
    const isLoaded = shallowRef(false)
    const isOut = shallowRef(false)
    const question = shallowRef<Question>()
    const said = shallowRef('')
    const problem = shallowRef('')
    const top = ref(0)
    const viewport = ref<HTMLDivElement>()
    let isLoading = false

    const query = computed(() => Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== '').map(([name, value]) => {
      return [name, name === 'since' || name === 'until' ? new Date(value).toISOString() : value]
    })))
    /** The first row that is in the document. */
    const first = computed(() => Math.max(0, Math.min(top.value, rows.value.length) - margin))
    const look = usePolling(async () => {
      const asked = query.value
      const page = await loadDeliveries({ ...asked, limit: String(pageSize) })
      if (asked !== query.value) return
      isOut.value = !page
      if (!page) return
      merge(page)
      // Whoever has scrolled down sees others than these.
      const above = rows.value[first.value - 1]
      if (!above || first.value + drawn <= page.deliveries.length) return
      const shown = await loadDeliveries({ ...asked, limit: String(pageSize), before: above.id })
      if (shown && asked === query.value) merge(shown, above.id)
    })

    /**
     * Puts a page in the place of what was known of the same stretch. What somebody looks at stays put.
     *
     * @param before the ID that the stretch ends before
     */
    const merge = ({ deliveries, next: following }: Page, before = lastId): void => {
      const seen = rows.value[top.value]
      const oldest = following === undefined ? '' : deliveries.at(-1)?.id ?? ''
      // Where nothing of it was known, there may be more between it and what is below.
      const isKnown = rows.value.some(({ id }) => id >= oldest && id < before)
      const below = isKnown ? rows.value.filter(({ id }) => id < oldest) : []
      rows.value = [...rows.value.filter(({ id }) => id >= before), ...deliveries, ...below]
      if (below.length === 0) next.value = following
      isLoaded.value = true
      stay(seen)
    }
    /** Scrolls as far as a row was moved that was the first to be seen, unless that is at the top, where new ones are to be seen. */
    const stay = (seen: Delivery | undefined): void => {
      const { value: box } = viewport
      const at = rows.value.findIndex(({ id }) => id === seen?.id)
      const distance = (at - top.value) * rowHeight
      if (box && box.scrollTop > rowHeight && at >= 0 && distance !== 0) void nextTick(() => box.scrollBy(0, distance))
    }
    const loadMore = async (): Promise<void> => {
      if (isLoading || next.value === undefined) return
      isLoading = true
      const [asked, before] = [query.value, next.value]
      const page = await loadDeliveries({ ...asked, limit: String(pageSize), before })
      isLoading = false
      if (!page || asked !== query.value || before !== next.value) return
      rows.value = [...rows.value, ...page.deliveries]
      next.value = page.next
    }
    watch(query, () => {
      rows.value = []
      next.value = undefined
      isLoaded.value = false
      void look()
    })

    const again = (): void => {
      const t = texts.value.deliveries
      question.value = {
        title: t.againTitle, text: t.againText, verb: t.again,
        act: async () => {
          question.value = undefined
          const { isRight, msg, data } = await call('POST', '/deliveries/retry', { query: query.value })
          said.value = isRight ? t.queued(numberOf(data.queued), listOf(data.skipped).length, data.more === true) : ''
          problem.value = isRight ? '' : texts.value.common.failed(msg)
          await look()
        },
      }
    }

    const scroll = (): void => {
      const { value: box } = viewport
      if (!box) return
      top.value = Math.floor(box.scrollTop / rowHeight)
      if (box.scrollTop + box.clientHeight > box.scrollHeight - margin * rowHeight) void loadMore()
    }

    return () => {
      const t = texts.value.deliveries
      const visible = rows.value.slice(first.value, first.value + drawn)
      return (
        <div>
          {viewFilters(filters, () => Object.assign(filters, noFilters), again)}
          {isOut.value && notice('bad', texts.value.common.offline)}
          {problem.value && notice('bad', problem.value)}
          {said.value && notice('good', said.value)}
          <div ref={viewport} class="relay-window" tabindex="0" role="region" aria-label={t.list} onScroll={scroll}>
            <table aria-rowcount={next.value === undefined ? rows.value.length + 1 : -1}>
              <thead>
                <tr aria-rowindex={1}>
                  {head(t.state, t.time(zone()))}
                  {head(t.target, t.what)}
                  <th scope="col" class="relay-wide">{t.what}</th>
                  <th scope="col" class="relay-wide">{t.door}</th>
                  <th scope="col" class="relay-wide">{t.key}</th>
                  <th scope="col" class="relay-wide">{t.time(zone())}</th>
                </tr>
              </thead>
              <tbody>
                {spacer(first.value)}
                {visible.map((delivery, at) => viewRow(delivery, first.value + at))}
                {spacer(rows.value.length - first.value - visible.length)}
              </tbody>
            </table>
            <p class="relay-empty" role="status">{describeLack(isLoaded.value, rows.value.length, query.value)}</p>
          </div>
          {confirmation(question)}
          {place.value.id && <RecordDialog id={place.value.id} onClose={() => goTo('deliveries')} />}
        </div>
      )
    }
  },
})

/** The head of a column, in which another one stands as well where the page is narrow. */
function head(name: string, below: string): VNode {
  return (
    <th scope="col">
      {name}
      <div class="relay-narrow">{below}</div>
    </th>
  )
}

/** What is said in the place of rows that are not there. */
function describeLack(isLoaded: boolean, count: number, query: object): string {
  const t = texts.value
  if (!isLoaded) return t.common.loading
  if (count > 0) return ''
  return Object.keys(query).length > 0 ? t.deliveries.empty : t.deliveries.none
}

function spacer(rows: number): VNode | undefined {
  return rows > 0 ? <tr aria-hidden="true"><td class="spacer" style={{ height: `${rows * rowHeight}px` }} /></tr> : undefined
}

function viewRow(delivery: Delivery, index: number): VNode {
  const t = texts.value
  const { id, target, bot, door, key, createdAt, items } = delivery
  const what = summarize(items)
  return (
    <tr key={id} class="record" aria-rowindex={index + 2} onClick={() => goTo('deliveries', id)}>
      <td>
        <button type="button" class="relay-open" aria-label={t.deliveries.open(describeTarget(target, bot), stateWord(delivery))} aria-haspopup="dialog">
          {stateMark(delivery)}
        </button>
        <div class="relay-narrow">{writeTime(createdAt)}</div>
      </td>
      <td title={describeTarget(target, bot)}>
        {viewTarget(target, bot)}
        <div class="relay-narrow">{what}</div>
      </td>
      <td class="relay-wide" title={what}>{what}</td>
      <td class="relay-wide" title={door}>{door}</td>
      <td class="relay-wide" title={key}>{key || t.deliveries.master}</td>
      <td class="relay-wide" title={createdAt}>{writeTime(createdAt)}</td>
    </tr>
  )
}

function viewFilters(filters: typeof noFilters, clear: () => unknown, again: () => unknown): VNode {
  const t = texts.value.deliveries
  const isSet = Object.values(filters).some(Boolean)
  const { targets = {}, sources = [], keys = [] } = about.value ?? {}
  const known = {
    target: Object.keys(targets),
    door: ['webhook', 'send', 'onebot', 'commands', 'alert', ...sources.map(source => `hooks/${source}`)],
    key: keys.map(({ name }) => name),
  }
  const input = (name: 'target' | 'door' | 'key' | 'text' | 'since' | 'until', type = 'text'): VNode => field(t[name], (
    <input
      type={type}
      list={name in known ? `relay-known-${name}` : undefined}
      value={filters[name]}
      onChange={(event: Event) => {
        filters[name] = valueOf(event)
      }}
    />
  ))
  const change = (event: Event): void => {
    filters.state = valueOf(event)
  }
  return (
    <details class="relay-section" open={isSet}>
      <summary>{t.filters}</summary>
      <div class="relay-filters">
        {field(t.state, (
          <select value={filters.state} onChange={change}>
            <option value="">{texts.value.common.all}</option>
            {Object.entries(texts.value.states).map(([state, word]) => <option value={state}>{word}</option>)}
          </select>
        ))}
        {input('target')}
        {input('text')}
        {input('door')}
        {input('key')}
        {input('since', 'datetime-local')}
        {input('until', 'datetime-local')}
      </div>
      {Object.entries(known).map(([name, words]) => <datalist id={`relay-known-${name}`}>{words.map(word => <option value={word} />)}</datalist>)}
      {isSet && button(t.clear, clear)}
      {retryable.has(filters.state) && button(t.again, again)}
    </details>
  )
}
