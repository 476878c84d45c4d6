import { copyButton } from './clipboard.js'
import { byId, el, setText } from './dom.js'
import { texts } from './i18n.js'

/** The default address of a relay. */
const RELAY = 'http://127.0.0.1:8081/webhook'

/**
 * The command for a first message to this chat, for a POSIX shell.
 * @param {{ type: 'group' | 'private', id: string | number }} chat
 */
function firstMessageCommand(chat) {
  const body = JSON.stringify({ [chat.type === 'group' ? 'group_id' : 'user_id']: String(chat.id), msg: 'hello' })
  return `curl -H "Authorization: Bearer $(cat data/api-key)" -d '${body.replaceAll('\'', '\'\\\'\'')}' ${RELAY}`
}

/** The content of a chat without messages: how to send the first one. */
class EmptyState {
  #root = byId('empty')
  #drawn = ''

  /** @param {import('./store.js').Chat} chat */
  render(chat, language) {
    const key = `${chat.key} ${language}`
    if (this.#drawn === key) return
    this.#drawn = key
    const t = texts[language]
    const code = el('code', {}, firstMessageCommand(chat))
    this.#root.replaceChildren(el('div', { class: 'empty-card' },
      el('h3', {}, t.noMessages),
      el('p', {}, t.emptyText),
      el('div', { class: 'command' },
        el('pre', { 'tabindex': 0, 'role': 'region', 'aria-label': t.command }, code), copyButton(code, t, { kind: 'primary' })),
      el('p', {}, t.emptyAfter)))
  }
}

/** The right side: the name of the chat, its messages or how to get some, and the composer. */
export class Conversation {
  #root = byId('conversation')
  #name = byId('chat-name')
  #about = byId('chat-about')
  #scroller = byId('log')
  #empty = byId('empty')
  #emptyState = new EmptyState()
  #log
  #composer

  /**
   * @param {import('./log.js').Log} log
   * @param {import('./composer.js').Composer} composer
   */
  constructor(log, composer) {
    this.#log = log
    this.#composer = composer
  }

  /** @param {import('./store.js').Chat | undefined} chat */
  render(chat, state) {
    this.#root.hidden = !chat
    if (!chat) return
    setText(this.#name, chat.name)
    setText(this.#about, aboutLine(chat, texts[state.language]))
    const empty = chat.messages.length === 0
    this.#empty.hidden = !empty
    this.#scroller.hidden = empty
    if (empty) this.#emptyState.render(chat, state.language)
    this.#log.render(chat, state)
    this.#composer.render(chat, state)
  }
}

function aboutLine(chat, t) {
  const facts = [t[chat.type], String(chat.id)]
  if (chat.type === 'group') facts.push(t.members(chat.members.length))
  return facts.join(' · ')
}
