import { byId, setText } from './dom.js'
import { EmptyState } from './empty-state.js'
import { texts } from './i18n.js'

/** The right side: who the conversation is with, its messages or how to get some, and the box to speak in. */
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
