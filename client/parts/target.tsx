import { defineComponent, shallowRef, watch, type VNode } from 'vue'
import { loadContacts, nameOf, type Contact } from '../contacts'
import { about } from '../state'
import { texts } from '../texts'
import { field, valueOf } from './basics'

/** A target: one of the names in the settings, one of the bot's groups and friends, or what somebody writes. */
export const TargetField = defineComponent({
  props: { modelValue: { type: String, required: true }, bot: { type: String, default: '' } },
  emits: ['update:modelValue'],
  setup(props, { emit }) {
    const contacts = shallowRef<Contact[]>([])
    const isKnown = shallowRef(true)
    watch(() => props.bot, async bot => {
      const found = await loadContacts(bot)
      if (bot !== props.bot) return
      isKnown.value = found !== undefined
      contacts.value = found ?? []
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

/** A target by its name, where it has one, and by its address. */
export function viewTarget(target: string, bot: string): VNode {
  const name = nameOf(target, bot)
  if (name === '') return <span>{target}</span>
  return (
    <span>
      {`${name} `}
      <span class="relay-address">{target}</span>
    </span>
  )
}

/** The same as a text. */
export function describeTarget(target: string, bot: string): string {
  const name = nameOf(target, bot)
  return name === '' ? target : texts.value.common.named(name, target)
}
