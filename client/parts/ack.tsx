import { defineComponent, type PropType, type VNode } from 'vue'
import { levels, readStep, type Ack, type Target } from '../admin'
import { people, rotas } from '../inventory'
import { texts } from '../texts'
import { button, checkbox, Field, inputField, model, multiSelect, optionsOf, selectField, type Labelled, type Option } from './elements'
import { TargetPicker } from './target'

/** A labelled list of people and rotas. */
export function pickPeople(
  label: string, words: readonly string[], onChange: (words: string[]) => unknown, hint?: string, hasAll = true,
): VNode {
  const known: Option[] = [
    ...(rotas.value ?? []).map(({ name }) => ({ value: name, label: name, hint: texts.value.rotas.list })),
    ...(people.value ?? []).map(({ name, called }) => ({ value: name, label: called || name, hint: name })),
    ...hasAll ? [{ value: 'all', label: texts.value.ack.all }] : [],
  ]
  return (
    <Field label={label} hint={hint}>
      {(labelled: Labelled) => multiSelect(words, known, onChange, { ...labelled, searched: true })}
    </Field>
  )
}

/** Who is called by `@`, by severity. */
export const MentionEditor = defineComponent({
  props: { modelValue: { type: Object as PropType<Target['mention']>, required: true } },
  emits: ['update:modelValue'],
  setup: (props, { emit }) => () => {
    const { ack: t, incidents } = texts.value
    return levels.map(level => pickPeople(t.mention(incidents.severities[level]), props.modelValue[level], words => {
      emit('update:modelValue', { ...props.modelValue, [level]: words })
    }))
  },
})

/** Whether somebody has to take what comes, and what happens while nobody does. */
export const AckEditor = defineComponent({
  props: { modelValue: { type: Object as PropType<Ack> } },
  emits: ['update:modelValue'],
  setup(props, { emit }) {
    const viewRules = (ack: Ack): VNode => {
      const { ack: t, incidents } = texts.value
      const { from, who, remind, steps } = ack
      const change = (changes: Partial<Ack>): void => emit('update:modelValue', { ...ack, ...changes })
      const changeStep = (at: number, changes: Partial<Ack['steps'][number]>): void => {
        change({ steps: steps.map((step, index) => index === at ? { ...step, ...changes } : step) })
      }
      return (
        <div>
          {selectField(t.from, model<string>(from, value => {
            change({ from: levels.find(level => level === value) ?? from })
          }), optionsOf(incidents.severities))}
          {pickPeople(t.who, who, words => change({ who: words }), t.whoHint, false)}
          {inputField(t.remind, model(remind, value => change({ remind: value })), { hint: t.remindHint })}
          <fieldset>
            <legend>{t.steps}</legend>
            <ol class="relay-ways">
              {steps.map(({ after, mention, to, again }, at) => (
                <li key={at}>
                  <h3>{t.step(at + 1)}</h3>
                  <div class="relay-pair">
                    {inputField(t.after, model(after, value => changeStep(at, { after: value })), { hint: texts.value.beats.spanHint })}
                    {pickPeople(t.call, mention, words => changeStep(at, { mention: words }))}
                  </div>
                  <TargetPicker
                    modelValue={to === '' ? [] : [to]}
                    label={t.to}
                    hint={t.toHint}
                    onUpdate:modelValue={(words: string[]) => changeStep(at, { to: words.join(',') })}
                  />
                  {at === steps.length - 1 && inputField(t.again, model(again, value => changeStep(at, { again: value })), {
                    hint: t.againHint,
                  })}
                  {button(t.remove, () => change({ steps: steps.filter((_, index) => index !== at) }), {
                    look: 'small', describes: texts.value.common.pair(t.remove, t.step(at + 1)),
                  })}
                </li>
              ))}
            </ol>
            {button(t.add, () => change({ steps: [...steps.map(step => ({ ...step, again: '' })), readStep({})] }))}
          </fieldset>
        </div>
      )
    }
    return () => (
      <div>
        <div class="relay-field">
          {checkbox(texts.value.ack.isOn, model(props.modelValue !== undefined, isOn => {
            emit('update:modelValue', isOn ? { from: 'warning', who: [], remind: '', steps: [] } : undefined)
          }))}
        </div>
        {props.modelValue && viewRules(props.modelValue)}
      </div>
    )
  },
})
