// Marks for what senders say only by a colour, a tag or a priority.
import { line } from './fields'

const bad = '❌'
const firing = '🔥'
const warning = '⚠️'
const good = '✅'

/** The words of severities and states by their marks. An ordinary one needs none. */
const words: readonly (readonly [mark: string, words: ReadonlySet<string>])[] = [
  [bad, new Set([
    'critical', 'crit', 'fatal', 'error', 'err', 'emergency', 'emerg', 'panic', 'disaster', 'failure', 'failed', 'fail', 'down', 'danger', 'unhealthy',
    'red', 'carmine',
  ])],
  [firing, new Set(['firing', 'alerting', 'problem'])],
  [warning, new Set(['warning', 'warn', 'degraded', 'high', 'average', 'timesensitive', 'orange', 'yellow'])],
  [good, new Set([
    'success', 'succeeded', 'ok', 'good', 'resolved', 'recovered', 'recovery', 'restored', 'up', 'clear', 'cleared', 'healthy', 'passed', 'green',
  ])],
  ['', new Set(['info', 'information', 'notice', 'debug', 'normal', 'default', 'low', 'none', 'active', 'passive'])],
]

/** The mark of a severity, a state or the name of a colour, empty for an ordinary one; `undefined` for any other word. */
export function markOfWord(value: unknown): string | undefined {
  const word = line(value, 40).toLowerCase().replace(/[^a-z]/g, '')
  return words.find(([, each]) => each.has(word))?.[0]
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

/** The marks of the priorities of ntfy (1 to 5), Pushover (-2 to 2) and Gotify (0 to 10). */
export function markOfPriority(value: unknown, high: number, highest: number): string {
  const text = line(value, 10).toLowerCase()
  const priority = { high, urgent: highest, max: highest }[text] ?? Number(text || Number.NaN)
  return priority >= highest ? firing : priority >= high ? warning : ''
}

/** The mark, unless the texts have one of their own. */
export function unlessMarked(mark: string, ...texts: readonly string[]): string {
  return texts.some(text => /(?![©®™])\p{Extended_Pictographic}/u.test(text)) ? '' : mark
}
