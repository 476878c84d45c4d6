import { defineComponent, nextTick, shallowRef, type PropType, type VNode } from 'vue'
import { pageName } from '../api'
import { actOn, loadIncident, loadIncidents, me, unresolved, type Action, type Incident } from '../duty'
import { numberOf, textOf, type Fields } from '../fields'
import { people, targets } from '../inventory'
import { fact, notice, section } from '../parts/basics'
import { button, choice, closeButton, Drawer, model, plain, prompt, say, select } from '../parts/elements'
import { describeOwner, nameOfPerson, severityMark } from '../parts/incident'
import { usePolling } from '../poll'
import { goTo, place, replacePlace } from '../state'
import { capital, texts, wordFor, writeMoment, writeSpan } from '../texts'

/** The most incidents of a list that are shown. */
const most = 100
const hour = 3_600_000

type Act = (incident: Incident, action: Action, until?: Date) => Promise<void>

/** What is unresolved and whose it is, and what is resolved. */
export const IncidentsTab = defineComponent({
  setup() {
    const open = shallowRef<Incident[]>()
    const resolved = shallowRef<Incident[]>([])
    const problem = shallowRef('')

    const look = usePolling(async () => {
      const { target } = place.value.query
      const [now, before] = await Promise.all([loadIncidents(unresolved, target), loadIncidents('resolved', target)])
      problem.value = 'problem' in now ? texts.value.common.failed(now.problem) : ''
      if ('value' in now) open.value = now.value
      if ('value' in before) resolved.value = before.value
    })
    const set = (changes: { state?: string, target?: string }): void => {
      const query = Object.entries({ ...place.value.query, ...changes }).filter(([, value]) => value)
      replacePlace({ query: Object.fromEntries(query) })
      void look()
    }
    /** Asks who sits here, so that actions have a name. */
    const askName = async (): Promise<void> => {
      const t = texts.value.incidents
      const word = await prompt(t.whoTitle, t.whoHint, t.remember, nameOfPerson(me.value.name))
      if (word !== '') me.value.name = people.value?.find(({ called }) => called === word)?.name ?? word
    }
    const act: Act = async ({ id }, action, until) => {
      if (me.value.name === '') await askName()
      if (me.value.name === '') return
      const result = await actOn(id, action, until)
      if ('problem' in result) say('bad', texts.value.common.failed(result.problem))
      await look()
    }
    const close = (): void => {
      const { id, query } = place.value
      goTo('incidents', '', query)
      void nextTick(() => document.querySelector<HTMLElement>(`.relay-incidents a[href^="#incidents/${id}"]`)?.focus())
    }

    return () => {
      const t = texts.value.incidents
      const { id, query: { state = '', target = '' } } = place.value
      if (!open.value) return <p role="status">{problem.value || texts.value.common.loading}</p>
      const list = (all: readonly Incident[], none: string): VNode => viewList(all.filter(each => state === '' || each.state === state), none, act)
      const names = [...new Set([...targets.value ?? [], ...open.value, ...resolved.value].map(({ name }) => name))]
      return (
        <div class="relay-incidents">
          {problem.value && notice('bad', problem.value)}
          <div class="relay-spread">
            <div class="relay-row">
              {choice(t.state, model(state, value => set({ state: value })), [
                ['', texts.value.common.all], ...(['open', 'taken', 'silenced', 'resolved'] as const).map(each => [each, t.states[each]] as const),
              ])}
              <div class="relay-pick">
                {select(target, names.map(plain), value => set({ target: value }), {
                  placeholder: t.anyTarget, describes: t.target, clearable: true, searched: true,
                })}
              </div>
            </div>
            {me.value.name !== '' && button(t.actAs(nameOfPerson(me.value.name)), askName, { look: 'link' })}
          </div>
          {state !== 'resolved' && section(t.unresolved(open.value.length), list(open.value, t.none))}
          {(state === '' || state === 'resolved') && section(t.resolved, list(resolved.value, t.noneResolved))}
          <p class="relay-hint">{t.hint}</p>
          {id !== '' && <Drawer title={t.title} onClose={close}>{() => <IncidentView key={id} id={id} act={act} onClose={close} />}</Drawer>}
        </div>
      )
    }
  },
})

function viewList(all: readonly Incident[], none: string, act: Act): VNode {
  const t = texts.value.incidents
  if (all.length === 0) return <p>{none}</p>
  return (
    <div>
      <ul class="relay-list">{all.slice(0, most).map(incident => viewIncident(incident, act))}</ul>
      {all.length > most && <p class="relay-hint">{t.more(all.length - most)}</p>}
    </div>
  )
}

function viewIncident(incident: Incident, act: Act): VNode {
  const t = texts.value
  const { id, name, title, severity, events, nextStepAt } = incident
  return (
    <li key={id}>
      <div class="relay-grow">
        <div class="relay-row relay-titled">
          {severityMark(severity)}
          <a href={`#incidents/${id}?${new URLSearchParams(place.value.query)}`}><strong>{title}</strong></a>
        </div>
        {describeOwner(incident)}
        <span class="relay-hint">
          {t.common.list([name, id, t.incidents.events(events), ...nextStepAt ? [describeStep(nextStepAt)] : []])}
        </span>
      </div>
      {viewActions(incident, act)}
    </li>
  )
}

/** When the next step of the escalation is due. */
function describeStep(moment: string): string {
  return texts.value.incidents.nextStep(writeSpan(Date.parse(moment) - Date.now()))
}

function viewActions(incident: Incident, act: Act): VNode | undefined {
  const t = texts.value.incidents
  const { pair } = texts.value.common
  const { state, title } = incident
  if (state === 'resolved') return
  const verb = (action: 'take' | 'resolve' | 'release', kind?: 'primary'): VNode => button(t.verbs[action], () => act(incident, action), {
    describes: pair(t.verbs[action], title), ...kind && { kind },
  })
  return (
    <div class="relay-row">
      {state !== 'taken' && verb('take', 'primary')}
      <div class="relay-silence">
        {select('', [['1', t.forHours(1)], ['4', t.forHours(4)], ['', t.untilMorning]].map(([value = '', label = '']) => ({ value: value || 'morning', label })), value => (
          void act(incident, 'silence', value === 'morning' ? morning() : new Date(Date.now() + Number(value) * hour))
        ), { placeholder: t.verbs.silence, describes: pair(t.verbs.silence, title) })}
      </div>
      {verb('resolve')}
      {state !== 'open' && verb('release')}
    </div>
  )
}

/** The next nine o'clock that is more than an hour away, where the browser is. */
function morning(): Date {
  const date = new Date(Date.now() + 16 * hour)
  date.setHours(9, 0, 0, 0)
  return date
}

/** An incident, and what happened to it. */
const IncidentView = defineComponent({
  props: { id: { type: String, required: true }, act: { type: Function as PropType<Act>, required: true } },
  emits: ['close'],
  setup(props, { emit }) {
    const incident = shallowRef<Incident>()
    const problem = shallowRef('')
    const look = usePolling(async () => {
      const found = await loadIncident(props.id)
      problem.value = 'problem' in found ? texts.value.common.failed(found.problem) : ''
      if ('value' in found) incident.value = found.value
    })
    const act: Act = async (...action) => {
      await props.act(...action)
      await look()
    }
    return () => {
      const t = texts.value.incidents
      const shown = incident.value
      return (
        <article class="relay-record">
          <header>
            <h2>{shown?.title ?? t.title}</h2>
            {shown && severityMark(shown.severity)}
            {closeButton(() => emit('close'))}
          </header>
          <div class="relay-record-body" tabindex="0" role="region" aria-label={t.timeline}>
            {problem.value && notice('bad', problem.value)}
            {shown && viewDetails(shown)}
          </div>
          {shown && shown.state !== 'resolved' && <footer>{viewActions(shown, act)}</footer>}
        </article>
      )
    }
  },
})

function viewDetails(incident: Incident): VNode {
  const { incidents: t, record } = texts.value
  const { id, name, thread, since, events, nextStepAt, timeline } = incident
  // The first message is a little older than its incident.
  const messages = new URLSearchParams({ target: name, since: new Date(Date.parse(since) - 5000).toISOString() })
  return (
    <div>
      {describeOwner(incident)}
      <dl class="relay-facts">
        {fact(t.target, name)}
        {fact(t.since, writeMoment(since))}
        {fact(t.count, <a href={`#deliveries?${messages}`}>{t.events(events)}</a>)}
        {nextStepAt && fact(t.next, writeMoment(nextStepAt))}
        {fact(record.id, <span class="mono">{id}</span>)}
        {fact(record.thread, <span class="mono">{thread}</span>, true)}
      </dl>
      <h3>{t.timeline}</h3>
      <ol class="relay-timeline">{timeline.map(viewEntry)}</ol>
    </div>
  )
}

/** What happened, who did it by which way, and when. */
function viewEntry({ kind, at, by, way, account, key_name: key, step, until }: Fields): VNode {
  const t = texts.value.incidents
  const word = wordFor(t.kinds, kind === 'resolved' && !by ? 'ended' : textOf(kind))
  const what = [
    by ? t.did(nameOfPerson(textOf(by)), word) : capital(word),
    ...step === undefined ? [] : [t.step(numberOf(step))], ...until ? [t.until(writeMoment(textOf(until)))] : [],
  ]
  const door = key === pageName ? [t.ways.page] : way ? [wordFor(t.ways, textOf(way)), ...[account, key].map(textOf).filter(Boolean)] : []
  const how = [writeMoment(textOf(at)), ...door]
  return (
    <li class="relay-row">
      <strong>{texts.value.common.list(what)}</strong>
      <span class="relay-aside">{texts.value.common.list(how)}</span>
    </li>
  )
}
