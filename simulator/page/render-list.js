import { avatar, byId, el, setText } from './dom.js'
import { preview, recently } from './format.js'
import { texts } from './i18n.js'
import { chatsByActivity } from './store.js'

/** The list of chats, the most recently active one first. */
export class ChatList {
  #list = byId('chat-list')
  /** Chat key → its row. */
  #rows = new Map()

  /**
   * @param {object} state
   * @param {import('./store.js').Chat | undefined} shown the chat that is open beside the list
   */
  render(state, shown) {
    const chats = chatsByActivity(state)
    for (const [key, row] of this.#rows) {
      if (state.chats.has(key)) continue
      row.item.remove()
      this.#rows.delete(key)
    }
    // Moving a row in the document removes the focus from its link.
    const focused = this.#list.contains(document.activeElement) ? document.activeElement : null
    let cursor = this.#list.firstChild
    for (const chat of chats) {
      const row = this.#row(chat)
      update(row, chat, state, chat === shown)
      if (row.item === cursor) cursor = cursor.nextSibling
      else this.#list.insertBefore(row.item, cursor)
    }
    if (focused && document.activeElement !== focused) focused.focus({ preventScroll: true })
  }

  #row(chat) {
    const known = this.#rows.get(chat.key)
    if (known) return known
    const row = {
      kind: el('span', { class: 'unseen' }),
      name: el('span', { class: 'entry-name', dir: 'auto' }),
      time: el('time', { class: 'entry-time' }),
      last: el('span', { class: 'entry-last', dir: 'auto' }),
      unread: el('span', { class: 'badge', hidden: true }),
    }
    row.link = el('a', { 'class': 'entry', 'href': `#${encodeURIComponent(chat.key)}`, 'data-chat': chat.key },
      row.name, row.kind, row.time, row.last, row.unread)
    row.item = el('li', {}, row.link)
    this.#rows.set(chat.key, row)
    return row
  }
}

function update(row, chat, state, selected) {
  const t = texts[state.language]
  const message = chat.messages.at(-1)
  setText(row.kind, ` (${t[chat.type]}) `)
  if (row.name.textContent !== chat.name) {
    row.link.querySelector('.avatar')?.remove()
    row.link.prepend(avatar(chat.name, chat.id, chat.type))
    setText(row.name, chat.name)
  }
  setText(row.time, message ? recently(message.time, state.language) : '')
  setText(row.last, message ? lastLine(chat, message, state.language) : t.noMessages)
  row.unread.hidden = chat.unread === 0
  setText(row.unread, chat.unread > 99 ? '99+' : String(chat.unread))
  row.unread.setAttribute('aria-label', t.unread(chat.unread))
  row.unread.setAttribute('role', 'img')
  if (selected) row.link.setAttribute('aria-current', 'true')
  else row.link.removeAttribute('aria-current')
}

/** The sender is omitted in a private chat, except for the bot. */
function lastLine(chat, message, language) {
  const line = preview(message, language)
  return chat.type === 'group' || message.sender.self ? `${message.sender.name}: ${line}` : line
}
