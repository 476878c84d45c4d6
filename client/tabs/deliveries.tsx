import { computed, defineComponent, nextTick, onBeforeUnmount, onMounted, ref, shallowRef, watch, type VNode } from 'vue'
import { call, loadDeliveries, pageName, readPage, type Delivery, type Page, type Reply } from '../api'
import { knownChats } from '../contacts'
import { isFields, listOf, numberOf, textOf, type Fields } from '../fields'
import { keys, targets } from '../inventory'
import { callerOf, isPartlySent, labelOfDoor, notice, reasonOf, stateMark, stateWord } from '../parts/basics'
import { bind, button, checkbox, confirm, input, model, optionsOf, plain, say, select, type Model, type Option } from '../parts/elements'
import { summarize } from '../parts/items'
import { RecordPane, retryable } from '../parts/record'
import { describeTarget, viewTarget } from '../parts/target'
import { ago } from '../parts/time'
import { usePolling } from '../poll'
import { about, goTo, place, replacePlace } from '../state'
import { capital, fromLocal, texts, toLocal, writeMoment, writeNumber } from '../texts'

/** How many extra rows are rendered above and below the visible ones. */
const margin = 20
/** The most rows in the document. */
const drawn = 2 * margin + 30
/** How many deliveries a request asks for: more than are rendered. */
const pageSize = 100
/** The most rows that are kept while the list is at its top. */
const mostRows = 1_000
/** Sorts after every ID. */
const lastId = 'g'
/** The width at which a record opens beside the list instead of over it. */
const isWindowWide = (): boolean => window.innerWidth >= 1100

/** The filter chips, with the states that each stands for. */
const chips = [['waiting', 'sending'], ['scheduled'], ['sent'], ['failed'], ['unanswered'], ['expired']] as const

const hour = 3_600_000
const ranges: Readonly<Partial<Record<string, number>>> = { '1h': hour, '24h': 24 * hour, '7d': 168 * hour, '30d': 720 * hour }

/** The filters of the list, as in the address of the page. */
type Filters = Readonly<Partial<Record<'state' | 'target' | 'door' | 'key' | 'text' | 'range' | 'since' | 'until', string>>>

/** All deliveries, newest first. Only the visible rows are in the document, so that the list may have any length. */
export const DeliveriesTab = defineComponent({
  setup() {
    const rows = shallowRef<Delivery[]>([])
    const next = shallowRef<string>()
    const isLoaded = shallowRef(false)
    const counts = shallowRef<Fields>()
    const chosen = shallowRef<ReadonlySet<string>>(new Set())
    const problem = shallowRef('')
    const isBusy = shallowRef(false)
    const isWide = shallowRef(isWindowWide())
    /** In pixels, as in deliveries.css: in a narrow list, a row has two lines. */
    const rowHeight = shallowRef(34)
    const areFiltersOpen = shallowRef(false)
    const top = ref(0)
    const viewport = ref<HTMLDivElement>()
    let isLoading = false

    const filters = computed<Filters>(() => place.value.query)
    const set = (changes: Filters): void => {
      const query = Object.entries({ ...filters.value, ...changes }).filter(([, value]) => value)
      replacePlace({ query: Object.fromEntries(query) })
    }
    /** Identifies the present filters, so that late answers are dropped. */
    const shown = computed(() => JSON.stringify(filters.value))
    /** Identifies the filters of the counts, which do not depend on the chosen states. */
    const countable = computed(() => JSON.stringify({ ...filters.value, state: undefined }))
    const observer = new ResizeObserver(([box]) => {
      isWide.value = isWindowWide()
      rowHeight.value = box && box.contentRect.width <= 720 ? 44 : 34
    })
    onMounted(() => viewport.value && observer.observe(viewport.value))
    onBeforeUnmount(() => observer.disconnect())

    /** The first row in the document. */
    const first = computed(() => Math.max(0, Math.min(top.value, rows.value.length) - margin))
    const look = usePolling(async () => {
      const asked = shown.value
      const query = { ...parametersOf(filters.value), limit: String(pageSize) }
      const reply = await call('GET', '/deliveries', { query })
      if (asked !== shown.value) return
      problem.value = reply.isRight ? '' : texts.value.common.failed(reply.msg)
      isLoaded.value = true
      if (!reply.isRight) return
      const page = readPage(reply)
      merge(page)
      recount(page)
      // If the list is scrolled down, the visible rows are not in the first page.
      const above = rows.value[first.value - 1]
      if (!above || first.value + drawn <= page.deliveries.length) return
      const seen = await loadDeliveries({ ...query, before: above.id })
      if (seen && asked === shown.value) merge(seen, above.id)
    })

    /**
     * Replaces the rows of a range with a page. The visible rows keep their position.
     *
     * @param before the ID where the range ends, exclusive
     */
    const merge = ({ deliveries, next: following }: Page, before = lastId): void => {
      const seen = rows.value[top.value]
      const oldest = following === undefined ? '' : deliveries.at(-1)?.id ?? ''
      // If no row of the range was loaded before, there may be a gap between the page and the rows below it.
      const isKnown = rows.value.some(({ id }) => id >= oldest && id < before)
      const below = isKnown ? rows.value.filter(({ id }) => id < oldest) : []
      rows.value = [...rows.value.filter(({ id }) => id >= before), ...deliveries, ...below]
      if (below.length === 0) next.value = following
      // Otherwise, a page that stays open for days would keep all new rows.
      if (top.value === 0 && rows.value.length > mostRows) {
        rows.value = rows.value.slice(0, pageSize)
        next.value = rows.value.at(-1)?.id
      }
      keepPosition(seen)
    }
    /** Keeps the first visible row in its position after the rows have changed. At the top of the list, new rows are shown instead. */
    const keepPosition = (seen: Delivery | undefined): void => {
      const { value: box } = viewport
      const at = rows.value.findIndex(({ id }) => id === seen?.id)
      const distance = (at - top.value) * rowHeight.value
      if (box && box.scrollTop > rowHeight.value && at >= 0 && distance !== 0) void nextTick(() => box.scrollBy(0, distance))
    }
    const loadMore = async (): Promise<void> => {
      if (isLoading || next.value === undefined) return
      isLoading = true
      const [asked, before] = [shown.value, next.value]
      const page = await loadDeliveries({ ...parametersOf(filters.value), limit: String(pageSize), before })
      isLoading = false
      if (!page || asked !== shown.value || before !== next.value) return
      rows.value = [...rows.value, ...page.deliveries]
      next.value = page.next
    }
    /** The filters of the last count, when it ended, and how long it took. */
    let counted = { for: '', at: Infinity, took: 0 }
    const countAll = async (): Promise<void> => {
      const [key, begun] = [countable.value, performance.now()]
      counted = { ...counted, for: key, at: Infinity }
      const asked = parametersOf({ ...filters.value, state: '' })
      const reply = await call('GET', '/deliveries/counts', { query: { ...asked, hours: '1' } })
      if (counted.for !== key) return
      const { states } = reply.data
      const waiting = isFields(states) ? numberOf(states.queued) - numberOf(states.scheduled) : 0
      counts.value = reply.isRight && isFields(states) ? { ...states, waiting } : undefined
      const at = performance.now()
      counted = { for: key, at, took: at - begun }
    }
    usePolling(async () => {
      // The rows have priority. With a text filter nothing is counted, because a text search reads all deliveries.
      if (isLoaded.value && !filters.value.text) await countAll()
    }, 10_000)
    /** The IDs and states of the newest rows. When they change, the counts change too. */
    let newest = ''
    const recount = ({ deliveries }: Page): void => {
      const rows = JSON.stringify(deliveries.map(({ id, state }) => [id, state]))
      // Counting many deliveries takes long. It gets a tenth of the time at most.
      const isEnough = rows === newest || performance.now() - counted.at < 10 * counted.took
      if (isEnough && counted.for === countable.value) return
      newest = rows
      void countAll()
    }
    // The counts of other filters must not stand beside a retry button for the present ones.
    watch(countable, () => {
      counts.value = undefined
    })
    watch(shown, () => {
      rows.value = []
      next.value = undefined
      isLoaded.value = false
      chosen.value = new Set()
      void look()
    })

    const scroll = (): void => {
      const { value: box } = viewport
      if (!box) return
      top.value = Math.floor(box.scrollTop / rowHeight.value)
      if (box.scrollTop + box.clientHeight > box.scrollHeight - margin * rowHeight.value) void loadMore()
    }
    const open = (id: string): void => goTo('deliveries', id, place.value.query)
    const close = (): void => {
      const { id } = place.value
      goTo('deliveries', '', place.value.query)
      void nextTick(() => viewport.value?.querySelector<HTMLElement>(`[data-id="${id}"] .relay-open`)?.focus())
    }
    /** The arrow keys move between rows. A record beside the list follows. */
    const move = (event: KeyboardEvent): void => {
      const row = event.target instanceof HTMLElement ? event.target.closest('tr.record') : undefined
      const to = event.key === 'ArrowDown' ? row?.nextElementSibling : event.key === 'ArrowUp' ? row?.previousElementSibling : undefined
      if (!(to instanceof HTMLElement) || to.dataset.id === undefined) return
      event.preventDefault()
      to.querySelector<HTMLElement>('.relay-open')?.focus()
      if (place.value.id && isWide.value) replacePlace({ id: to.dataset.id })
    }

    const choose = (id: string, isChosen: boolean): void => {
      const others = [...chosen.value].filter(each => each !== id)
      chosen.value = new Set(isChosen ? [...others, id] : others)
    }
    const chooseAll = (areChosen: boolean): void => {
      chosen.value = new Set(areChosen ? rows.value.filter(({ state }) => retryable.has(state)).map(({ id }) => id) : [])
    }
    /** Confirms a retry, executes it and shows the result. */
    const retry = async (count: number | undefined, hasDoubt: boolean, act: () => Promise<Outcome>): Promise<void> => {
      const t = texts.value.deliveries
      const text = [...count === undefined || count > 1 ? [t.retryText] : [], ...hasDoubt ? [t.retryDoubt] : []].join(' ')
      if (!await confirm({ title: t.retryTitle(count), text, verb: texts.value.record.retry, kind: 'primary' })) return
      isBusy.value = true
      tell(await act())
      isBusy.value = false
      chosen.value = new Set()
      await Promise.all([look(), countAll()])
    }
    const retryChosen = (): Promise<void> => {
      const ids = [...chosen.value]
      const hasDoubt = rows.value.some(({ id, state }) => state === 'unanswered' && chosen.value.has(id))
      return retry(ids.length, hasDoubt, async () => sumUp(await inTurn(ids, id => call('POST', `/deliveries/${id}/retry`))))
    }
    const retryAll = (states: readonly string[], count: number | undefined): Promise<void> => {
      const asked = parametersOf(filters.value)
      return retry(count, states.includes('unanswered') && (counts.value === undefined || numberOf(counts.value.unanswered) > 0), async () => {
        return sumUp(await inTurn(states, state => call('POST', '/deliveries/retry', { query: { ...asked, state } })))
      })
    }

    return () => {
      const t = texts.value.deliveries
      const visible = rows.value.slice(first.value, first.value + drawn)
      const isSplit = place.value.id !== '' && isWide.value
      return (
        <div class="relay-deliveries">
          {viewFilters(filters.value, set, rows.value, bind(areFiltersOpen, 'value'))}
          <div class="relay-bar-of-chips">
            {viewChips(filters.value.state, counts.value, state => set({ state }))}
            <div class="relay-row">
              {chosen.value.size > 0
                ? [
                    button(t.unchoose, () => chooseAll(false), { look: 'link' }),
                    button(t.retryChosen(chosen.value.size), retryChosen, { kind: 'primary', busy: isBusy.value }),
                  ]
                : viewRetryAll(filters.value.state, counts.value, isBusy.value, retryAll)}
            </div>
          </div>
          {problem.value && notice('bad', problem.value)}
          <div class={['relay-split', { open: isSplit }]}>
            <div ref={viewport} class="relay-window" tabindex="0" role="region" aria-label={t.list} onScroll={scroll} onKeydown={move}>
              <table aria-rowcount={next.value === undefined ? rows.value.length + 1 : -1}>
                {viewHead(rows.value, chosen.value, chooseAll)}
                <tbody>
                  {spacer(first.value * rowHeight.value)}
                  {visible.map((delivery, at) => {
                    const { id } = delivery
                    return viewRow(delivery, first.value + at, place.value.id === id, chosen.value.has(id), open, choose)
                  })}
                  {spacer((rows.value.length - first.value - visible.length) * rowHeight.value)}
                </tbody>
              </table>
              <p class="relay-empty" role="status">{problem.value ? '' : describeEmpty(isLoaded.value, rows.value.length, filters.value)}</p>
            </div>
            {place.value.id && <RecordPane id={place.value.id} isBeside={isWide.value} onClose={close} />}
          </div>
        </div>
      )
    }
  },
})

/** The parameters of `GET /deliveries`. */
function parametersOf({ range = '', since, until, ...more }: Filters): Record<string, string> {
  const length = ranges[range]
  const from = length === undefined ? since : new Date(Date.now() - length).toISOString()
  const all = { ...more, since: from, ...length === undefined && { until } }
  return Object.fromEntries(Object.entries(all).flatMap(([name, value]) => value ? [[name, value]] : []))
}

/** The result of a retry. */
interface Outcome {
  queued: number
  /** How many deliveries were not retried, by the reason. */
  skipped: Map<string, number>
  hasMore: boolean
}

async function inTurn<T>(values: readonly T[], act: (value: T) => Promise<Reply>): Promise<Reply[]> {
  const replies: Reply[] = []
  for (const value of values) replies.push(await act(value))
  return replies
}

/** Sums up the answers to retries of single deliveries, or of all that match a filter. */
function sumUp(replies: readonly Reply[]): Outcome {
  const outcome: Outcome = { queued: 0, skipped: new Map(), hasMore: false }
  const skip = (why: string): void => void outcome.skipped.set(why, (outcome.skipped.get(why) ?? 0) + 1)
  for (const { isRight, msg, data } of replies) {
    if (!isRight) skip(msg)
    else if (typeof data.queued === 'number') outcome.queued += data.queued
    else outcome.queued++
    for (const { msg: why } of listOf(data.skipped)) skip(textOf(why))
    outcome.hasMore ||= data.more === true
  }
  return outcome
}

function tell({ queued, skipped, hasMore }: Outcome): void {
  const t = texts.value.deliveries
  const parts = [
    queued > 0 || skipped.size > 0 ? t.queued(queued) : t.nothingQueued,
    ...[...skipped].map(([why, count]) => t.skipped(count, why)),
    ...hasMore ? [t.more] : [],
  ]
  say(skipped.size === 0 ? 'good' : queued > 0 ? 'info' : 'bad', parts.join(' '))
}

/** The text for an empty list. */
function describeEmpty(isLoaded: boolean, count: number, filters: Filters): string {
  const t = texts.value
  if (!isLoaded) return t.common.loading
  if (count > 0) return ''
  return Object.keys(filters).length > 0 ? t.deliveries.empty : t.deliveries.none
}

function spacer(height: number): VNode | undefined {
  return height > 0 ? <tr aria-hidden="true"><td class="spacer" style={{ height: `${height}px` }} /></tr> : undefined
}

function viewHead(rows: readonly Delivery[], chosen: ReadonlySet<string>, chooseAll: (areChosen: boolean) => void): VNode {
  const t = texts.value.deliveries
  const able = rows.filter(({ state }) => retryable.has(state)).length
  return (
    <thead>
      <tr aria-rowindex={1}>
        <th scope="col" class="check">
          {checkbox(undefined, model(able > 0 && chosen.size >= able, chooseAll), {
            describes: t.chooseAll, disabled: able === 0, partly: chosen.size > 0 && chosen.size < able,
          })}
        </th>
        <th scope="col" class="state">{t.state}</th>
        <th scope="col" class="target">{t.target}</th>
        <th scope="col" class="relay-wide">{t.content}</th>
        <th scope="col" class="relay-wide door">{t.door}</th>
        <th scope="col" class="relay-wide key">{t.key}</th>
        <th scope="col" class="relay-wide time">{t.time}</th>
      </tr>
    </thead>
  )
}

/** Why a delivery has not arrived yet, or not at all; empty if it has. */
function whyOf(delivery: Delivery): string {
  const { state, hold, sendAt } = delivery
  if (hold) return capital(hold.reason)
  if (sendAt !== '') return writeMoment(sendAt)
  return state === 'sent' && !isPartlySent(delivery) ? '' : capital(reasonOf(delivery))
}

function viewRow(
  delivery: Delivery, index: number, isOpen: boolean, isChosen: boolean,
  open: (id: string) => void, choose: (id: string, isChosen: boolean) => void,
): VNode {
  const t = texts.value.deliveries
  const { id, target, bot, door, state, createdAt, items } = delivery
  const what = summarize(items)
  const why = whyOf(delivery)
  const source = labelOfDoor(door)
  const caller = callerOf(delivery)
  const name = describeTarget(target, bot)
  const word = stateWord(delivery)
  const viewBox = (): VNode => checkbox(undefined, model(isChosen, value => choose(id, value)), { describes: t.choose(name, word) })
  return (
    <tr key={id} class={['record', { open: isOpen }]} data-id={id} aria-rowindex={index + 2} onClick={() => open(id)}>
      <td class="check" onClick={(event: Event) => event.stopPropagation()}>
        {retryable.has(state) ? viewBox() : undefined}
      </td>
      <td>
        <button type="button" class="relay-open" aria-label={t.open(name, word)} aria-current={isOpen}>{stateMark(delivery)}</button>
        <div class="relay-narrow">{ago(createdAt)}</div>
      </td>
      <td title={name}>
        {viewTarget(target, bot)}
        <div class="relay-narrow">{why || what}</div>
      </td>
      <td class="relay-wide" title={texts.value.common.list([what, why].filter(Boolean))}>
        <span class="relay-content">
          <span class="relay-line">{what}</span>
          {why && <span class={['relay-line', retryable.has(state) ? 'relay-problem' : 'relay-hint']}>{why}</span>}
        </span>
      </td>
      <td class="relay-wide door" title={door}>{source}</td>
      <td class="relay-wide key" title={caller}>{caller}</td>
      <td class="relay-wide">{ago(createdAt)}</td>
    </tr>
  )
}

/** @param isOpen whether the filters that a phone hides at first are shown */
function viewFilters(filters: Filters, set: (changes: Filters) => void, rows: readonly Delivery[], isOpen: Model<boolean>): VNode {
  const t = texts.value.deliveries
  const { target = '', door = '', key = '', text = '', since, until } = filters
  const range = since !== undefined || until !== undefined ? 'custom' : filters.range ?? ''
  const known = {
    target: [
      ...(targets.value ?? []).map(({ name }) => plain(name)),
      ...knownChats().map(({ target: value, name }) => ({ value, label: name || value, ...name && { hint: value } })),
      ...rows.map(each => plain(each.target)),
    ],
    door: [...rows.map(each => each.door), 'webhook', 'send', 'onebot', ...(about.value?.sources ?? []).map(source => `hooks/${source}`)].map(value => (
      { value, label: labelOfDoor(value) }
    )),
    key: [...(keys.value ?? []).map(({ name }) => name), ...rows.map(each => each.key), pageName].map(plain),
  }
  const pick = (name: 'target' | 'door' | 'key', value: string, placeholder: string): VNode => {
    return select(value, unique(known[name], value), chosen => set({ [name]: chosen }), {
      placeholder, describes: t[name], clearable: true, free: true,
    })
  }
  const moment = (name: 'since' | 'until'): VNode => input(toLocal(filters[name]), value => set({ [name]: fromLocal(value) }), {
    type: 'datetime-local', describes: t[name],
  })
  const more = [target, door, key, range].filter(Boolean).length
  return (
    <div class={['relay-filters', { open: isOpen.modelValue }]} role="search">
      <div class="relay-search">
        <Search key="search" value={text} onChange={(value: string) => set({ text: value })} />
        <span class="relay-toggle">
          {button(more > 0 ? `${t.filters} (${more})` : t.filters, () => isOpen['onUpdate:modelValue'](!isOpen.modelValue), {
            expanded: isOpen.modelValue,
          })}
        </span>
      </div>
      <div class="relay-pickers">
        {pick('target', target, t.anyTarget)}
        {pick('door', door, t.anyDoor)}
        {pick('key', key, t.anyKey)}
        {select(range, optionsOf(t.ranges), value => {
          if (value === 'custom') set({ range: 'custom', since: new Date(Date.now() - 24 * hour).toISOString() })
          else set({ range: value, since: '', until: '' })
        }, { describes: t.range })}
        {range === 'custom' && [moment('since'), moment('until')]}
      </div>
    </div>
  )
}

/** The search box. The search starts a moment after the last key. */
const Search = defineComponent({
  props: { value: { type: String, required: true } },
  emits: { change: (value: string) => value.length >= 0 },
  setup(props, { emit }) {
    const typed = shallowRef(props.value)
    let timer: number | undefined
    const change = (value: string): void => {
      typed.value = value
      clearTimeout(timer)
      timer = window.setTimeout(() => emit('change', value.trim()), 250)
    }
    watch(() => props.value, value => {
      if (value !== typed.value.trim()) typed.value = value
    })
    onBeforeUnmount(() => clearTimeout(timer))
    return () => input(typed.value, change, {
      placeholder: texts.value.deliveries.search, describes: texts.value.deliveries.search, clearable: true, type: 'search',
    })
  },
})

/** Each option once, including the chosen one. */
function unique(options: readonly Option[], chosen: string): Option[] {
  const found = new Map<string, Option>()
  for (const option of options) if (option.value !== '' && !found.has(option.value)) found.set(option.value, option)
  if (chosen !== '' && !found.has(chosen)) found.set(chosen, plain(chosen))
  return [...found.values()]
}

/** The states to choose from, with the number of deliveries in each. Any number can be chosen. */
function viewChips(state = '', counts: Fields | undefined, onChange: (state: string) => unknown): VNode {
  const t = texts.value
  const chosen = state.split(',').filter(Boolean)
  const numberFor = (states: readonly string[]): number | undefined => {
    const known = states.flatMap(each => counts?.[each] === undefined ? [] : [numberOf(counts[each])])
    return known.length > 0 ? known.reduce((sum, each) => sum + each) : undefined
  }
  const chip = (label: string, mark: string, isOn: boolean, number: number | undefined, change: string): VNode => (
    <button type="button" class={['relay-chip', { on: isOn }]} aria-pressed={isOn} onClick={() => onChange(change)}>
      <span class={['relay-state', mark]}>{label}</span>
      {number !== undefined && <span class="relay-count">{writeNumber(number)}</span>}
    </button>
  )
  return (
    <div class="relay-chips" role="group" aria-label={t.deliveries.state}>
      {chip(t.common.all, 'plain', chosen.length === 0, numberFor(chips.flat()), '')}
      {chips.map(states => {
        const isOn = states.every(each => chosen.includes(each))
        const others = chosen.filter(each => !states.some(own => own === each))
        const mark = states[0] === 'waiting' ? 'queued' : states[0]
        return chip(t.states[mark], mark, isOn, numberFor(states), (isOn ? others : [...others, ...states]).join(','))
      })}
    </div>
  )
}

/** The button that retries all listed deliveries, if any of them can be retried. */
function viewRetryAll(
  state = '', counts: Fields | undefined, isBusy: boolean, retryAll: (states: readonly string[], count: number | undefined) => unknown,
): VNode | undefined {
  const chosen = state.split(',').filter(Boolean)
  // Without a choice of states, the list also contains deliveries that arrived, which the button would not retry.
  const states = [...retryable].filter(each => chosen.includes(each))
  const count = counts && states.reduce((sum, each) => sum + numberOf(counts[each]), 0)
  if (states.length === 0 || count === 0) return
  return button(texts.value.deliveries.retryAll(count), () => retryAll(states, count), { busy: isBusy })
}
