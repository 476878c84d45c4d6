import { defineComponent, nextTick, shallowRef, watch, type PropType, type VNode } from 'vue'
import { placesOf, type Target } from '../admin'
import { loadContacts, nameAnywhere, nameOf, type Contact } from '../contacts'
import { wordsOf } from '../fields'
import { targets as known } from '../inventory'
import { texts } from '../texts'
import { notice } from './basics'
import { Field, multiSelect, select, type Labelled, type Option } from './elements'

/** How many options are shown at once: a bot may know thousands of people. */
const maxOptions = 50

/** Chooses targets: names, groups and people that the bot knows, and any typed address. */
export const TargetPicker = defineComponent({
  props: {
    modelValue: { type: Array as PropType<readonly string[]>, required: true },
    label: { type: String, required: true },
    hint: { type: String },
    problem: { type: String },
    /** The bot whose groups and people are offered, as `platform:id`; empty for the first bot that is online. */
    bot: { type: String, default: '' },
    multiple: Boolean,
    /** Whether only chats are offered, without names. */
    chatsOnly: Boolean,
  },
  emits: { 'update:modelValue': (value: string[]) => Array.isArray(value) },
  setup(props, { emit }) {
    const contacts = shallowRef<Contact[]>([])
    const isListed = shallowRef(true)
    const typed = shallowRef('')
    watch(() => props.bot, async bot => {
      const found = await loadContacts(bot)
      if (bot !== props.bot) return
      isListed.value = found !== undefined
      contacts.value = found ?? []
    }, { immediate: true })

    const all = (): Option[] => [
      ...props.chatsOnly ? [] : (known.value ?? []).map(target => ({ value: target.name, label: target.name, hint: placesOf(target).join(', ') })),
      ...contacts.value.map(({ target, name }) => ({ value: target, label: name || target, ...name && { hint: target } })),
    ]
    /** The chosen groups that no bot is in, as far as the bots list theirs. */
    const strangers = (): string[] => props.modelValue.filter(each => (
      contacts.value.length > 0 && /^group:[^*]+$/.test(each) && nameAnywhere(each) === '' && contacts.value.every(({ target }) => target !== each)
    ))
    /** Resolves typed text: to an option by its full name, or else to the address itself. */
    const resolve = (text: string): string[] => wordsOf(text).map(word => {
      const named = all().filter(({ value, label }) => value === word || label === word)
      return named.length === 1 && named[0] ? named[0].value : word
    })
    const offered = (): Option[] => {
      const text = typed.value.trim()
      const word = text.toLowerCase()
      const options = all()
      const chosen = options.filter(({ value }) => props.modelValue.includes(value))
      const found = options.filter(({ value, label, hint = '' }) => [value, label, hint].some(each => each.toLowerCase().includes(word)))
      const isNew = text !== '' && !options.some(({ value, label }) => value === text || label === text)
      const fresh = isNew ? [{ value: text, label: text }] : []
      const exact = found.filter(({ value, label }) => value === text || label === text)
      const rest = found.filter(option => !exact.includes(option)).slice(0, maxOptions)
      // An address comes first, so that Enter chooses it and not a longer one with the same beginning.
      return [...new Set(/[:,*]/.test(text) ? [...exact, ...fresh, ...rest] : [...exact, ...rest, ...fresh]), ...text === '' ? chosen : []]
        .filter((option, at, list) => list.findIndex(({ value }) => value === option.value) === at)
    }
    const change = (values: readonly string[]): void => {
      typed.value = ''
      emit('update:modelValue', [...new Set(values.flatMap(resolve))])
    }
    /** Typed text counts without a click on it. */
    const close = (): void => {
      if (typed.value.trim() !== '') change(props.multiple ? [...props.modelValue, typed.value] : [typed.value])
    }
    const box = shallowRef<HTMLElement>()
    // The combobox keeps the ID of its active option after that option is gone.
    watch([typed, contacts, known, () => props.modelValue], async () => {
      await nextTick()
      const combobox = box.value?.querySelector('[aria-activedescendant]')
      const option = combobox?.getAttribute('aria-activedescendant')
      if (option && !document.getElementById(option)) combobox?.setAttribute('aria-activedescendant', '')
    }, { flush: 'post' })
    const more = {
      searched: true,
      onClose: close,
      onSearch: (text: string) => {
        typed.value = text
      },
    }
    return () => (
      <div ref={box}>
        <Field label={props.label} hint={isListed.value ? props.hint : texts.value.send.noContacts} problem={props.problem}>
          {(labelled: Labelled) => [
            props.multiple
              ? multiSelect(props.modelValue, offered(), change, { ...labelled, ...more })
              : select(props.modelValue.join(', '), offered(), value => change([value]), { ...labelled, ...more }),
            strangers().length > 0 && notice('doubt', texts.value.send.notIn(texts.value.common.list(strangers()))),
          ]}
        </Field>
      </div>
    )
  },
})

/** A target by its name, if it has one, and its address. */
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

/** A target as plain text. */
export function describeTarget(target: string, bot: string): string {
  const name = nameOf(target, bot)
  return name === '' ? target : texts.value.common.named(name, target)
}

/** The delivery rules of a target in one line; empty if it has none. */
export function describePolicy({ first, after, digest, quiet, ack }: Target): string {
  const t = texts.value.targets
  return texts.value.common.list([
    ...first.length > 1 ? [t.afterLine(after)] : [],
    ...digest ? [t.digestLine(digest)] : [],
    ...quiet ? [t.quietLine(quiet.from, quiet.to, quiet.zone)] : [],
    ...ack ? [texts.value.ack.takes] : [],
  ])
}

/** A chat as plain text, by the name that any bot knows. */
export function describeChat(target: string): string {
  const name = nameAnywhere(target)
  return name === '' ? target : texts.value.common.named(name, target)
}
