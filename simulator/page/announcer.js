import { byId } from './dom.js'
import { preview } from './format.js'
import { texts } from './i18n.js'
import { lastSeq } from './store.js'

/** From this many at once on they are counted instead of read out. */
const MANY = 4

/**
 * Tells screen readers of what arrives in the open conversation. The list of messages is no live region itself, or opening a
 * conversation would read all of it out.
 */
export class Announcer {
  #node = byId('announcer')
  #key = ''
  #seq = 0

  /** @param {import('./store.js').Chat | undefined} chat */
  render(chat, { language, reading }) {
    if (!chat) return
    const last = lastSeq(chat)
    const fresh = chat.key === this.#key && last > this.#seq && reading ? newerThan(chat.messages, this.#seq) : []
    this.#key = chat.key
    this.#seq = last
    if (fresh.length === 0) return
    this.#node.textContent = fresh.length < MANY
      ? fresh.map(message => `${message.sender.name}: ${preview(message, language)}`).join('\n')
      : texts[language].newMessages(fresh.length)
  }
}

function newerThan(messages, seq) {
  let index = messages.length
  while (index > 0 && messages[index - 1].seq > seq) index--
  return messages.slice(index)
}
