import { defineComponent, h } from 'vue'

/** A paper plane above a line: the icon of the page. */
export const RelayIcon = defineComponent({
  render: () => h('svg', { 'class': 'k-icon', 'viewBox': '0 0 24 24', 'aria-hidden': 'true' }, [
    h('path', { fill: 'currentColor', d: 'M2 11 21 2l-5 15-5-3-3 4v-6l8-6-10 6zM3 20h18v2H3z' }),
  ]),
})
