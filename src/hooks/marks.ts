// Marks and severities for what senders say only by a colour, a tag or a priority.
import type { Severity } from '../message/model'
import { line } from './fields'

const bad = '❌'
const firing = '🔥'
const warning = '⚠️'
const good = '✅'

/** How bad something is: its mark, empty for an ordinary thing, and its severity. */
interface Rating { readonly mark: string, readonly severity: Severity }

const worst: Rating = { mark: bad, severity: 'critical' }
const failed: Rating = { mark: bad, severity: 'warning' }
const urgent: Rating = { mark: firing, severity: 'critical' }
const warned: Rating = { mark: warning, severity: 'warning' }
const over: Rating = { mark: good, severity: 'ok' }
const ordinary: Rating = { mark: '', severity: 'info' }

/** The words of severities and states. */
const words: readonly (readonly [rating: Rating, words: ReadonlySet<string>])[] = [
  [worst, new Set(['critical', 'crit', 'fatal', 'emergency', 'emerg', 'panic', 'disaster', 'down'])],
  [failed, new Set(['error', 'err', 'failure', 'failed', 'fail', 'danger', 'unhealthy', 'red', 'carmine'])],
  [{ mark: firing, severity: 'warning' }, new Set(['firing', 'alerting', 'problem'])],
  [warned, new Set(['warning', 'warn', 'degraded', 'high', 'average', 'timesensitive', 'orange', 'yellow'])],
  [over, new Set([
    'success', 'succeeded', 'ok', 'good', 'resolved', 'recovered', 'recovery', 'restored', 'up', 'clear', 'cleared', 'healthy', 'passed', 'green',
  ])],
  [ordinary, new Set(['info', 'information', 'notice', 'debug', 'normal', 'default', 'low', 'none', 'active', 'passive'])],
]

/** The severities of pictures that senders put before a text. */
const pictures: ReadonlyMap<string, Severity> = new Map([
  ...['🚨', '🆘', '💀'].map(each => [each, 'critical'] as const),
  ...['❌', '🔥', '⚠', '🔴'].map(each => [each, 'warning'] as const),
  ...['✅', '✔', '🟢'].map(each => [each, 'ok'] as const),
])
const picture = new RegExp([...pictures.keys()].join('|'), 'u')

function ratingOfWord(value: unknown): Rating | undefined {
  const word = line(value, 40).toLowerCase().replace(/[^a-z]/g, '')
  return words.find(([, each]) => each.has(word))?.[0]
}

/** The mark of a severity, a state or the name of a colour, empty for an ordinary one; `undefined` for any other word. */
export function markOfWord(value: unknown): string | undefined {
  return ratingOfWord(value)?.mark
}

/** The severity of a severity, a state or the name of a colour; `undefined` for any other word. */
export function severityOfWord(value: unknown): Severity | undefined {
  return ratingOfWord(value)?.severity
}

/** The severity by the first picture in the first lines of texts; `undefined` without one. */
export function severityIn(...texts: readonly string[]): Severity | undefined {
  const [found = ''] = texts.flatMap(text => picture.exec(line(text.slice(0, 400).split('\n', 1)[0]))?.[0] ?? [])
  return pictures.get(found)
}

/** The mark of a colour: a name, a number, or hexadecimal digits. Only red, orange, yellow and green have one. */
export function markOfColor(value: unknown): string {
  const text = typeof value === 'number' ? value.toString(16).padStart(6, '0') : line(value, 40).replace(/^#/, '')
  if (!/^[\da-f]{6}$/i.test(text)) return markOfWord(text) ?? ''
  const [red = 0, green = 0, blue = 0] = [0, 2, 4].map(at => Number.parseInt(text.slice(at, at + 2), 16))
  const range = Math.max(red, green, blue) - Math.min(red, green, blue)
  // Grey, and blue with its neighbours, say nothing.
  if (range < 60 || blue > Math.max(red, green) - range / 3) return ''
  if (green >= red) return green - red > range / 4 ? good : warning
  return green - blue > range / 3 ? warning : bad
}

/** How bad a priority is of ntfy (1 to 5), Pushover (-2 to 2) or Gotify (0 to 10); `undefined` if it is none. */
export function ratingOfPriority(value: unknown, high: number, highest: number): Rating | undefined {
  const text = line(value, 10).toLowerCase()
  const priority = { high, urgent: highest, max: highest, default: 0, low: 0, min: 0 }[text] ?? Number(text || Number.NaN)
  if (Number.isNaN(priority)) return
  return priority >= highest ? urgent : priority >= high ? warned : ordinary
}

/** The mark, unless the texts have one of their own. */
export function unlessMarked(mark: string, ...texts: readonly string[]): string {
  return texts.some(text => /(?![©®™])\p{Extended_Pictographic}/u.test(text)) ? '' : mark
}
