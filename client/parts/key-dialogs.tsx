import { defineComponent, reactive, shallowRef, type PropType, type VNode } from 'vue'
import { makeKey, rotateKey, type FreshKey, type Key } from '../admin'
import { pageName } from '../api'
import { wordsOf } from '../fields'
import { knownKeys, refreshInventory } from '../inventory'
import { about } from '../state'
import { texts } from '../texts'
import { notice } from './basics'
import { CopyBlock } from './copy'
import { button, checkbox, Dialog, Field, input, select, type Labelled } from './elements'
import { TargetPicker } from './target'

/** A key that was just made, which nobody is shown again. It stays here, whatever the page shows, until somebody has taken it. */
const fresh = shallowRef<FreshKey>()

/** Shows a key that was just made, until a click on the button says that it was taken. */
export const FreshKeyDialog = defineComponent({
  setup: () => () => {
    const t = texts.value.keys
    if (!fresh.value) return
    const { name, key, secret } = fresh.value
    const done = (): void => {
      fresh.value = undefined
    }
    return (
      <Dialog title={t.madeTitle(name)} insists>
        {() => (
          <div>
            {notice('info', t.once)}
            <h3>{t.key}</h3>
            <CopyBlock text={key} name={t.key} />
            {secret && <h3>{t.secret}</h3>}
            {secret && <CopyBlock text={secret} name={t.secret} />}
            <div class="relay-row end">{button(t.done, done, { kind: 'primary' })}</div>
          </div>
        )}
      </Dialog>
    )
  },
})

/** What the form of a key holds. */
interface Wish {
  name: string
  targets: string[]
  allow: string[]
  expires: string
  rate: string
  from: string
  signs: boolean
}

/** Makes a key. */
export const NewKeyDialog = defineComponent({
  emits: ['close'],
  setup(_, { emit }) {
    const wish = reactive<Wish>({ name: '', targets: [], allow: ['send'], expires: '', rate: '', from: '', signs: false })
    const problem = shallowRef('')
    const isBusy = shallowRef(false)
    /** Nothing is wrong before somebody has asked for the key. */
    const isAsked = shallowRef(false)
    const make = async (): Promise<void> => {
      isAsked.value = true
      if (isBusy.value || Object.keys(problemsOf(wish)).length > 0) return
      isBusy.value = true
      const signs = wish.signs && wish.allow.includes('hooks')
      const expires = endOf(wish.expires)?.toISOString() ?? ''
      const result = await makeKey({ ...wish, name: wish.name.trim(), expires, from: wordsOf(wish.from), signs })
      isBusy.value = false
      if ('problem' in result) problem.value = texts.value.common.failed(result.problem)
      else show(result.value, () => emit('close'))
      await refreshInventory()
    }
    const allow = (scope: string, isAllowed: boolean): void => {
      wish.allow = [...wish.allow.filter(each => each !== scope), ...isAllowed ? [scope] : []]
    }
    const view = (name: 'name' | 'expires' | 'rate' | 'from', label: string, hint?: string, type: 'text' | 'date' = 'text'): VNode => {
      const wrong = isAsked.value ? problemsOf(wish)[name] : undefined
      return (
        <Field label={label} hint={hint} problem={wrong}>
          {(labelled: Labelled) => input(wish[name], value => {
            wish[name] = value
          }, { ...labelled, type, invalid: wrong !== undefined })}
        </Field>
      )
    }
    const viewForm = (): VNode => {
      const t = texts.value.keys
      const scopeNames: Partial<Record<string, string>> = t.scopes
      const wrong = isAsked.value ? problemsOf(wish) : {}
      return (
        <form
          onSubmit={(event: Event) => {
            event.preventDefault()
            void make()
          }}
        >
          {view('name', t.name)}
          <TargetPicker
            modelValue={wish.targets}
            label={t.targets}
            hint={t.targetsHint}
            multiple
            onUpdate:modelValue={(value: string[]) => {
              wish.targets = value
            }}
          />
          <fieldset aria-describedby={wrong.allow && 'relay-scopes-problem'}>
            <legend>{t.allow}</legend>
            <div class="relay-checks">
              {(about.value?.scopes ?? []).map(scope => {
                return checkbox(scopeNames[scope] ?? scope, wish.allow.includes(scope), isAllowed => allow(scope, isAllowed))
              })}
            </div>
            {wrong.allow && <span class="relay-problem" id="relay-scopes-problem" role="alert">{wrong.allow}</span>}
          </fieldset>
          {view('expires', t.expires, t.expiresHint, 'date')}
          <details>
            <summary>{t.more}</summary>
            {view('rate', t.rate, t.rateHint)}
            {view('from', t.addresses, t.addressesHint)}
            {wish.allow.includes('hooks') && checkbox(t.signs, wish.signs, value => {
              wish.signs = value
            })}
            {wish.allow.includes('hooks') && <span class="relay-hint">{t.signsHint}</span>}
          </details>
          {problem.value && notice('bad', problem.value)}
          <div class="relay-row end">
            {button(texts.value.common.cancel, () => emit('close'))}
            {button(t.create, undefined, { kind: 'primary', submits: true, busy: isBusy.value })}
          </div>
        </form>
      )
    }
    return () => {
      return <Dialog title={texts.value.keys.makeTitle} stays onClose={() => emit('close')}>{viewForm}</Dialog>
    }
  },
})

/** Shows a new key; it replaces the dialog that made it. */
function show(key: FreshKey, close: () => void): void {
  fresh.value = key
  close()
}

/** The end of a day in the zone of the browser, which the bot may not be in. */
function endOf(date: string): Date | undefined {
  return date === '' ? undefined : new Date(`${date}T24:00`)
}

/** What is wrong with the fields of the form. The relay judges the rest. */
function problemsOf({ name, allow, rate, expires }: Wish): Partial<Record<keyof Wish, string>> {
  const t = texts.value.keys
  return {
    ...name.trim() === '' && { name: t.needName },
    ...name.trim() === pageName && { name: t.pageName(pageName) },
    ...allow.length === 0 && { allow: t.needScope },
    ...!/^\d*$/.test(rate.trim()) && { rate: t.badRate },
    ...(endOf(expires) ?? Infinity) <= new Date() && { expires: t.isPast },
  }
}

/** Replaces a key by a new one. */
export const RotateDialog = defineComponent({
  props: { of: { type: Object as PropType<Key>, required: true } },
  emits: ['close'],
  setup(props, { emit }) {
    const grace = shallowRef('86400')
    const problem = shallowRef('')
    const isBusy = shallowRef(false)
    const rotate = async (): Promise<void> => {
      if (isBusy.value) return
      isBusy.value = true
      const result = await rotateKey(props.of.name, Number(grace.value))
      isBusy.value = false
      if ('problem' in result) problem.value = texts.value.common.failed(result.problem)
      else {
        knownKeys.delete(props.of.name)
        show(result.value, () => emit('close'))
      }
      await refreshInventory()
    }
    const viewForm = (): VNode => {
      const t = texts.value.keys
      const graces = Object.entries(t.graces).map(([value, label]) => ({ value, label }))
      return (
        <div>
          <Field label={t.rotateText}>
            {(labelled: Labelled) => select(grace.value, graces, value => {
              grace.value = value
            }, labelled)}
          </Field>
          {problem.value && notice('bad', problem.value)}
          <div class="relay-row end">
            {button(texts.value.common.cancel, () => emit('close'))}
            {button(t.rotateVerb, rotate, { kind: 'primary', busy: isBusy.value })}
          </div>
        </div>
      )
    }
    return () => {
      return <Dialog title={texts.value.keys.rotateTitle(props.of.name)} stays onClose={() => emit('close')}>{viewForm}</Dialog>
    }
  },
})
