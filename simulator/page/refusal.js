import { byId, setText } from './dom.js'
import { clock } from './format.js'
import { texts } from './i18n.js'
import { keyOf } from './store.js'

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
  render({ refusal, refusalClosed, chats, language }) {
    const t = texts[language]
    this.#root.hidden = refusal === null || refusal.time <= refusalClosed
    if (this.#root.hidden) return
    const { target, time, retcode, wording } = refusal
    const chat = target === null ? undefined : chats.get(keyOf(target))
    const place = target === null ? t.nowhere : `${t[target.type]} ${chat?.name ?? target.id}`
    setText(this.#what, `${clock(time, language)} ${t.refused(place)}${target !== null && !chat ? ` ${t.noSuchChat}` : ''}`)
    setText(this.#why, `${wording.replace(/\s+/g, ' ')} (${retcode})`.trim())
  }
}
