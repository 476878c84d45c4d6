import { byId, setText } from './dom.js'
import { clock } from './format.js'
import { texts } from './i18n.js'
import { isOn, keyOf } from './store.js'

/** How long the notice stays, in milliseconds, and how long again if the reader is at it then. */
const SHOWN_MS = 20_000

/** Shows the bot's last refused send for a while, because no chat shows it. */
export class RefusalNotice {
  #root = byId('refusal')
  #what = byId('refusal-what')
  #why = byId('refusal-why')
  #close
  #shown = 0
  #timer

  /** @param {() => void} close */
  constructor(close) {
    this.#close = close
    byId('refusal-close').addEventListener('click', close)
  }

  /** @param {object} state */
  render(state) {
    const { refusal, refusalClosed, chats, language } = state
    const t = texts[language]
    this.#root.hidden = refusal === null || refusal.time <= refusalClosed
    if (this.#root.hidden) return
    const { target, time, retcode, wording } = refusal
    if (time !== this.#shown) {
      this.#shown = time
      this.#closeLater()
    }
    const chat = target === null ? undefined : chats.get(keyOf(target))
    setText(this.#what, [clock(time, language), summary(target, chat, t), ...target && !chat && !isOn(state, 'anyTarget', null) ? [t.noSuchChat] : []].join(' '))
    setText(this.#why, `${retcode} ${reasonIn(wording)}`.trim())
    this.#why.title = wording
  }

  #closeLater() {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (this.#root.matches(':hover, :focus-within')) this.#closeLater()
      else this.#close()
    }, SHOWN_MS)
  }
}

function summary(target, chat, t) {
  if (target === null) return t.refusedNowhere
  const name = chat?.name ?? target.id
  return target.type === 'group' ? t.refusedGroup(name) : t.refusedPrivate(name)
}

/** The readable part of a wording. NapCat puts it in an object at the end of a long line for developers. */
function reasonIn(wording) {
  return /"errMsg": "([^"]+)"/.exec(wording)?.[1] ?? wording.replace(/\s+/g, ' ')
}
