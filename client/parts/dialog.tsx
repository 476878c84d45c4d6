import { defineComponent, onMounted, ref, type Ref, type VNode } from 'vue'
import { texts } from '../texts'
import { button } from './elements'

/** What is asked before something that cannot be taken back. */
export interface Question {
  title: string
  text: string
  /** The word on the button. */
  verb: string
  act: () => unknown
}

/** Asks the question, if there is one; a no takes it away. */
export function confirmation(question: Ref<Question | undefined>): VNode | undefined {
  if (!question.value) return
  const { title, text, verb, act } = question.value
  const end = (): void => {
    question.value = undefined
  }
  return <Confirmation title={title} text={text} verb={verb} onYes={act} onNo={end} />
}

/** Asks it; the focus stays within until it is answered, and goes back to where it was. */
const Confirmation = defineComponent({
  props: { title: { type: String, required: true }, text: { type: String, required: true }, verb: { type: String, required: true } },
  emits: ['yes', 'no'],
  setup(props, { emit }) {
    const dialog = ref<HTMLDialogElement>()
    onMounted(() => dialog.value?.showModal())
    return () => (
      <dialog ref={dialog} class="relay-dialog" aria-labelledby="relay-question" onClose={() => emit('no')}>
        <h2 id="relay-question">{props.title}</h2>
        <p>{props.text}</p>
        <div class="relay-row end">
          {button(texts.value.common.cancel, () => dialog.value?.close())}
          {button(props.verb, () => emit('yes'), { kind: 'danger' })}
        </div>
      </dialog>
    )
  },
})
