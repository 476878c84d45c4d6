import { defineComponent } from 'vue'

export const KeysTab = defineComponent({ setup: () => () => <p>…</p> })
