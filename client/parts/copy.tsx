import { defineComponent, ref } from 'vue'
import { texts } from '../texts'
import { button } from './elements'

/** Copies a text, also where the browser has no clipboard for pages without HTTPS. */
async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    const area = document.createElement('textarea')
    area.value = text
    document.body.append(area)
    area.select()
    // There is nothing else where the page came by plain HTTP.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    document.execCommand('copy')
    area.remove()
  }
}

/** A button that copies a text and says so. */
export const CopyButton = defineComponent({
  props: { text: { type: String, required: true }, label: { type: String, default: '' }, describes: { type: String, default: '' } },
  setup(props) {
    const isDone = ref(false)
    let end: number | undefined
    const act = async (): Promise<void> => {
      // What the click before has shown is over.
      clearTimeout(end)
      isDone.value = false
      await copy(props.text)
      isDone.value = true
      end = window.setTimeout(() => {
        isDone.value = false
      }, 2000)
    }
    return () => {
      const { copy, copied } = texts.value.common
      const label = props.label || copy
      return (
        <span class="relay-copy">
          {button(label, act, { ...props.describes && { describes: `${label}: ${props.describes}` } })}
          <span class="relay-copied" role="status">{isDone.value ? copied : ''}</span>
        </span>
      )
    }
  },
})

/** A text to be taken elsewhere, with a button that copies it. */
export const CopyBlock = defineComponent({
  props: { text: { type: String, required: true }, name: { type: String, required: true } },
  setup: props => () => (
    <div class="relay-block">
      <pre tabindex="0" aria-label={props.name}>{props.text}</pre>
      <CopyButton text={props.text} describes={props.name} />
    </div>
  ),
})
