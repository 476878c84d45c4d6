import { byId, setText } from './dom.js'
import { texts } from './i18n.js'
import { drawReactions, renderMessage, variantOf } from './message.js'
import { around, earlier, grown, later, latest } from './message-window.js'

/** A distance to the end below this counts as being at the end. */
const NEAR_PX = 40

/**
 * The messages of the selected chat. At most a window of them is in the document. It follows new messages while the reader is at the end,
 * and otherwise keeps the reader's position.
 */
export class Log {
  #scroller = byId('log')
  #list = byId('messages')
  #earlier = byId('earlier')
  #later = byId('later')
  #latest = byId('latest')
  #handlers

  #chat = null
  #context = null
  /** What the rendered nodes depend on besides their messages. */
  #look = ''
  #messages = []
  #window = latest(0)
  /** Message → its rendered node and variant. */
  #drawn = new Map()
  #following = true
  #lastTop = 0
  #visible = false
  /** The one button of a message that Tab reaches. The arrow keys move from it to the others. */
  #stop = null
  /** The number of messages when the reader was last at the end. */
  #seen = 0

  /**
   * @param {{ openImage: (src: string, name: string) => void, quote: (message: object) => void,
   *   react: (message: object, emoji: string) => void }} handlers of clicks
   */
  constructor(handlers) {
    this.#handlers = handlers
    this.#scroller.addEventListener('scroll', () => this.#scrolled(), { passive: true })
    this.#earlier.addEventListener('click', () => this.#move(earlier(this.#window)))
    this.#later.addEventListener('click', () => this.#move(later(this.#window, this.#messages.length)))
    this.#latest.addEventListener('click', () => {
      this.stick()
      this.#scroller.focus({ preventScroll: true })
    })
    this.#list.addEventListener('keydown', event => this.#step(event))
    this.#list.addEventListener('focusin', ({ target }) => {
      if (target.matches('.tool')) this.#setStop(target)
    })
    // Keeps the end in view when pictures load late or the window is resized.
    const observer = new ResizeObserver(() => this.#resized())
    observer.observe(this.#scroller)
    observer.observe(this.#list)
  }

  /** Renders a chat of the state. */
  render(chat, state) {
    const look = `${chat.key} ${state.language} ${new Date().toDateString()} ${state.self.id}`
    const otherChat = this.#chat?.key !== chat.key
    if (look !== this.#look) this.#clear()
    this.#look = look
    this.#context = {
      chat,
      language: state.language,
      t: texts[state.language],
      self: state.self,
      ...this.#handlers,
      showMessage: message => this.#show(message),
    }
    if (otherChat) {
      this.#following = true
      this.#window = latest(chat.messages.length)
    } else if (this.#messages !== chat.messages) {
      this.#window = this.#moved(chat.messages)
    }
    this.#chat = chat
    this.#messages = chat.messages
    this.#window = grown(this.#window, chat.messages.length, this.#following)
    this.#draw()
    this.#keepEnd()
  }

  /** Scrolls to the end and follows it. */
  stick() {
    this.#following = true
    this.#window = this.#window.end === this.#messages.length ? this.#window : latest(this.#messages.length)
    this.#draw()
    this.#keepEnd()
  }

  #clear() {
    this.#list.replaceChildren()
    this.#drawn.clear()
  }

  /** The messages may have new positions after a fetch. The window stays with its first message. */
  #moved(messages) {
    const first = messages.indexOf(this.#messages[this.#window.start])
    if (this.#following || first < 0) return latest(messages.length)
    return { start: first, end: Math.min(messages.length, first + this.#window.end - this.#window.start) }
  }

  /** Renders the messages of the window, changing only the nodes that differ. */
  #draw() {
    const { start, end } = this.#window
    const wanted = new Map()
    for (let index = start; index < end; index++) {
      wanted.set(this.#messages[index], variantOf(this.#messages[index], index > start ? this.#messages[index - 1] : undefined))
    }
    for (const [message, { node, variant }] of this.#drawn) {
      if (wanted.get(message) === variant) continue
      node.remove()
      this.#drawn.delete(message)
    }
    let cursor = this.#list.firstChild
    for (const [message, variant] of wanted) {
      const drawn = this.#drawn.get(message)
      if (drawn) {
        cursor = drawn.node.nextSibling
        continue
      }
      const node = renderMessage(message, variant, this.#context)
      this.#drawn.set(message, { node, variant })
      this.#list.insertBefore(node, cursor)
    }
    for (const [message, { node }] of this.#drawn) drawReactions(node, message, this.#context)
    if (!this.#stop?.isConnected || !this.#list.contains(document.activeElement)) this.#setStop([...this.#list.querySelectorAll('.tool')].at(-1))
    this.#drawControls()
  }

  #setStop(button) {
    if (button === this.#stop) return
    this.#stop?.setAttribute('tabindex', '-1')
    this.#stop = button
    button?.setAttribute('tabindex', '0')
  }

  /** Up and down lead to the same button of another message, left and right to another button of the same one. */
  #step(event) {
    const { key, target } = event
    const step = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 }[key]
    if (step === undefined || !target.matches('.tool')) return
    const isAcross = key === 'ArrowLeft' || key === 'ArrowRight'
    const buttons = isAcross ? [...target.parentElement.children] : [...this.#list.querySelectorAll(`[data-tool=${target.dataset.tool}]`)]
    event.preventDefault()
    buttons[buttons.indexOf(target) + step]?.focus()
  }

  #drawControls() {
    const { start, end } = this.#window
    const total = this.#messages.length
    if (this.#following) this.#seen = total
    const news = Math.max(0, total - this.#seen)
    this.#earlier.hidden = start === 0
    this.#later.hidden = end === total
    this.#latest.hidden = news === 0 && end === total
    const t = this.#context.t
    setText(this.#latest, news > 0 ? t.newMessages(news) : t.latest)
  }

  /** On a narrow screen, a conversation that becomes visible again starts at its end. */
  #resized() {
    const visible = this.#scroller.clientHeight > 0
    if (visible && !this.#visible && this.#context) this.stick()
    else this.#keepEnd()
    this.#visible = visible
  }

  #keepEnd() {
    if (!this.#following) return
    this.#scroller.scrollTop = this.#scroller.scrollHeight
    this.#lastTop = this.#scroller.scrollTop
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR_PX && this.#window.end === this.#messages.length
    // Content that grew since the last frame moves the end away from a reader who has not scrolled. Only scrolling up counts as leaving.
    if (atEnd) this.#following = true
    else if (scrollTop < this.#lastTop) this.#following = false
    this.#lastTop = scrollTop
    if (this.#context) this.#drawControls()
  }

  /** Shows another window, and keeps the messages that remain at their position on the screen. */
  #move(window) {
    const stays = this.#messages[Math.max(window.start, this.#window.start)]
    const atBottom = window.end > this.#window.end
    const anchor = atBottom ? this.#messages[this.#window.end - 1] : stays
    const before = this.#top(anchor)
    this.#following = false
    this.#window = window
    this.#draw()
    this.#scroller.scrollTop += this.#top(anchor) - before
    this.#lastTop = this.#scroller.scrollTop
    // The clicked button may be gone. The focus must not fall back to the top of the page.
    if (document.activeElement === document.body) this.#scroller.focus({ preventScroll: true })
  }

  #top(message) {
    return this.#drawn.get(message)?.node.querySelector('.row')?.getBoundingClientRect().top ?? 0
  }

  #show(message) {
    const index = this.#messages.indexOf(message)
    if (index < 0) return
    this.#following = false
    this.#window = around(this.#window, index, this.#messages.length)
    this.#draw()
    const node = this.#drawn.get(message)?.node
    node?.scrollIntoView({ block: 'center' })
    this.#lastTop = this.#scroller.scrollTop
    node?.focus({ preventScroll: true })
  }
}
