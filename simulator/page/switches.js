import { Refusal, turn } from './api.js'
import { byId, el, setText } from './dom.js'
import { ending } from './format.js'
import { texts } from './i18n.js'
import { isOn, switchOn } from './store.js'

/** The switches for all chats, and those for one chat by type. */
const FOR_ALL = ['offline', 'loggedOut', 'slow', 'refusing', 'swallowing', 'anyTarget']
const FOR_CHAT = {
  group: ['muted', 'allMuted', 'tooFast', 'slow', 'refusing', 'swallowing'],
  private: ['slow', 'refusing', 'swallowing'],
}

/** The lengths of a mute to choose from, in seconds. */
const MUTES = [60, 600, 3600, 24 * 3600]

/** A list of switches. The simulator determines which are on; a click only requests a change. */
class SwitchList {
  #root
  #rows = new Map()
  #drawn = ''
  #chat = null

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root
  }

  /**
   * @param {string[]} names
   * @param {{ key: string, type: 'group' | 'private', id: string } | null} chat null for all
   */
  render(names, chat, state) {
    this.#chat = chat
    const drawn = `${names.join()} ${state.language} ${chat?.key ?? ''}`
    if (drawn !== this.#drawn) this.#draw(names, texts[state.language])
    this.#drawn = drawn
    for (const [name, { box }] of this.#rows) box.checked = isOn(state, name, chat)
  }

  #draw(names, t) {
    this.#rows.clear()
    for (const name of names) {
      const box = el('input', { type: 'checkbox', name })
      const error = el('span', { class: 'switch-error', role: 'alert' })
      const length = name === 'muted' ? lengths(t) : null
      box.addEventListener('change', () => void this.#turn(box, length, error, t))
      length?.addEventListener('change', () => box.checked && void this.#turn(box, length, error, t))
      this.#rows.set(name, { box, node: el('div', { class: 'switch' }, el('label', {}, box,
        el('span', { class: 'switch-text' },
          el('span', { class: 'switch-name' }, t.switches[name].name),
          el('span', { class: 'switch-about' }, t.switches[name].about))), length, error) })
    }
    this.#root.replaceChildren(...[...this.#rows.values()].map(({ node }) => node))
  }

  async #turn(box, length, error, t) {
    const wanted = box.checked
    setText(error, '')
    try {
      await turn(box.name, this.#chat, wanted, wanted && length ? Number(length.value) : undefined)
    } catch (problem) {
      box.checked = !wanted
      setText(error, problem instanceof Refusal ? problem.message : t.unreachable)
    }
  }
}

/** All switches: for all chats below the list, for one chat in its heading, and a notice above the messages of those that are on. */
export class Switches {
  #all = new SwitchList(byId('all-switches'))
  #one = new SwitchList(byId('chat-switches'))
  #allTitle = byId('all-trouble').querySelector('summary')
  #menu = byId('chat-trouble')
  #menuTitle = byId('chat-trouble').querySelector('summary')
  #notice = byId('switched')

  constructor() {
    // Like a menu, it closes on Escape or a click elsewhere.
    this.#menu.addEventListener('keydown', event => {
      if (event.key !== 'Escape' || !this.#menu.open) return
      this.#menu.open = false
      this.#menuTitle.focus()
    })
    document.addEventListener('click', event => {
      if (!this.#menu.contains(event.target)) this.#menu.open = false
    })
  }

  /** @param {import('./store.js').Chat | undefined} chat */
  render(chat, state) {
    const t = texts[state.language]
    this.#all.render(FOR_ALL, null, state)
    setText(this.#allTitle, titled(t.troubleAll, FOR_ALL.filter(name => isOn(state, name, null)).length))
    if (!chat) return
    const names = FOR_CHAT[chat.type]
    this.#one.render(names, chat, state)
    setText(this.#menuTitle, titled(t.trouble, names.filter(name => isOn(state, name, chat)).length))
    // Switches that are on for all chats hold here as well.
    const on = [...names, 'offline', 'loggedOut'].flatMap(name => switchOn(state, name, chat) ?? switchOn(state, name, null) ?? [])
    const titles = on.map(({ name, until }) => {
      const title = t.switches[name].name
      return until ? t.until(title, ending(until, state.language)) : title
    })
    setText(this.#notice, titles.length === 0 ? '' : t.switchedOn(new Intl.ListFormat(t.tag).format(titles)))
  }
}

/** The choice of the length of a mute. */
function lengths(t) {
  const text = seconds => seconds < 3600 ? t.minutes(seconds / 60) : t.hours(seconds / 3600)
  return el('select', { 'class': 'switch-length', 'aria-label': t.muteLength },
    ...MUTES.map(seconds => el('option', { value: seconds, selected: seconds === 600 }, text(seconds))))
}

function titled(text, count) {
  return count === 0 ? text : `${text} (${count})`
}
