import { computed, defineComponent, reactive, shallowRef, watch, type VNode } from 'vue'
import { call, loadDeliveries, makeKey, pageName, type Delivery, type NewKey, type Reply } from '../api'
import { addressFor, callersOf, type Caller } from '../callers'
import { curlOf, keyLines, type NewEntry } from '../curl'
import { textOf, wordsOf } from '../fields'
import { field, notice, section, stateMark, valueOf } from '../parts/basics'
import { button } from '../parts/elements'
import { CopyBlock, CopyButton } from '../parts/copy'
import { summarize } from '../parts/items'
import { viewPreview } from '../parts/preview'
import { TargetField, viewTarget } from '../parts/target'
import { usePolling } from '../poll'
import { about, goTo } from '../state'
import { texts, writeMoment } from '../texts'

/** Connects another system: its address, three steps, and its first message. */
export const IntegrationsTab = defineComponent({
  setup() {
    const chosen = reactive({ caller: 'curl', target: '' })
    const key = shallowRef<NewKey>()
    const callers = computed(() => callersOf(about.value?.sources ?? []))
    const caller = computed(() => callers.value.find(({ name }) => name === chosen.caller) ?? callers.value[0])
    watch(() => chosen.caller, () => {
      key.value = undefined
    })
    const make = async (): Promise<void> => {
      key.value = await makeKey()
    }
    return () => {
      const t = texts.value.integrations
      const { value: current } = caller
      if (!current) return <p>{texts.value.common.loading}</p>
      const targets = wordsOf(chosen.target)
      // An address has no blanks behind its commas.
      const target = targets.join(',')
      return (
        <div>
          {section(texts.value.tabs.integrations, (
            <div class="relay-columns">
              {field(t.caller, (
                <select
                  value={chosen.caller}
                  onChange={(event: Event) => {
                    chosen.caller = valueOf(event)
                  }}
                >
                  {callers.value.map(each => <option value={each.name}>{labelOf(each)}</option>)}
                </select>
              ))}
              <TargetField
                modelValue={chosen.target}
                onUpdate:modelValue={(value: string) => {
                  chosen.target = value
                }}
              />
            </div>
          ))}
          {section(t.keyTitle, current.signs === 'secret' ? viewSecret(current, targets) : key.value ? viewKey(current, targets, key.value) : offerKey(make))}
          {section(t.steps, (
            <div>
              {about.value?.isPublic === false && notice('info', t.private)}
              {viewSteps(current, target, key.value?.key ?? '<key>')}
            </div>
          ))}
          <Arrival key={`${current.name} ${target}`} caller={current} />
          {current.name !== 'curl' && <Trial key={current.name} caller={current} target={target} />}
        </div>
      )
    }
  },
})

/** What a caller is called, in the language of the page. */
function labelOf({ name, label, steps }: Caller): string {
  const t = texts.value.integrations
  const labels: Partial<Record<string, string>> = t.labels
  return steps === 'own' ? t.own(name) : labels[name] ?? label
}

function viewSteps(caller: Caller, target: string, key: string): VNode {
  const t = texts.value.integrations
  const [first = '', second = '', third = ''] = t.doors[caller.steps]
  return (
    <ol class="relay-steps">
      <li>{first}</li>
      <li>
        {second}
        <CopyBlock text={addressFor(caller, about.value?.url ?? '', target, key)} name={t.address} />
      </li>
      <li>{third}</li>
    </ol>
  )
}

function offerKey(make: () => unknown): VNode {
  const t = texts.value.integrations
  return (
    <div>
      <p>{t.keyHint}</p>
      {button(t.newKey, make)}
    </div>
  )
}

function viewKey(caller: Caller, targets: readonly string[], { key, digest }: NewKey): VNode {
  const t = texts.value
  return (
    <div>
      {notice('info', caller.signs ? t.integrations.plainKey : t.keys.once)}
      <h3>{t.keys.key}</h3>
      <CopyBlock text={key} name={t.keys.key} />
      {/* A key whose digest alone is known checks no signature. */}
      {viewEntry(caller, targets, ['key', caller.signs ? `\${{ env.${variableOf(caller)}_RELAY_KEY }}` : digest])}
    </div>
  )
}

/** What is to be entered for a caller that needs no key, for it chooses its secret itself. */
function viewSecret(caller: Caller, targets: readonly string[]): VNode {
  const variable = `${variableOf(caller)}_CLIENT_SECRET`
  return (
    <div>
      {notice('info', texts.value.integrations.ownSecret(caller.label, variable))}
      {viewEntry(caller, targets, ['secret', `\${{ env.${variable} }}`])}
    </div>
  )
}

function viewEntry({ name: caller }: Caller, targets: readonly string[], proof: NewEntry['proof']): VNode {
  const t = texts.value
  const allow = [caller === 'curl' ? 'send' : 'hooks']
  // A template may be called like this page; a key may not.
  const name = caller === pageName ? `hooks-${caller}` : caller
  return (
    <div>
      <p>{t.integrations.keyInSettings}</p>
      <CopyBlock text={keyLines({ name, proof, targets, allow, expires: '' })} name={t.keys.line} />
    </div>
  )
}

/** How a variable of the environment begins that is for a caller. */
function variableOf({ name }: Caller): string {
  return name.toUpperCase().replace(/[^A-Z]/g, '_')
}

/** Waits for the first message of a caller, and shows it. */
const Arrival = defineComponent({
  props: { caller: { type: Object as () => Caller, required: true } },
  setup(props) {
    const door = props.caller.name === 'curl' ? 'send' : `hooks/${props.caller.name}`
    /** The newest that was there already, empty for none; absent until that is known. Unlike a time, no clock has to be right for it. */
    const mark = shallowRef<string>()
    const first = shallowRef<Delivery>()
    usePolling(async () => {
      if (first.value && !['queued', 'sending'].includes(first.value.state)) return
      const page = await loadDeliveries({ door, limit: '20' })
      if (!page) return
      const { value: last } = mark
      // The newest come first.
      if (last === undefined) mark.value = page.deliveries[0]?.id ?? ''
      else first.value = page.deliveries.findLast(({ id }) => id > last)
    })
    return () => {
      const { integrations: t, common } = texts.value
      const { value: delivery } = first
      if (!delivery) return section(t.waitingFor(labelOf(props.caller)), <p role="status">{mark.value === undefined ? common.loading : t.nothing}</p>)
      return section(t.arrived, (
        <div role="status">
          <div class="relay-row">
            {stateMark(delivery)}
            {viewTarget(delivery.target, delivery.bot)}
            <span class="relay-aside">{writeMoment(delivery.createdAt)}</span>
          </div>
          <p class="relay-said">{summarize(delivery.items)}</p>
          {button(t.open, () => goTo('deliveries', delivery.id))}
        </div>
      ))
    }
  },
})

/** Shows what becomes of a payload, beside it. Nothing is sent. */
const Trial = defineComponent({
  props: { caller: { type: Object as () => Caller, required: true }, target: { type: String, required: true } },
  setup(props) {
    const trial = reactive({ payload: '', event: props.caller.event?.[1] ?? '' })
    const reply = shallowRef<Reply>()
    const problem = shallowRef('')
    const said = shallowRef('')
    const path = `/payloads/${encodeURIComponent(props.caller.name)}`
    const take = async (): Promise<void> => {
      const { isRight, status, msg, data } = await call('GET', path)
      const t = texts.value
      said.value = isRight ? t.integrations.taken(writeMoment(textOf(data.received_at))) : ''
      problem.value = isRight ? '' : status === 404 ? t.integrations.noPayload : t.common.failed(msg)
      if (!isRight) return
      trial.payload = JSON.stringify(data.payload, undefined, 2)
      trial.event = textOf(data.event) || trial.event
      if (props.target !== '') await render()
    }
    const render = async (): Promise<void> => {
      problem.value = props.target === '' ? texts.value.send.needTarget : ''
      if (problem.value) return
      const { name, event } = props.caller
      reply.value = await call('POST', `/hooks/${encodeURIComponent(name)}/${encodeURIComponent(props.target)}`, {
        query: { dry_run: '1' }, headers: { 'content-type': 'application/json', ...event && { [event[0]]: trial.event } }, body: trial.payload,
      })
      if (!reply.value.isRight) problem.value = texts.value.common.failed(reply.value.msg)
    }
    return () => {
      const t = texts.value.integrations
      return section(t.try, (
        <div class="relay-columns">
          <div>
            {props.caller.event && field(t.event, (
              <input
                value={trial.event}
                onInput={(event: Event) => {
                  trial.event = valueOf(event)
                }}
              />
            ), t.eventHint(props.caller.event[0]))}
            {field(t.payload, (
              <textarea
                class="mono"
                spellcheck={false}
                value={trial.payload}
                onInput={(event: Event) => {
                  trial.payload = valueOf(event)
                }}
              />
            ))}
            <div class="relay-row">
              {button(t.render, render, { kind: 'primary' })}
              {button(t.take, take)}
              <CopyButton text={curlOf('GET', `${about.value?.url ?? ''}${path}`)} label={texts.value.record.curl} describes={t.take} />
            </div>
            {said.value && notice('good', said.value)}
          </div>
          <div aria-live="polite">
            <h3>{t.message}</h3>
            {problem.value ? notice('bad', problem.value) : reply.value ? viewTrial(reply.value) : <p>{t.noMessage}</p>}
          </div>
        </div>
      ))
    }
  },
})

function viewTrial({ data }: Reply): VNode {
  if (data.skipped !== undefined) return notice('info', texts.value.integrations.skipped(textOf(data.skipped)))
  return viewPreview(data)
}
