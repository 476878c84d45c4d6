import { byId, setText } from './dom.js'
import { clock } from './format.js'
import { texts } from './i18n.js'
import { isOn, keyOf } from './store.js'

/** Says what of the bot's was refused last: it is in no chat, so that nobody would see it. */
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

/** What is meant for people: NapCat puts it into an object at the end of a long line for its developers. */
function reasonIn(wording) {
  return /"errMsg": "([^"]+)"/.exec(wording)?.[1] ?? wording.replace(/\s+/g, ' ')
}
