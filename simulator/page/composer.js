import { react, Refusal, say } from './api.js'
import { byId, el, setText } from './dom.js'
import { preview } from './format.js'
import { texts } from './i18n.js'

/** The box grows with its text up to this many lines. */
const MAX_ROWS = 6

/** The members that the reader can speak as: everybody except the bot. */
function speakersOf(chat, self) {
  const others = chat.members.filter(member => String(member.id) !== String(self.id))
  return others.length === 0 && chat.type === 'private' ? [{ id: chat.id, name: chat.name }] : others
}

/** The box in which the reader speaks as a member. Each chat has its own draft, speaker and error. */
export class Composer {
  #form = byId('composer')
  #speaker = byId('speaker')
  #text = byId('text')
  #send = byId('send')
  #error = byId('composer-error')
  #note = byId('composer-note')
  #quote = byId('composer-quote')
  #quoted = byId('composer-quoted')
  #onSent

  #chat = null
  #speakers = []
  #language = 'en'
  #t = texts.en
  /** Chat key → { text, user, quoted, error, sending }; `quoted` is the message that the next one quotes. */
  #entries = new Map()

  /** @param {() => void} onSent */
  constructor(onSent) {
    this.#onSent = onSent
    this.#form.addEventListener('submit', event => {
      event.preventDefault()
      void this.#submit()
    })
    this.#text.addEventListener('keydown', event => {
      if (event.key === 'Escape') this.quote(null)
      // While an input method is composing, Enter chooses a candidate. Safari reports that only by key code 229.
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return
      event.preventDefault()
      void this.#submit()
    })
    this.#text.addEventListener('input', () => {
      Object.assign(this.#entry(), { text: this.#text.value, error: null })
      this.#refresh()
    })
    this.#speaker.addEventListener('change', () => {
      Object.assign(this.#entry(), { user: this.#speaker.value, error: null })
      this.#refresh()
    })
    byId('composer-unquote').addEventListener('click', () => this.quote(null))
  }

  /** Quotes a message in the next one; null for none. */
  quote(message) {
    this.#entry().quoted = message
    this.#refresh()
    this.#text.focus({ preventScroll: true })
  }

  /** Adds a reaction of the speaker to a message, or removes it. */
  async react(message, emoji) {
    const entry = this.#entry()
    const user = this.#speaker.value
    const users = message.reactions.find(each => each.emoji === emoji)?.users ?? []
    entry.error = null
    try {
      await react({ chat: this.#chat.id, user, message: message.id, emoji, on: !users.some(({ id }) => String(id) === user) })
    } catch (error) {
      entry.error = error
    }
    this.#refresh()
  }

  /** @param {import('./store.js').Chat} chat */
  render(chat, state) {
    const otherChat = this.#chat?.key !== chat.key
    this.#chat = chat
    this.#language = state.language
    this.#t = texts[state.language]
    this.#note.hidden = !state.online || state.connected
    const speakers = speakersOf(chat, state.self)
    if (otherChat || JSON.stringify(speakers) !== JSON.stringify(this.#speakers)) {
      this.#speakers = speakers
      this.#speaker.replaceChildren(...speakers.map(({ id, name }) => el('option', { value: id }, name)))
    }
    this.#form.hidden = speakers.length === 0
    this.#refresh()
  }

  #entry() {
    let entry = this.#entries.get(this.#chat.key)
    if (!entry) this.#entries.set(this.#chat.key, entry = { text: '', user: '', quoted: null, error: null, sending: false })
    return entry
  }

  #refresh() {
    const entry = this.#entry()
    const speaker = this.#speakers.find(({ id }) => String(id) === entry.user) ?? this.#speakers[0]
    if (!speaker) return
    this.#speaker.value = String(speaker.id)
    if (this.#text.value !== entry.text) this.#text.value = entry.text
    this.#text.placeholder = this.#t.write
    this.#text.setAttribute('aria-label', this.#t.writeAs(speaker.name))
    this.#text.setAttribute('aria-invalid', String(entry.error !== null))
    this.#quote.hidden = entry.quoted === null
    if (entry.quoted) setText(this.#quoted, `${this.#t.reply} ${entry.quoted.sender.name}: ${preview(entry.quoted, this.#language)}`)
    this.#send.disabled = entry.sending || entry.text.trim() === ''
    setText(this.#error, entry.error === null ? '' : this.#t.notSent(entry.error instanceof Refusal ? entry.error.message : this.#t.unreachable))
    this.#fit()
  }

  #fit() {
    const box = this.#text
    if (box.dataset.fits === box.value) return
    box.dataset.fits = box.value
    box.rows = 1
    while (box.rows < MAX_ROWS && box.scrollHeight > box.clientHeight) box.rows++
  }

  async #submit() {
    const chat = this.#chat
    const entry = this.#entry()
    const speaker = this.#speakers.find(({ id }) => String(id) === this.#speaker.value)
    if (!speaker || entry.sending || entry.text.trim() === '') return
    const { text, quoted } = entry
    Object.assign(entry, { sending: true, error: null })
    this.#refresh()
    try {
      // Exactly as typed: a trailing blank may be part of a command.
      await say({ type: chat.type, chat: chat.id, user: speaker.id, text, reply: quoted?.id })
      if (entry.text === text) entry.text = ''
      if (entry.quoted === quoted) entry.quoted = null
      if (this.#chat.key === chat.key) this.#onSent()
    } catch (error) {
      entry.error = error
    }
    entry.sending = false
    this.#refresh()
    this.#text.focus({ preventScroll: true })
  }
}
