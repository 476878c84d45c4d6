import { defineComponent } from 'vue'

export const SendTab = defineComponent({ setup: () => () => <p>…</p> })
