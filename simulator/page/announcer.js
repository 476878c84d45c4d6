import { byId } from './dom.js'
import { preview } from './format.js'
import { texts } from './i18n.js'
import { lastSeq } from './store.js'

/** This many new messages at once are counted instead of read out. */
const MANY = 4

/**
 * Announces new messages of the open conversation to screen readers. The list of messages is not a live region itself, because then opening
 * a conversation would read out all of it.
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
