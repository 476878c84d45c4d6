import { computed, defineComponent, reactive, shallowRef, type VNode, type VNodeChild } from 'vue'
import { call, makeKey, pageName, type KeyView, type NewKey } from '../api'
import { keyLines } from '../curl'
import { listOf, numberOf, textOf, wordsOf, type Fields } from '../fields'
import { field, notice, section, valueOf } from '../parts/basics'
import { button } from '../parts/elements'
import { CopyBlock } from '../parts/copy'
import { usePolling } from '../poll'
import { about, refreshAbout } from '../state'
import { texts, writeMoment } from '../texts'

/** The keys, how they are used, and a new one. */
export const KeysTab = defineComponent({
  setup() {
    const usage = shallowRef<Fields[]>([])
    usePolling(async () => {
      const [{ isRight, data }] = await Promise.all([call('GET', '/statusz'), refreshAbout()])
      if (isRight) usage.value = listOf(data.keys)
    })
    return () => {
      const t = texts.value.keys
      return (
        <div>
          {section(t.list, (
            <div class="relay-scroll" tabindex="0" role="region" aria-label={t.list}>
              <table class="relay-cards" role="table">
                <thead role="rowgroup">
                  <tr role="row">{[t.name, t.targets, t.allow, t.expires, t.used, t.sent, t.refused].map(name => <th scope="col" role="columnheader">{name}</th>)}</tr>
                </thead>
                <tbody role="rowgroup">{rowsOf(usage.value, about.value?.keys ?? [])}</tbody>
              </table>
            </div>
          ))}
          <NewKeyForm />
        </div>
      )
    }
  },
})

function rowsOf(usage: Fields[], keys: KeyView[]): VNode[] {
  const t = texts.value.keys
  const usageOf = (name: string | null): Fields | undefined => usage.find(each => each.name === name)
  return [
    viewRow(t.master, undefined, usageOf(null)),
    ...keys.map(key => viewRow(key.name, key, usageOf(key.name))),
    viewRow(t.page, undefined, usageOf(pageName)),
  ]
}

function viewRow(name: string, key: KeyView | undefined, usage: Fields | undefined): VNode {
  const t = texts.value.keys
  const last = textOf(usage?.last_used)
  const from = textOf(usage?.last_address)
  return (
    <tr role="row">
      <th scope="row" role="rowheader">{name}</th>
      {cell(t.targets, key?.targets?.join(', ') ?? t.everywhere)}
      {cell(t.allow, key?.allow.join(', ') ?? t.everything)}
      {cell(t.expires, viewExpiry(key?.expires))}
      {cell(t.used, last === '' ? t.never : from === '' ? writeMoment(last) : t.from(writeMoment(last), from))}
      {cell(t.sent, numberOf(usage?.messages))}
      {cell(t.refused, numberOf(usage?.refused))}
    </tr>
  )
}

/** A cell that has its head with it where the page is narrow. The table shown otherwise then is a table still, for those who hear it. */
function cell(name: string, value: VNodeChild): VNode {
  return <td role="cell" data-name={name}>{value}</td>
}

function viewExpiry(expires: number | undefined): VNodeChild {
  const t = texts.value.keys
  if (expires === undefined) return t.always
  // Of a date, its end counts.
  const date = writeMoment(expires - 1)
  return expires < Date.now() ? <span class="relay-state failed">{texts.value.common.named(date, t.over)}</span> : date
}

/** Makes a key, and shows it once. */
const NewKeyForm = defineComponent({
  setup() {
    const entry = reactive<Wish>({ name: '', targets: '', expires: '', allow: ['send'] })
    const made = shallowRef<NewKey>()
    const isOut = shallowRef(false)
    /** Before somebody has asked for the key, nothing is wrong yet. */
    const isAsked = shallowRef(false)
    const problems = computed(() => isAsked.value ? problemsOf(entry) : {})
    const make = async (): Promise<void> => {
      isAsked.value = true
      if (Object.keys(problems.value).length > 0) return
      made.value = await makeKey()
      isOut.value = !made.value
    }
    const toggle = (scope: string): void => {
      entry.allow = entry.allow.includes(scope) ? entry.allow.filter(each => each !== scope) : [...entry.allow, scope]
    }
    const input = (name: 'name' | 'targets' | 'expires', type: string, hint?: string): VNode => field(texts.value.keys[name], (
      <input
        type={type}
        aria-invalid={problems.value[name] !== undefined}
        value={entry[name]}
        onInput={(event: Event) => {
          entry[name] = valueOf(event)
        }}
      />
    ), hint, problems.value[name])
    return () => {
      const t = texts.value.keys
      const deeds: Partial<Record<string, string>> = t.deeds
      if (made.value) return section(t.make, viewMade(made.value, entry, () => {
        made.value = undefined
        isAsked.value = false
        entry.name = ''
      }))
      return section(t.make, (
        <form
          onSubmit={(event: Event) => {
            event.preventDefault()
            void make()
          }}
        >
          <div class="relay-columns">
            {input('name', 'text')}
            {input('targets', 'text', t.targetsHint)}
            {input('expires', 'date', t.expiresHint)}
          </div>
          <fieldset>
            <legend>{t.allow}</legend>
            <div class="relay-checks">
              {(about.value?.scopes ?? []).map(scope => (
                <label>
                  <input type="checkbox" checked={entry.allow.includes(scope)} onChange={() => toggle(scope)} />
                  <span>
                    <code>{scope}</code>
                    {deeds[scope] !== undefined && <span class="relay-hint">{deeds[scope]}</span>}
                  </span>
                </label>
              ))}
            </div>
            {problems.value.allow && notice('bad', problems.value.allow)}
          </fieldset>
          {isOut.value && notice('bad', texts.value.common.offline)}
          {button(t.make, make, { kind: 'primary' })}
        </form>
      ))
    }
  },
})

/** What the form holds. */
interface Wish {
  name: string
  targets: string
  expires: string
  allow: string[]
}

/** What is wrong with its fields. */
function problemsOf({ name, allow }: Wish): Partial<Record<keyof Wish, string>> {
  const t = texts.value.keys
  const word = name.trim()
  return {
    ...word === '' && { name: t.needName },
    ...word === pageName && { name: t.pageName(pageName) },
    ...allow.length === 0 && { allow: t.needScope },
  }
}

function viewMade({ key, digest }: NewKey, entry: Wish, done: () => unknown): VNode {
  const t = texts.value.keys
  return (
    <div>
      {notice('info', t.once)}
      <h3>{t.key}</h3>
      <CopyBlock text={key} name={t.key} />
      <p>{t.line}</p>
      <CopyBlock text={keyLines({ ...entry, name: entry.name.trim(), targets: wordsOf(entry.targets), proof: ['key', digest] })} name={t.line} />
      {button(t.done, done)}
    </div>
  )
}
