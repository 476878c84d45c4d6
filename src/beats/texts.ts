import type { Language } from '../texts/language'
import { writeMoment, writeSpan } from '../lib/span'
import { printable } from '../lib/log'
import type { Notice } from './beat'
import type { BeatRule } from './rule'

const wordings = {
  'zh-CN': {
    comma: '，', colon: '：',
    late: '没有按时报到', hung: (time: string) => `${time} 开始后没有结束`, failed: '失败',
    last: (time: string) => `上次 ${time}`, took: (span: string) => `用时 ${span}`, status: (status: number) => `退出码 ${status}`,
    over: '恢复', lateBy: (span: string) => `迟到 ${span}`, since: (span: string) => `${span}前失败`,
  },
  'en-US': {
    comma: ', ', colon: ': ',
    late: 'did not report in time', hung: (time: string) => `began at ${time} and has not ended`, failed: 'failed',
    last: (time: string) => `last ${time}`, took: (span: string) => `took ${span}`, status: (status: number) => `exit status ${status}`,
    over: 'is back', lateBy: (span: string) => `${span} late`, since: (span: string) => `failed ${span} ago`,
  },
} as const

/** Writes a notice: a line, and the end of the log. */
export function writeNotice(notice: Notice, { name, zone }: BeatRule, language: Language): string {
  const { trouble, isOver, at, last, duration, status, tail } = notice
  const words = wordings[language]
  const moment = (time: number): string => writeMoment(time, at, language, zone)
  const took = duration === undefined ? [] : [words.took(writeSpan(duration, language))]
  const { kind, due = trouble.at } = trouble
  const line = (what: string, facts: readonly string[], mark: string): string => (
    `${name} ${what}${facts.length > 0 ? mark : ''}${facts.join(words.comma)}`
  )
  if (isOver && kind === 'hung' && took.length > 0) return line(words.over, took, words.comma)
  if (isOver) return line(words.over, [words[kind === 'failed' ? 'since' : 'lateBy'](writeSpan(at - due, language))], words.comma)
  if (kind === 'hung') return [line(words.hung(moment(due)), [], ''), ...linesOf(tail)].join('\n')
  if (kind === 'late') return line(words.late, last === undefined ? [] : [words.last(moment(last)), ...took], words.colon)
  return [line(words.failed, [...status === undefined ? [] : [words.status(status)], ...took], words.colon), ...linesOf(tail)].join('\n')
}

function linesOf(tail: string | undefined): string[] {
  return tail === undefined ? [] : tail.split('\n').map(printable)
}
