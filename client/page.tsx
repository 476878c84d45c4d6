import { socket } from '@koishijs/client'
import { defineComponent, h, onBeforeUnmount, onMounted, resolveComponent, watch, type Component } from 'vue'
import { refreshNames } from './contacts'
import { button, tabs } from './parts/elements'
import { FreshKeyDialog } from './parts/key-dialogs'
import { about, goTo, place, readPlace, refreshAbout, tabNames, type Tab } from './state'
import { BeatsTab } from './tabs/beats'
import { DeliveriesTab } from './tabs/deliveries'
import { IncidentsTab } from './tabs/incidents'
import { IntegrationsTab } from './tabs/integrations'
import { KeysTab } from './tabs/keys'
import { OverviewTab } from './tabs/overview'
import { SendTab } from './tabs/send'
import { languageNames, locale, setLocale, texts } from './texts'

const contents: Readonly<Record<Tab, Component>> = {
  overview: OverviewTab, incidents: IncidentsTab, beats: BeatsTab, deliveries: DeliveriesTab,
  send: SendTab, integrations: IntegrationsTab, keys: KeysTab,
}

/** The page, with its tabs. */
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

    return () => {
      const t = texts.value
      const { tab } = place.value
      const other = locale.value === 'zh-CN' ? 'en-US' : 'zh-CN'
      const content = () => (
        <div class="relay-panel">
          {about.value ? h(contents[tab]) : <p role="status">{t.common.loading}</p>}
        </div>
      )
      return h(resolveComponent('k-layout'), null, {
        header: () => t.title,
        menu: () => button(languageNames[other], () => setLocale(other), { look: 'link', describes: t.common.pair(t.language, languageNames[other]) }),
        default: () => (
          <div class="relay relay-body" lang={locale.value}>
            {tabs(tab, tabNames.map(name => [name, t.tabs[name]] as const), content, name => goTo(name))}
            <FreshKeyDialog />
          </div>
        ),
      })
    }
  },
})
