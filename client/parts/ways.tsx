import { defineComponent, type PropType, type VNode } from 'vue'
import { isHttp, type Way } from '../admin'
import { texts } from '../texts'
import { button, inputField, model, optionsOf, selectField } from './elements'
import { TargetPicker } from './target'

/** A way in a form. Its key does not change when the way is moved. */
export interface FormWay extends Way {
  key: number
}

let lastKey = 0

/** @param way empty by default */
export function formWay(way: Partial<Way> = {}): FormWay {
  return { address: '', secret: '', hasSecret: false, format: '', ...way, key: ++lastKey }
}

/** The ways of a target, in their order. */
export const WaysEditor = defineComponent({
  props: {
    modelValue: { type: Array as PropType<readonly FormWay[]>, required: true },
    /** Whether an empty way is marked as a problem. */
    isAsked: Boolean,
  },
  emits: { 'update:modelValue': (ways: FormWay[]) => Array.isArray(ways) },
  setup(props, { emit }) {
    const change = (at: number, changes: Partial<Way>): void => {
      emit('update:modelValue', props.modelValue.map((way, index) => index === at ? { ...way, ...changes } : way))
    }
    const move = (at: number, by: -1 | 1): void => {
      const ways = [...props.modelValue]
      ways.splice(at + by, 0, ...ways.splice(at, 1))
      emit('update:modelValue', ways)
    }
    const remove = (at: number): void => emit('update:modelValue', props.modelValue.filter((_, index) => index !== at))

    const viewHttp = ({ secret, hasSecret, format }: FormWay, at: number): VNode => {
      const t = texts.value.targets
      return (
        <div class="relay-pair">
          {inputField(t.secret, model(secret, value => change(at, { secret: value })), {
            hint: hasSecret ? t.secretKept : t.secretHint, type: 'password',
          })}
          {selectField(t.format, model(format, value => change(at, { format: value })), optionsOf(t.formats))}
        </div>
      )
    }
    return () => {
      const t = texts.value.targets
      const last = props.modelValue.length - 1
      return (
        <div>
          <ol class="relay-ways">
            {props.modelValue.map((way, at) => {
              const name = t.way(at + 1)
              const act = (verb: string, work: () => void, disabled: boolean): VNode => {
                return button(verb, work, { look: 'small', describes: texts.value.common.pair(verb, name), disabled })
              }
              return (
                <li key={way.key}>
                  <TargetPicker
                    modelValue={way.address === '' ? [] : [way.address]}
                    label={name}
                    hint={at === 0 ? t.wayHint : undefined}
                    problem={props.isAsked && way.address === '' ? t.needWay : undefined}
                    // The secret belongs to the address.
                    onUpdate:modelValue={(words: string[]) => {
                      const address = words.join(',')
                      if (address !== way.address) change(at, { address, hasSecret: false })
                    }}
                  />
                  {isHttp(way) && viewHttp(way, at)}
                  <div class="relay-row">
                    {act(t.up, () => move(at, -1), at === 0)}
                    {act(t.down, () => move(at, 1), at === last)}
                    {act(t.removeWay, () => remove(at), last === 0)}
                  </div>
                </li>
              )
            })}
          </ol>
          <div class="relay-field">{button(t.addWay, () => emit('update:modelValue', [...props.modelValue, formWay()]))}</div>
        </div>
      )
    }
  },
})
