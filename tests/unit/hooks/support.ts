import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { Liquid, type Template } from 'liquidjs'
import { isObject, type JsonObject } from '../../../src/message/parse'
import type { HookEvent, HookRequest, Reading, Source } from '../../../src/hooks/source'

export type Language = 'zh-CN' | 'en-US'
export const languages: readonly Language[] = ['zh-CN', 'en-US']

const folder = join(__dirname, '../../../src/hooks/templates')

/** As strict as it gets: what renders here renders under any setting. */
const liquid = new Liquid({
  templates: {}, strictFilters: true, strictVariables: true, ownPropertyOnly: true,
  parseLimit: 100_000, renderLimit: 1000, memoryLimit: 1_000_000,
})
liquid.registerFilter('time', (value: unknown) => {
  const time = new Date(typeof value === 'number' ? value : String(value))
  return Number.isNaN(time.getTime()) ? '' : time.toISOString().slice(0, 16).replace('T', ' ')
})

const templates = new Map<Source, Template[]>()

/** What the template of a source makes of a view. */
export function render(source: Source, view: JsonObject, lang: Language): string {
  const template = templates.get(source) ?? liquid.parse(readFileSync(join(folder, `${source.name}.liquid`), 'utf8'))
  templates.set(source, template)
  const text: unknown = liquid.renderSync(template, { ...view, lang })
  assert(typeof text === 'string')
  return text
}

/** A request as the engine makes it of what was posted as JSON. */
export function requestOf(payload: unknown, headers: IncomingHttpHeaders = {}): HookRequest {
  const raw = Buffer.from(JSON.stringify(payload))
  return {
    headers: { 'content-type': 'application/json', ...headers }, query: new URLSearchParams(), raw, payload: isObject(payload) ? payload : {},
  }
}

export function isEvent(reading: Reading): reading is HookEvent {
  return 'view' in reading
}

/** What is wrong with a text that is to be read in a chat. */
export function assertReadable(text: string): void {
  assert.doesNotMatch(text, /\[object|undefined|null|NaN|\bfalse\b|\btrue\b/, text)
  assert.doesNotMatch(text, /^\s|\s$|\n\s*\n|[^\S\n]{2,}|[^\S\n]\n/, `blanks or empty lines: ${JSON.stringify(text)}`)
  assert.doesNotMatch(text, /\*\*|^#{1,6} |\]\(|^\||<!--|```/m, text)
  for (const line of text.split('\n')) assert(line.length <= 300, line)
  assert((text.match(/^https?:\/\//gm) ?? []).length <= 1, `more than one link: ${text}`)
  assert.doesNotMatch(text.replaceAll('\n', ''), /\p{Cc}/u)
}

/**
 * Compares texts with those of an earlier time, which somebody has read and found fit for a chat.
 * With UPDATE_SNAPSHOTS=1 they are written anew, to be read again.
 */
export function assertSnapshot(name: string, texts: readonly string[]): void {
  const path = join(__dirname, 'snapshots', `${name}.txt`)
  const all = `${texts.join('\n\n')}\n`
  if (process.env.UPDATE_SNAPSHOTS === '1') writeFileSync(path, all)
  assert.equal(all, readFileSync(path, 'utf8'))
}

/** What a payload may hold where something else is expected. */
export const hostileValues: readonly unknown[] = [
  null, true, -1, 1e308, '', '[CQ:at,qq=all]<at id="all"/>@all\u0000\u001b[31m\u202e\r\n\r\n{{ lang }}{% raw %}', 'x'.repeat(1024 * 1024),
  '\ud800', [], {}, [null, 1, 'a', {}, [[]]], { toString: 'x', constructor: 1, length: -1 },
  Object.fromEntries([['__proto__', { id: 1 }], ['name', 'x'.repeat(10_000)]]), Array.from({ length: 5000 }, () => ({ id: 'y'.repeat(200) })),
]

/** Every payload that differs from one in a single field, which holds the value instead. */
export function* replaced(payload: unknown, value: unknown): Generator {
  yield value
  if (Array.isArray(payload)) {
    for (const [index, each] of payload.slice(0, 2).entries()) {
      for (const other of replaced(each, value)) yield payload.with(index, other)
    }
  } else if (isObject(payload)) {
    for (const [name, each] of Object.entries(payload)) {
      for (const other of replaced(each, value)) yield { ...payload, [name]: other }
    }
  }
}
