import { defineComponent } from 'vue'

export const DeliveriesTab = defineComponent({ setup: () => () => <p>…</p> })
