import { defineComponent, shallowRef, watch } from 'vue'
import { call } from '../api'
import { listOf, textOf } from '../fields'
import { about } from '../state'
import { texts } from '../texts'
import { field, valueOf } from './basics'

/** Somebody whom a bot can write to. */
interface Contact {
  target: string
  name: string
}

/** A target: one of the names in the settings, one of the bot's groups and friends, or what somebody writes. */
export const TargetField = defineComponent({
  props: { modelValue: { type: String, required: true }, bot: { type: String, default: '' } },
  emits: ['update:modelValue'],
  setup(props, { emit }) {
    const contacts = shallowRef<Contact[]>([])
    const isKnown = shallowRef(true)
    watch(() => props.bot, async bot => {
      const { isRight, data } = await call('GET', '/contacts', { ...bot && { query: { bot } } })
      if (bot !== props.bot) return
      isKnown.value = isRight
      contacts.value = ([['group', data.groups], ['private', data.friends]] as const).flatMap(([kind, list]) => {
        return listOf(list).map(({ id, name }) => ({ target: `${kind}:${textOf(id)}`, name: textOf(name) }))
      })
    }, { immediate: true })
    const change = (event: Event): void => emit('update:modelValue', valueOf(event).trim())
    return () => {
      const t = texts.value.send
      const names = Object.entries(about.value?.targets ?? {})
      return (
        <div>
          {field(t.target, <input list="relay-targets" required autocomplete="off" value={props.modelValue} onInput={change} />, isKnown.value ? t.targetHint : t.noContacts)}
          <datalist id="relay-targets">
            {names.map(([name, targets]) => <option value={name}>{targets.join(', ')}</option>)}
            {contacts.value.map(({ target, name }) => <option value={target}>{name}</option>)}
          </datalist>
        </div>
      )
    }
  },
})
