/** What the rows of keys, targets, people, rotas and beats have in common. */
import { defineComponent, shallowRef, type PropType, type VNode, type VNodeChild } from 'vue'
import type { Result } from '../admin'
import { remove } from '../duty'
import { textOf } from '../fields'
import { refreshInventory } from '../inventory'
import { texts } from '../texts'
import { button, confirm, FormDialog, say } from './elements'
import { useTask } from './task'

interface Listed {
  name: string
  origin: 'settings' | 'made'
}

/** Shows the result of a change. */
export async function end(result: object, done: string): Promise<void> {
  if ('problem' in result) say('bad', texts.value.common.failed(textOf(result.problem)))
  else say('good', done)
  await refreshInventory()
}

/** A name, with a mark if it comes from the settings, or if an entry of the same name in the settings overrides it. */
export function viewName({ name, origin }: Listed, all: readonly Listed[]): VNode {
  const t = texts.value.keys
  const isShadowed = origin === 'made' && all.some(each => each.origin === 'settings' && each.name === name)
  return (
    <span class="relay-named">
      {name}
      {origin === 'settings' && <span class="relay-badge">{t.inSettings}</span>}
      {isShadowed && <span class="relay-hint">{t.shadowed}</span>}
    </span>
  )
}

/** A dialog that a button opens. */
export function useDialog() {
  const view = shallowRef<() => VNodeChild>()
  const show = (next?: () => VNodeChild): void => {
    view.value = next
  }
  return { show, close: () => show(), view: () => view.value?.() }
}

/** Deletes something after a question. */
export async function drop(kind: 'people' | 'rotas' | 'beats', name: string): Promise<void> {
  const { rotas: t, targets } = texts.value
  const isSure = await confirm({ title: targets.removeTitle(name), text: t.removeTexts[kind], verb: targets.remove })
  if (isSure) await end(await remove(kind, name), t.removed(name))
}

type Verb = readonly [label: string, act: () => unknown]

/**
 * The buttons of a row.
 *
 * @param changes left out for entries of the settings, which cannot be changed here
 * @param others for all entries
 */
export function viewActions({ name, origin }: Listed, changes: readonly Verb[], others: readonly Verb[] = []): VNodeChild {
  const { pair } = texts.value.common
  const actions = [...others, ...origin === 'made' ? changes : []]
  if (actions.length === 0) return ''
  return <span class="relay-row">{actions.map(([label, act]) => button(label, act, { look: 'small', describes: pair(label, name) }))}</span>
}

/** A dialog that makes or changes something with a name. Its slot gets the problem of the name; the relay checks the rest. */
export const SaveDialog = defineComponent({
  props: {
    name: { type: String, required: true },
    /** The title for something new; absent for a change. */
    title: { type: String },
    save: { type: Function as PropType<() => Promise<Result<unknown>>>, required: true },
  },
  emits: { close: () => true, saved: (name: string) => name !== '' },
  setup(props, { emit, slots }) {
    const task = useTask()
    const isAsked = shallowRef(false)
    const save = async (): Promise<void> => {
      isAsked.value = true
      if (props.name.trim() === '' || !await task.run(props.save)) return
      await refreshInventory()
      say('good', texts.value.rotas.saved(props.name))
      emit('close')
      emit('saved', props.name)
    }
    return () => {
      const { targets: t, keys } = texts.value
      const problem = isAsked.value && props.name.trim() === '' ? keys.needName : undefined
      return (
        <FormDialog title={props.title ?? t.changeTitle(props.name)} verb={t.save} task={task} onSubmit={save} onClose={() => emit('close')}>
          {() => slots.default?.(problem)}
        </FormDialog>
      )
    }
  },
})
