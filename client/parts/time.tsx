import { defineComponent, onBeforeUnmount, onMounted, shallowRef, type VNode } from 'vue'
import { texts, writeAgo, writeMoment, writeSpan } from '../texts'

/** How long ago a moment was; a tooltip shows the moment itself. */
export function ago(moment: string): VNode {
  return <time datetime={moment} title={writeMoment(moment)}>{writeAgo(moment)}</time>
}

/** Counts down to the moment at which something resumes. */
export const Countdown = defineComponent({
  props: { until: { type: String, required: true } },
  setup(props) {
    const now = shallowRef(Date.now())
    let timer: number | undefined
    onMounted(() => {
      timer = window.setInterval(() => {
        now.value = Date.now()
      }, 1000)
    })
    onBeforeUnmount(() => clearInterval(timer))
    return () => {
      const { resumes, resumesNow } = texts.value.overview
      const left = Date.parse(props.until) - now.value
      return <time class="relay-countdown" datetime={props.until} title={writeMoment(props.until)}>{left > 0 ? resumes(writeSpan(left)) : resumesNow}</time>
    }
  },
})
