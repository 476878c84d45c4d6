import { socket } from '@koishijs/client'
import { defineComponent, h, onBeforeUnmount, onMounted, resolveComponent, watch, type Component, type VNode } from 'vue'
import { refreshNames } from './contacts'
import { notice } from './parts/basics'
import { about, goTo, place, readPlace, refreshAbout, tabs, type Tab } from './state'
import { ConnectTab } from './tabs/connect'
import { DeliveriesTab } from './tabs/deliveries'
import { KeysTab } from './tabs/keys'
import { NowTab } from './tabs/now'
import { SendTab } from './tabs/send'
import { locale, texts } from './texts'

const contents: Readonly<Record<Tab, Component>> = {
  now: NowTab, deliveries: DeliveriesTab, send: SendTab, connect: ConnectTab, keys: KeysTab,
}

/** The page: five tabs. */
export const RelayPage = defineComponent({
  setup() {
    const follow = (): void => {
      place.value = readPlace()
    }
    onMounted(() => {
      window.addEventListener('hashchange', follow)
      follow()
    })
    onBeforeUnmount(() => window.removeEventListener('hashchange', follow))
    watch(socket, () => void refreshAbout(), { immediate: true })
    watch([socket, () => place.value.tab], () => void refreshNames(), { immediate: true })

    return () => h(resolveComponent('k-layout'), null, {
      header: () => texts.value.title,
      default: () => (
        <div class="relay" lang={locale.value}>
          {viewTabs(place.value.tab)}
          {!socket.value && notice('bad', texts.value.common.offline)}
          <div class="relay-panel" role="tabpanel" id="relay-panel" aria-labelledby={`relay-tab-${place.value.tab}`}>
            {about.value ? h(contents[place.value.tab]) : <p role="status">{texts.value.common.loading}</p>}
          </div>
        </div>
      ),
    })
  },
})

function viewTabs(current: Tab): VNode {
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    const next = event.key === 'Home' ? tabs[0] : event.key === 'End' ? tabs.at(-1) : step && tabs.at((tabs.indexOf(current) + step) % tabs.length)
    if (!next) return
    event.preventDefault()
    goTo(next)
    document.getElementById(`relay-tab-${next}`)?.focus()
  }
  return (
    <div class="relay-tabs" role="tablist" aria-label={texts.value.title} onKeydown={move}>
      {tabs.map(tab => (
        <button
          type="button"
          role="tab"
          id={`relay-tab-${tab}`}
          aria-controls="relay-panel"
          aria-selected={tab === current}
          tabindex={tab === current ? 0 : -1}
          onClick={() => goTo(tab)}
        >
          {texts.value.tabs[tab]}
        </button>
      ))}
    </div>
  )
}
