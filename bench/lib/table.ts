import type { Row } from './scenario'
import { summarise } from './statistics'

/** The rows as a Markdown table, followed by the notes. */
export function renderTable(rows: readonly Row[]): string {
  const notes = rows.flatMap(({ note }) => note === undefined ? [] : [note])
  return [
    '| what | relay | rival | relay against rival (min–max) | goal | met? |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows.map(row => renderRow(row, notes)),
    '',
    ...notes.map((note, index) => `${index + 1}. ${note}`),
  ].join('\n')
}

function renderRow({ what, rival, unit, digits = 0, goal, pairs, note }: Row, notes: readonly string[]): string {
  const show = (figures: readonly number[]): string => `${summarise(figures).median.toLocaleString('en-US', {
    minimumFractionDigits: digits, maximumFractionDigits: digits,
  })} ${unit}`
  const { median, min, max } = summarise(pairs.map(goal.compare))
  const mark = note === undefined ? '' : ` [${notes.indexOf(note) + 1}]`
  return `| ${[
    what + mark,
    show(pairs.map(pair => pair.relay)),
    `${show(pairs.map(pair => pair.rival))} (${rival})`,
    pairs.length > 1 ? `${goal.show(median)} (${goal.show(min)}–${goal.show(max)})` : goal.show(median),
    goal.text,
    goal.isMet(median, pairs) ? 'yes' : 'no',
  ].join(' | ')} |`
}
