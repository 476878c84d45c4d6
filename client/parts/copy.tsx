import { defineComponent, ref } from 'vue'
import { texts } from '../texts'
import { button } from './elements'

/** Copies a text, even if the page has no access to the clipboard because it lacks HTTPS. */
async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    const area = document.createElement('textarea')
    area.value = text
    document.body.append(area)
    area.select()
    // The only way for a page on plain HTTP.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    document.execCommand('copy')
    area.remove()
  }
}

/** A button that copies a text and confirms it. */
export const CopyButton = defineComponent({
  props: { text: { type: String, required: true }, label: { type: String, default: '' }, describes: { type: String, default: '' } },
  setup(props) {
    const isDone = ref(false)
    let end: number | undefined
    const act = async (): Promise<void> => {
      // Resets the confirmation of the click before.
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
          {button(label, act, { ...props.describes && { describes: texts.value.common.pair(label, props.describes) } })}
          <span class="relay-copied" role="status">{isDone.value ? copied : ''}</span>
        </span>
      )
    }
  },
})

/** A text with a button that copies it. */
export const CopyBlock = defineComponent({
  props: { text: { type: String, required: true }, name: { type: String, required: true } },
  setup: props => () => (
    <div class="relay-block">
      <pre tabindex="0" aria-label={props.name}>{props.text}</pre>
      <CopyButton text={props.text} describes={props.name} />
    </div>
  ),
})
