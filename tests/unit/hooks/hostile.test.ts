import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RelayError } from '../../../src/errors'
import { isObject } from '../../../src/lib/shape'
import { object } from '../../../src/hooks/fields'
import type { HookRequest, Reading, Source } from '../../../src/hooks/source'
import { sources } from '../../../src/hooks/sources'
import { isEvent, languages, readFixtures, render } from './support'

/** The size of what is posted at most, roughly, in characters, and how many values it has. */
const mebibyte = 1024 * 1024
const mostValues = 20_000

/** What no field is expected to hold. */
const values: readonly unknown[] = [
  null, true, -1, 1e308, '', '\u0000\u001b[31m\u202e\r\n\r\n\ud800', '__proto__', 'constructor',
  '[CQ:at,qq=all]<at id="all"/>@all{{ lang }}{% raw %}![a](https://a.example/a.png)', 'https://',
  '+275760-09-13T00:00:00.001Z', '99999999999999999999', 'x'.repeat(100_000), [], {}, [null, 1, 'a', {}, [[]]], { toString: 'x', constructor: 1, length: -1 },
  Object.fromEntries([['__proto__', { id: 1 }], ['name', 'x'.repeat(10_000)]]), nested(2000),
  Array.from({ length: mostValues / 2 }, () => ({ id: 'y' })),
]

/** Pieces of markup that a text may consist of, each of which could make a pattern look again and again at what follows it. */
const pieces: readonly string[] = [
  ' ', '\t', '\n', ' \n', '<', '<a ', '</a', '<!--', '<br ', '<at user_id="', '<@', '<t:1', '<:a:1', '</a:1', '<https://a', '[', '![', '[a](',
  '[a](https://a', '*', '**a', '_', '__a', '~~a', '`', '```\n', '`a', ' *a', '(_a', '|', '||a', '\n| a', '|-', '\n>', '# ', '\n#', '\n---', '-# ',
  '&gt;', ': ', ':\n', 'a\n', '\r', '\u202e', '\ud800', '😀', '{{', '\\n', '\\_', '``a', '<a href="', '</td>', '&#1', 'https://', 'by @a in ', '/projects/a/', '9',
]

for (const source of sources) {
  const fixtures = readFixtures(source.name)

  describe(`a hostile post to ${source.name}`, () => {
    test('may hold anything in any field', async () => {
      let number = 0
      for (const { name, request } of fixtures) {
        for (const value of values) {
          for (const other of replaced(request.payload, value)) await check(source, requestOf(other, request.headers), name, number++)
        }
      }
    })

    test('may come with any header, or without one', async () => {
      for (const { name, request } of fixtures) {
        await check(source, { ...request, headers: {} }, name)
        for (const word of ['__proto__', 'constructor', 'x'.repeat(10_000), '\u202e']) {
          await check(source, { ...request, headers: Object.fromEntries(Object.keys(request.headers).map(header => [header, word])) }, name)
        }
      }
    })

    test('is read in no time, whatever markup it consists of, and however long its lists are', async () => {
      for (const [index, { name, request: { payload, headers } }] of fixtures.entries()) {
        const share = Math.ceil(mebibyte / (textsIn(payload) || 1))
        // All pieces come into the fields of each source, but not of each of its events.
        const step = Math.min(fixtures.length, 4)
        for (const piece of pieces.filter((_, each) => each % step === index % step)) {
          const text = piece.repeat(Math.ceil(share / piece.length))
          await checkTime(source, requestOf(filled(payload, text), headers), `${name}: ${JSON.stringify(piece)}`)
        }
        for (const longer of lengthened(payload)) await checkTime(source, requestOf(longer, headers), name)
      }
    })
  })
}

const rendered = new Set<string>()

/** Whether a request is refused, skipped, or becomes a text, and nothing else. */
async function check(source: Source, request: HookRequest, name: string, number = 0): Promise<void> {
  const key = source.keyOf?.(request)
  assert(key === undefined || key.text.length <= 10_000, name)
  const reading = readOf(source, request)
  if (!reading) return
  if (!isEvent(reading)) {
    assert(String(reading.skipped).length < 300, name)
    return
  }
  assert(reading.name !== '' && `${reading.name}${reading.branch}${reading.status}`.length < 600, name)
  const lang = languages[number % languages.length] ?? 'en-US'
  const view = JSON.stringify([source.name, lang, reading.view])
  // Most fields are none that a source looks at.
  if (rendered.has(view)) return
  if (view.length < 10_000) rendered.add(view)
  const text = await render(source, reading.view, lang)
  assert.doesNotMatch(text.replaceAll('\n', ''), /\p{Cc}|\p{Cs}|\u202e/u, name)
  assert.doesNotMatch(text, /\[object|undefined|NaN/, name)
  // What robots are sent is passed on as a whole.
  assert(text.length < (reading.name === 'message' || reading.name === 'notification' ? 1_000_001 : 6_000), `${name}: ${text.length} characters`)
}

/** Whether a request takes less than 0.1 seconds of the processor, where it is not disturbed. */
async function checkTime(source: Source, request: HookRequest, name: string): Promise<void> {
  const times: number[] = []
  do {
    const start = process.cpuUsage()
    source.keyOf?.(request)
    const reading = readOf(source, request)
    if (reading && isEvent(reading)) await render(source, reading.view, 'en-US')
    const { user, system } = process.cpuUsage(start)
    times.push((user + system) / 1000)
  } while (Math.min(...times) >= 100 && times.length < 10)
  assert(Math.min(...times) < 100, `${name} takes ${Math.min(...times)} ms`)
}

/** What a source makes of a request; `undefined` where it refuses it. */
function readOf(source: Source, request: HookRequest): Reading | undefined {
  try {
    return source.read(request)
  } catch (error) {
    if (error instanceof RelayError && error.code === 'bad-request') return
    throw error
  }
}

function requestOf(payload: unknown, headers: HookRequest['headers']): HookRequest {
  return { headers, query: new URLSearchParams(), raw: Buffer.alloc(0), payload: object(payload) }
}

/** Every payload that differs from one in a single field, which holds the value instead. */
function* replaced(payload: unknown, value: unknown): Generator {
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

/** The fields that say what the others mean; what they say is kept. */
const kinds: ReadonlySet<string> = new Set([
  'object_kind', 'event_name', 'action', 'status', 'state', 'conclusion', 'build_status', 'type', 'tag', 'msgtype', 'msg_type', 'mimetype', 'ref_type', 'base64',
])

function isText(name: string, value: unknown): value is string {
  return typeof value === 'string' && !kinds.has(name)
}

function textsIn(value: unknown, name = ''): number {
  if (typeof value === 'object' && value !== null) return Object.entries(value).reduce((sum, [inner, each]) => sum + textsIn(each, inner), 0)
  return isText(name, value) ? 1 : 0
}

/** A payload with a text in the place of each of its texts. */
function filled(value: unknown, text: string, name = ''): unknown {
  if (Array.isArray(value)) return value.map(each => filled(each, text))
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([inner, each]) => [inner, filled(each, text, inner)]))
  return isText(name, value) ? text : value
}

/** Every payload that differs from one in a single list, which has its elements again and again. */
function* lengthened(value: unknown): Generator {
  if (Array.isArray(value)) {
    if (value.length > 0) yield Array.from({ length: mostValues }, (_, index): unknown => value[index % value.length])
    for (const [index, each] of value.entries()) for (const other of lengthened(each)) yield value.with(index, other)
  } else if (isObject(value)) {
    for (const [name, each] of Object.entries(value)) for (const other of lengthened(each)) yield { ...value, [name]: other }
  }
}

function nested(depth: number): unknown {
  let value: unknown = 'x'
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { elements: value, text: value, content: value }
  return value
}
