import { byId, setText } from './dom.js'
import { clock } from './format.js'
import { texts } from './i18n.js'
import { isOn, keyOf } from './store.js'

/** Shows the bot's last refused send, because no chat shows it. */
export class RefusalNotice {
  #root = byId('refusal')
  #what = byId('refusal-what')
  #why = byId('refusal-why')

  /** @param {() => void} close */
  constructor(close) {
    byId('refusal-close').addEventListener('click', close)
  }

  /** @param {object} state */
  render(state) {
    const { refusal, refusalClosed, chats, language } = state
    const t = texts[language]
    this.#root.hidden = refusal === null || refusal.time <= refusalClosed
    if (this.#root.hidden) return
    const { target, time, retcode, wording } = refusal
    const chat = target === null ? undefined : chats.get(keyOf(target))
    setText(this.#what, [clock(time, language), summary(target, chat, t), ...target && !chat && !isOn(state, 'anyTarget', null) ? [t.noSuchChat] : []].join(' '))
    setText(this.#why, `${retcode} ${reasonIn(wording)}`.trim())
    this.#why.title = wording
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
