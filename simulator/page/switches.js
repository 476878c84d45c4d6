import { Refusal, turn } from './api.js'
import { byId, el, setText } from './dom.js'
import { texts } from './i18n.js'
import { isOn } from './store.js'

/** The switches for all chats, and those for a chat of each type. */
const FOR_ALL = ['offline', 'slow', 'refusing', 'anyTarget']
const FOR_CHAT = { group: ['muted', 'slow', 'refusing'], private: ['slow', 'refusing'] }

/** A list of switches: what is on is what the simulator says, a click only asks for it. */
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
      box.addEventListener('change', () => void this.#turn(box, error, t))
      this.#rows.set(name, { box, node: el('div', { class: 'switch' }, el('label', {}, box,
        el('span', { class: 'switch-text' },
          el('span', { class: 'switch-name' }, t.switches[name].name),
          el('span', { class: 'switch-about' }, t.switches[name].about))), error) })
    }
    this.#root.replaceChildren(...[...this.#rows.values()].map(({ node }) => node))
  }

  async #turn(box, error, t) {
    const wanted = box.checked
    setText(error, '')
    try {
      await turn(box.name, this.#chat, wanted)
    } catch (problem) {
      box.checked = !wanted
      setText(error, problem instanceof Refusal ? problem.message : t.unreachable)
    }
  }
}

/** Everything that can be turned: for all chats below the list, for one chat in its heading, and what is on above the messages. */
export class Switches {
  #all = new SwitchList(byId('all-switches'))
  #one = new SwitchList(byId('chat-switches'))
  #allTitle = byId('all-trouble').querySelector('summary')
  #menu = byId('chat-trouble')
  #menuTitle = byId('chat-trouble').querySelector('summary')
  #notice = byId('switched')

  constructor() {
    // As a menu does it: Escape or a click elsewhere closes it.
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
    // Slow and refusing for all hold here as well.
    const on = [...new Set([...names, 'offline'])].filter(name => isOn(state, name, chat) || isOn(state, name, null))
    setText(this.#notice, on.length === 0 ? '' : t.switchedOn(new Intl.ListFormat(t.tag).format(on.map(name => t.switches[name].name))))
  }
}

function titled(text, count) {
  return count === 0 ? text : `${text} (${count})`
}
