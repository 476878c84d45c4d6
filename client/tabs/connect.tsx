import { defineComponent } from 'vue'

export const ConnectTab = defineComponent({ setup: () => () => <p>…</p> })
