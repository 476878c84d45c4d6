import { defineComponent, reactive, shallowRef, type PropType, type VNode } from 'vue'
import { makeKey, rotateKey, type FreshKey, type Key, type KeyWish } from '../admin'
import { pageName } from '../api'
import { knownKeys, refreshInventory } from '../inventory'
import { about } from '../state'
import { texts, wordFor } from '../texts'
import { notice } from './basics'
import { CopyBlock } from './copy'
import { bind, button, checkbox, Dialog, FormDialog, inputField, model, optionsOf, selectField } from './elements'
import { TargetPicker } from './target'
import { useTask } from './task'

/** A new key, which the relay never shows again. It stays here on every tab until the user confirms that it is saved. */
const fresh = shallowRef<FreshKey>()

/** Shows a new key until the user confirms that it is saved. */
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

/** Creates a key. */
export const NewKeyDialog = defineComponent({
  emits: ['close'],
  setup(_, { emit }) {
    const wish = reactive<KeyWish>({ name: '', targets: [], sources: '', allow: ['send'], expires: '', rate: '', from: '', signs: false })
    const task = useTask()
    /** Whether the form was submitted. Problems are not shown before. */
    const isAsked = shallowRef(false)
    const make = async (): Promise<void> => {
      isAsked.value = true
      if (Object.keys(problemsOf(wish)).length > 0) return
      const made = await task.run(() => makeKey({ ...wish, expires: endOf(wish.expires)?.toISOString() ?? '' }))
      if (made) {
        fresh.value = made.value
        emit('close')
      }
      await refreshInventory()
    }
    const allow = (scope: string, isAllowed: boolean): void => {
      wish.allow = [...wish.allow.filter(each => each !== scope), ...isAllowed ? [scope] : []]
    }
    const view = (name: 'name' | 'sources' | 'expires' | 'rate' | 'from', label: string, hint?: string, type: 'text' | 'date' = 'text'): VNode => {
      return inputField(label, bind(wish, name), { hint, type, problem: isAsked.value ? problemsOf(wish)[name] : undefined })
    }
    const viewFields = (): VNode => {
      const t = texts.value.keys
      const problem = isAsked.value ? problemsOf(wish).allow : undefined
      return (
        <div>
          {view('name', t.name)}
          <TargetPicker {...bind(wish, 'targets')} label={t.targets} hint={t.targetsHint} multiple />
          <fieldset aria-describedby={problem && 'relay-scopes-problem'}>
            <legend>{t.allow}</legend>
            <div class="relay-checks">
              {(about.value?.scopes ?? []).map(scope => {
                return checkbox(wordFor(t.scopes, scope), model(wish.allow.includes(scope), isAllowed => allow(scope, isAllowed)))
              })}
            </div>
            {problem && <span class="relay-problem" id="relay-scopes-problem" role="alert">{problem}</span>}
          </fieldset>
          {view('expires', t.expires, t.expiresHint, 'date')}
          <details>
            <summary>{t.more}</summary>
            {view('rate', t.rate, t.rateHint)}
            {view('from', t.addresses, t.addressesHint)}
            {wish.allow.includes('hooks') && view('sources', t.sources, t.sourcesHint)}
            {wish.allow.includes('hooks') && checkbox(t.signs, bind(wish, 'signs'))}
            {wish.allow.includes('hooks') && <span class="relay-hint">{t.signsHint}</span>}
          </details>
        </div>
      )
    }
    return () => {
      const { makeTitle, create } = texts.value.keys
      return <FormDialog title={makeTitle} verb={create} task={task} onSubmit={make} onClose={() => emit('close')}>{viewFields}</FormDialog>
    }
  },
})

/** The end of a day in the browser's time zone, which may differ from the bot's. */
function endOf(date: string): Date | undefined {
  return date === '' ? undefined : new Date(`${date}T24:00`)
}

/** The problems of the form's fields. The relay checks the rest. */
function problemsOf({ name, allow, rate, expires }: KeyWish): Partial<Record<keyof KeyWish, string>> {
  const t = texts.value.keys
  return {
    ...name.trim() === '' && { name: t.needName },
    ...name.trim() === pageName && { name: t.pageName(pageName) },
    ...allow.length === 0 && { allow: t.needScope },
    ...!/^\d*$/.test(rate.trim()) && { rate: t.badRate },
    ...(endOf(expires) ?? Infinity) <= new Date() && { expires: t.isPast },
  }
}

/** Replaces a key with a new one. */
export const RotateDialog = defineComponent({
  props: { of: { type: Object as PropType<Key>, required: true } },
  emits: ['close'],
  setup(props, { emit }) {
    const grace = shallowRef('86400')
    const task = useTask()
    const rotate = async (): Promise<void> => {
      const { name } = props.of
      const made = await task.run(() => rotateKey(name, Number(grace.value)))
      if (made) {
        knownKeys.delete(name)
        fresh.value = made.value
        emit('close')
      }
      await refreshInventory()
    }
    return () => {
      const { rotateTitle, rotateVerb, rotateText, graces } = texts.value.keys
      return (
        <FormDialog title={rotateTitle(props.of.name)} verb={rotateVerb} task={task} onSubmit={rotate} onClose={() => emit('close')}>
          {() => selectField(rotateText, bind(grace, 'value'), optionsOf(graces))}
        </FormDialog>
      )
    }
  },
})
