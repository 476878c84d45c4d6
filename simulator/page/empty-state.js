import { copyButton } from './clipboard.js'
import { byId, el } from './dom.js'
import { texts } from './i18n.js'

/** The address at which a relay listens unless told otherwise. */
const RELAY = 'http://127.0.0.1:8081/webhook'

/**
 * The command that sends a first message to this chat, for a POSIX shell.
 * @param {{ type: 'group' | 'private', id: string | number }} chat
 */
export function firstMessageCommand(chat) {
  const body = JSON.stringify({ [chat.type === 'group' ? 'group_id' : 'user_id']: String(chat.id), msg: 'hello' })
  return `curl -H "Authorization: Bearer $(cat data/api-key)" -d '${body.replaceAll('\'', '\'\\\'\'')}' ${RELAY}`
}

/** What a chat without messages shows: how to send the first one. */
export class EmptyState {
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
