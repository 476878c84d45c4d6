import type { Language } from '../texts/language'
import { writeMoment, writeSpan } from '../lib/span'
import type { Incident } from './incident'

/** What the relay says in the chat about an incident, in one line. */
interface Wording {
  taken: (who: string, time: string, span: string) => string
  open: (span: string) => string
  silenced: (until: string, who: string) => string
  released: (who: string) => string
  woken: (count: number, newest: string) => string
  resolved: (who: string, span: string) => string
  ended: (span: string, who: string) => string
  over: (time: string) => string
  step: (span: string, id: string, title: string) => string
  reminded: (span: string, id: string, title: string) => string
}

const wordings: Readonly<Record<Language, Wording>> = {
  'zh-CN': {
    taken: (who, time, span) => `${who} 在看（${time}，已响 ${span}）`,
    open: span => `还没有人认领，已响 ${span}`,
    silenced: (until, who) => `静默到 ${until}（${who}）`,
    released: who => `${who} 放弃，等人认领`,
    woken: (count, newest) => count > 0 ? `静默结束，期间 ${count} 条，最新：${newest}` : '静默结束，期间没有新消息',
    resolved: (who, span) => `${who} 已解决，持续 ${span}`,
    ended: (span, who) => `持续 ${span}，${who === '' ? '无人认领' : `${who}处理`}`,
    over: time => `已经解决（${time}）`,
    step: (span, id, title) => `${span}没有人认领（${id}）：${title}\n引用这条消息回复“我来”即可认领`,
    reminded: (span, id, title) => `${span} 前认领，还没有解决（${id}）：${title}`,
  },
  'en-US': {
    taken: (who, time, span) => `${who} is on it (since ${time}, ${span} after the alert)`,
    open: span => `nobody has taken it for ${span}`,
    silenced: (until, who) => `silenced until ${until} (${who})`,
    released: who => `${who} gave it back: who takes it?`,
    woken: (count, newest) => count > 0 ? `the silence is over; ${count} came meanwhile, the newest: ${newest}` : 'the silence is over; nothing came meanwhile',
    resolved: (who, span) => `resolved by ${who} after ${span}`,
    ended: (span, who) => `lasted ${span}, ${who === '' ? 'taken by nobody' : `handled by ${who}`}`,
    over: time => `it is resolved (${time})`,
    step: (span, id, title) => `nobody has taken this for ${span} (${id}): ${title}\nquote this message with "ack" to take it`,
    reminded: (span, id, title) => `taken ${span} ago and not resolved yet (${id}): ${title}`,
  },
}

/** How an incident is: who has it, or until when it is silent. */
export function describe(incident: Incident, now: number, language: Language): string {
  const { state, owner, takenAt = now, since, silencedUntil = now, resolvedAt = now, timeline } = incident
  const words = wordings[language]
  if (state === 'silenced') {
    const by = timeline.findLast(({ kind }) => kind === 'silenced')?.by
    return words.silenced(writeMoment(silencedUntil, now, language), by?.name ?? '')
  }
  if (state === 'resolved') {
    const { by } = timeline.findLast(({ kind }) => kind === 'resolved') ?? {}
    if (by && resolvedAt === now) return words.resolved(by.name, writeSpan(now - since, language))
    return words.over(writeMoment(resolvedAt, now, language))
  }
  if (!owner) return words.open(writeSpan(now - since, language))
  return words.taken(owner.name, writeMoment(takenAt, now, language), writeSpan(takenAt - since, language))
}

/** What is said after somebody gave an incident back. */
export function writeReleased({ state, owner }: Incident, who: string, language: Language): string {
  return state === 'taken' && owner ? wordings[language].woken(0, '') : wordings[language].released(who)
}

/** The line that the end of its source carries. */
export function writeEnd({ since, owner }: Incident, now: number, language: Language): string {
  return wordings[language].ended(writeSpan(now - since, language), owner?.name ?? '')
}

export function writeStep({ id, since, title }: Incident, now: number, language: Language): string {
  return wordings[language].step(writeSpan(now - since, language), id, title)
}

export function writeReminder({ id, takenAt = 0, title }: Incident, now: number, language: Language): string {
  return wordings[language].reminded(writeSpan(now - takenAt, language), id, title)
}

export function writeWoken({ missed: { count, newest = '' } }: Incident, language: Language): string {
  return wordings[language].woken(count, newest)
}
