import { computed, defineComponent, onMounted, reactive, shallowRef, watch, type PropType, type VNode } from 'vue'
import { makeKey, type FreshKey, type Key } from '../admin'
import { call } from '../api'
import { listOf, textOf, wordsOf } from '../fields'
import { freeKeyName, keys, knownKeys, refreshInventory, targets } from '../inventory'
import { logos } from '../logos'
import { Arrival } from '../parts/arrival'
import { labelOf, notice, section } from '../parts/basics'
import { CopyBlock } from '../parts/copy'
import {
  bind, button, Field, FormDialog, inputField, multiSelect, optionsOf, say, selectField, submitting, type Labelled,
} from '../parts/elements'
import { describeChat, TargetPicker } from '../parts/target'
import { TargetDialog } from '../parts/target-dialog'
import { useTask, viewProblem } from '../parts/task'
import { TemplateEditor } from '../parts/template-editor'
import { groups, ownSource, sourcesOf, type Source } from '../sources'
import { about, goTo, place } from '../state'
import { languageNames, texts, wordFor } from '../texts'

/** Connects another system: a gallery of all known ones, or the steps for one of them. */
export const IntegrationsTab = defineComponent({
  setup() {
    onMounted(() => void refreshInventory())
    const sources = computed(() => sourcesOf(about.value?.sources ?? []))
    return () => {
      const { id } = place.value
      if (id === '') return <Gallery sources={sources.value} />
      const known = sources.value.find(({ name }) => name === id)
      return <Integration key={id} source={known ?? ownSource(id)} isNew={!known} />
    }
  },
})

/** The mark of a source: its logo, two letters, or one Chinese character. */
function viewMark(label: string, group: string, name = ''): VNode {
  const logo = logos[name] ?? logos[name.replace('-ci', '')]
  return (
    <span class={['relay-initial', group]} aria-hidden="true">
      {logo ? <svg viewBox="0 0 24 24"><path d={logo} /></svg> : initialsOf(label)}
    </span>
  )
}

function initialsOf(label: string): string {
  const [word = ''] = label.split(/[ ,]/)
  const capitals = word.replace(/[^A-Z]/g, '')
  if (/^\p{Script=Han}/u.test(word)) return word.slice(0, 1)
  return capitals.length > 1 ? capitals.slice(0, 2) : word.slice(0, 2)
}

/** A gallery of all sources. */
const Gallery = defineComponent({
  props: { sources: { type: Array as PropType<readonly Source[]>, required: true } },
  setup(props) {
    const isNaming = shallowRef(false)
    /** The sources without a template that have posted. */
    const posted = shallowRef<readonly string[]>([])
    onMounted(async () => {
      const { data } = await call('GET', '/payloads')
      const names = listOf(data.payloads).map(({ source }) => textOf(source))
      posted.value = names.filter(name => props.sources.every(source => source.name !== name))
    })
    const toggle = (): void => {
      isNaming.value = !isNaming.value
    }
    return () => {
      const t = texts.value.integrations
      return (
        <div>
          {section(t.choose, (
            <div>
              {groups.map(group => (
                <div role="group" aria-labelledby={`relay-group-${group}`}>
                  <h3 id={`relay-group-${group}`}>{t.groups[group]}</h3>
                  <div class="relay-tiles">
                    {props.sources.filter(source => source.group === group).map(source => (
                      <a class="relay-tile" href={`#integrations/${source.name}`}>
                        {viewMark(labelOf(source), group, source.name)}
                        {labelOf(source)}
                      </a>
                    ))}
                    {group === 'other' && posted.value.map(name => (
                      <a class="relay-tile" href={`#integrations/${name}`}>
                        {viewMark(name, group)}
                        {t.posted(name)}
                      </a>
                    ))}
                    {group === 'other' && (
                      <button type="button" class="relay-tile" aria-haspopup="dialog" onClick={toggle}>
                        {viewMark('+', group)}
                        {t.newSource}
                      </button>
                    )}
                  </div>
                </div>
              ))}
            </div>
          ))}
          {isNaming.value && <NamingDialog onClose={toggle} />}
        </div>
      )
    }
  },
})

/** Asks for the name of a new source with the operator's own template. */
const NamingDialog = defineComponent({
  emits: ['close'],
  setup(_, { emit }) {
    const name = shallowRef('')
    const problem = shallowRef<string>()
    const go = (): void => {
      const word = name.value.trim()
      problem.value = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(word) ? undefined : texts.value.integrations.needName
      if (problem.value !== undefined) return
      emit('close')
      goTo('integrations', word)
    }
    return () => {
      const t = texts.value.integrations
      return (
        <FormDialog title={t.newSourceTitle} verb={t.newSourceVerb} onSubmit={go} onClose={() => emit('close')}>
          {() => inputField(t.newSourceName, bind(name, 'value'), { hint: t.newSourceHint, problem: problem.value })}
        </FormDialog>
      )
    }
  },
})

/** The choices for a source. */
interface Draft {
  targets: string[]
  /** Empty for a new key. */
  key: string
  /** The names of the keys that were created here, by their targets. */
  made: Map<string, string>
  filters: { events: string[], status: string[], branch: string, lang: string }
}

/** By the name of the source. Drafts outlive the tab, because the relay never shows a key again. */
const drafts = new Map<string, Draft>()

function draftOf({ name }: Source): Draft {
  const draft = drafts.get(name) ?? reactive<Draft>({
    targets: [], key: '', made: new Map(), filters: { events: [], status: [], branch: '', lang: '' },
  })
  drafts.set(name, draft)
  return draft
}

/** The steps to connect a source. */
const Integration = defineComponent({
  props: {
    source: { type: Object as PropType<Source>, required: true },
    /** Whether the source needs a template first. */
    isNew: Boolean,
  },
  setup(props) {
    const chosen = draftOf(props.source)
    const calls = shallowRef(0)
    const isEditing = shallowRef(false)
    const isNamingTarget = shallowRef(false)
    const toggleNaming = (): void => {
      isNamingTarget.value = !isNamingTarget.value
    }
    // Targets in an address are separated by commas without blanks.
    const target = computed(() => chosen.targets.join(','))
    const usable = computed(() => (keys.value ?? []).filter(key => isUsable(key, props.source)))
    /** The chosen key, unless it was revoked. */
    const keyName = computed(() => usable.value.some(({ name }) => name === chosen.key) ? chosen.key : '')
    const fresh = computed(() => knownKeys.get(keyName.value))
    // A key that was created here may send only to the targets that were chosen then.
    watch(target, next => {
      chosen.key = chosen.made.get(next) ?? (fresh.value ? '' : chosen.key)
    })

    const viewTarget = (): VNode => {
      const t = texts.value.integrations
      const isNamed = chosen.targets.length !== 1 || targets.value?.some(({ name }) => name === chosen.targets[0])
      return section(step(1, t.target), (
        <div>
          <TargetPicker {...bind(chosen, 'targets')} label={texts.value.send.target} hint={texts.value.send.targetHint} />
          {button(isNamed ? t.newTarget : t.nameIt, toggleNaming, { look: 'small' })}
          {isNamingTarget.value && (
            <TargetDialog
              chats={isNamed ? [] : chosen.targets}
              onSaved={(name: string) => {
                chosen.targets = [name]
              }}
              onClose={toggleNaming}
            />
          )}
        </div>
      ))
    }

    const viewKey = (): VNode => {
      const t = texts.value.integrations
      const options = usable.value.map(({ name, targets: list }) => ({
        value: name, label: name, hint: list ? list.join(', ') : texts.value.keys.everywhere,
      }))
      return section(step(2, t.key), (
        <div>
          {options.length > 0 && selectField(texts.value.keys.key, { ...bind(chosen, 'key'), modelValue: keyName.value }, [
            { value: '', label: t.newKey }, ...options,
          ])}
          {viewKeyState()}
        </div>
      ))
    }
    const viewKeyState = (): VNode => {
      const t = texts.value.integrations
      if (fresh.value) return notice('good', t.keyMade(fresh.value.name))
      if (keyName.value !== '') return notice('info', props.source.signs ? t.secretKnown(keyName.value) : t.keyKnown(keyName.value))
      const keep = (key: FreshKey): void => {
        knownKeys.set(key.name, key)
        chosen.made.set(target.value, key.name)
        chosen.key = key.name
      }
      return <KeyMaker source={props.source} targets={chosen.targets} onMade={keep} />
    }

    const viewSetup = (): VNode => {
      const t = texts.value.integrations
      const { source } = props
      const known = source.signs ? fresh.value?.secret : fresh.value?.key
      const isReady = target.value !== '' && keyName.value !== ''
      const guide = (): VNode => (
        <div>
          {about.value?.isPublic === false && notice('info', t.private)}
          {source.scope === 'hooks' && source.guide !== 'apprise' && viewFilters(source, chosen.filters)}
          {viewGuide(source, target.value, known ?? (source.signs ? '<secret>' : '<key>'), queryOf(chosen.filters))}
          <p>{button(t.test, () => sendTest(source, chosen.targets), { describes: t.testHint })}</p>
        </div>
      )
      return section(step(3, t.setup(labelOf(source))), isReady ? guide() : <p>{t.setupWaits}</p>)
    }

    const viewEditor = (): VNode => {
      const t = texts.value.integrations
      if (props.isNew || isEditing.value) return <TemplateEditor source={props.source} calls={calls.value} isNew={props.isNew} />
      return section(t.editing, <p class="relay-hint">{t.templateHint}</p>, button(t.edit, () => {
        isEditing.value = true
      }))
    }

    const viewSteps = (): VNode => {
      const { source } = props
      return (
        <div>
          <div class="relay-columns relay-pair">
            {viewTarget()}
            {viewKey()}
          </div>
          {viewSetup()}
          <Arrival key={keyName.value} source={source} label={labelOf(source)} keyName={keyName.value} onCall={() => calls.value++} />
          {source.scope === 'hooks' && viewEditor()}
        </div>
      )
    }
    return () => (
      <div>
        <header class="relay-back">
          <a href="#integrations">{texts.value.integrations.all}</a>
          <h2>{labelOf(props.source)}</h2>
        </header>
        {props.isNew ? viewEditor() : viewSteps()}
      </div>
    )
  },
})

function step(number: number, title: string): string {
  return `${number}. ${title}`
}

/** Whether a source may call with an existing key. */
function isUsable({ allow, sources, expires }: Key, { name, scope }: Source): boolean {
  if (sources.length > 0 && !sources.includes(name)) return false
  return allow.includes(scope) && (expires === undefined || Date.parse(expires) > Date.now())
}

/** Creates a key that is restricted to a source. */
const KeyMaker = defineComponent({
  props: {
    source: { type: Object as PropType<Source>, required: true },
    targets: { type: Array as PropType<readonly string[]>, required: true },
  },
  emits: { made: (key: FreshKey) => key.key !== '' },
  setup(props, { emit }) {
    const typed = shallowRef<string>()
    const name = computed(() => typed.value ?? freeKeyName(props.source.name))
    const task = useTask()
    const make = async (): Promise<void> => {
      const { source: { name: source, scope, signs = false }, targets: list } = props
      const sources = scope === 'hooks' ? source : ''
      const wish = { name: name.value, targets: list, sources, allow: [scope], expires: '', rate: '', from: '', signs }
      const made = await task.run(() => makeKey(wish))
      if (!made) return
      emit('made', made.value)
      await refreshInventory()
    }
    return () => {
      const t = texts.value.integrations
      const isReady = props.targets.length > 0
      return (
        <form onSubmit={submitting(make)}>
          {inputField(t.keyName, { ...bind(typed, 'value'), modelValue: name.value }, {
            hint: isReady ? t.keyHint(texts.value.common.list(props.targets.map(describeChat)), props.source.scope !== 'send') : t.keyHintAny,
          })}
          {viewProblem(task)}
          {button(t.createKey, undefined, { kind: 'primary', submits: true, busy: task.isBusy, disabled: !isReady })}
        </form>
      )
    }
  },
})

/** Sends a message to the targets, whatever the source. */
async function sendTest(source: Source, to: readonly string[]): Promise<void> {
  const { send, common, integrations: t } = texts.value
  const { isRight, msg, data } = await call('POST', '/webhook', { body: JSON.stringify({ to, msg: t.testText(labelOf(source)) }) })
  const target = common.list(to.map(describeChat))
  if (!isRight) say('bad', common.failed(msg))
  else say(data.state === undefined ? 'good' : 'info', data.state === undefined ? send.sent(target) : send.accepted(target))
}

/** The query of an address with these filters. */
function queryOf({ events, status, branch, lang }: Draft['filters']): string {
  const all = { events, status, branch: wordsOf(branch), lang: [lang].filter(Boolean) }
  return Object.entries(all).filter(([, words]) => words.length > 0).map(([name, words]) => `${name}=${words.map(encodeURIComponent).join(',').replaceAll('%2F', '/')}`).join('&')
}

/** What the address selects, and in which language its messages are. */
function viewFilters({ filters }: Source, chosen: Draft['filters']): VNode {
  const t = texts.value.integrations
  const pick = (name: 'events' | 'status', words: readonly string[] = []): VNode | false => words.length > 0 && (
    <Field label={t[name]}>
      {(labelled: Labelled) => multiSelect(chosen[name], words.map(value => ({ value, label: wordFor(t.results, value) })), next => {
        chosen[name] = next
      }, { ...labelled, placeholder: texts.value.common.all })}
    </Field>
  )
  return (
    <div class="relay-pair">
      {pick('events', filters?.events)}
      {pick('status', filters?.status)}
      {filters?.hasBranch && inputField(t.branch, bind(chosen, 'branch'), { placeholder: 'main, release/*' })}
      {selectField(texts.value.language, bind(chosen, 'lang'), [{ value: '', label: texts.value.targets.defaultLang }, ...optionsOf(languageNames)])}
    </div>
  )
}

function viewGuide(source: Source, target: string, key: string, query: string): VNode {
  const t = texts.value.integrations
  const { open, finish } = t.guides[source.guide]
  const { fields, snippet } = source.setup({ url: about.value?.url ?? '', target, key, query, words: t.words })
  return (
    <div>
      <p>{open}</p>
      {fields.map(([name, value]) => (
        <div class="relay-value">
          <span class="relay-label">{wordFor(t.fields, name)}</span>
          <CopyBlock text={value} name={wordFor(t.fields, name)} />
        </div>
      ))}
      {snippet !== undefined && <CopyBlock text={snippet} name={t.snippet} />}
      <p>{finish}</p>
    </div>
  )
}
