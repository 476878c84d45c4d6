import { byId, el, setText } from './dom.js'
import { applyTexts, texts } from './i18n.js'
import { isOn, totalUnread } from './store.js'

/** The frame of the page: title, fixed texts, connection, language switch, facts about the simulator. */
export class Header {
  #status = byId('status')
  #switch = byId('language')
  #facts = byId('details').querySelector('dl')
  #language = ''
  #known = ''

  /** @param {() => void} switchLanguage */
  constructor(switchLanguage) {
    this.#switch.addEventListener('click', switchLanguage)
  }

  /** @param {object} state */
  render(state) {
    const t = texts[state.language]
    if (this.#language !== state.language) {
      this.#language = state.language
      applyTexts(state.language)
      setText(this.#switch, t.other)
      this.#switch.lang = t.otherTag
    }
    const kind = statusOf(state)
    this.#status.dataset.kind = kind
    setText(this.#status, t[kind])
    const unread = totalUnread(state)
    const title = unread > 0 ? `(${unread}) ${t.title}` : t.title
    if (document.title !== title) document.title = title
    this.#renderFacts(state, t)
  }

  #renderFacts(state, t) {
    const facts = [[t.account, `${state.self.name} (${state.self.id})`], [t.endpoint, state.endpoint], [t.profile, state.profile]]
    const known = JSON.stringify(facts)
    if (known === this.#known) return
    this.#known = known
    this.#facts.replaceChildren(...facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]))
  }
}

function statusOf(state) {
  if (!state.loaded) return 'loading'
  if (!state.online) return 'offline'
  if (state.connected) return isOn(state, 'loggedOut', null) ? 'loggedOut' : 'connected'
  return isOn(state, 'offline', null) ? 'switchedOff' : 'waiting'
}
