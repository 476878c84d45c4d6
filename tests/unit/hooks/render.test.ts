import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { renderPlainly, tidy } from '../../../src/hooks/plain'
import type { Reading, Source } from '../../../src/hooks/source'
import { sources } from '../../../src/hooks/sources'
import { Templates, type Language } from '../../../src/hooks/templates'
import { isObject, type JsonObject } from '../../../src/message/parse'

process.env.TZ = 'Asia/Shanghai'

const fixtures = join(import.meta.dirname, '../../fixtures/payloads')
const snapshots = join(import.meta.dirname, 'snapshots')
const templates = new Templates(join(fixtures, 'none'), ['grafana.example.com'])

function load(source: string): [name: string, payload: JsonObject][] {
  return readdirSync(join(fixtures, source)).sort().map(file => {
    const payload: unknown = JSON.parse(readFileSync(join(fixtures, source, file), 'utf8'))
    assert(isObject(payload))
    return [file.replace('.json', ''), payload]
  })
}

function read(source: Source, payload: JsonObject): Reading {
  return source.read({ headers: {}, query: new URLSearchParams(), raw: Buffer.from(JSON.stringify(payload)), payload })
}

/** What an event becomes, with its pictures. */
async function render(source: Source, payload: JsonObject, lang: Language): Promise<string> {
  const reading = read(source, payload)
  if ('skipped' in reading) return `(skipped: ${reading.skipped})`
  const { text, pictures } = await templates.render(source.name, reading.view, lang)
  return [tidy(text), ...pictures.map(link => link.kind === 'remote' ? `(picture: ${link.url})` : `(picture: ${link.kind})`)].filter(Boolean).join('\n')
}

/** Values that no field is expected to have. */
const hostile: readonly unknown[] = [
  null, true, 0, -1, 1e308, '', ' ', '\u0000', '[CQ:at,qq=all]', 'x'.repeat(200_000), '['.repeat(5_000), '*'.repeat(5_000), '<'.repeat(5_000), [], {},
  [[[[]]]], [null], ['a'], [{}], { a: { b: {} } }, { toString: 'a' }, { length: 5 },
]

/** The payload once for each field and hostile value, with the value in the place of the field. */
function* variants(value: unknown): Generator {
  yield* hostile
  if (Array.isArray(value)) {
    for (const [index, each] of value.entries()) for (const other of variants(each)) yield value.with(index, other)
  } else if (isObject(value)) {
    for (const [name, each] of Object.entries(value)) for (const other of variants(each)) yield { ...value, [name]: other }
  }
}

test('every source has payloads to be read', () => {
  const folders = ['../../fixtures/hooks', '../../fixtures/payloads'].flatMap(folder => readdirSync(join(import.meta.dirname, folder)))
  assert.deepEqual(folders.filter(name => !name.endsWith('.md')).sort(), sources.map(({ name }) => name).sort())
})

for (const source of sources.filter(({ name }) => existsSync(join(fixtures, name)))) {
  describe(source.name, () => {
    test('gives the texts of its snapshot', async () => {
      const blocks: string[] = []
      for (const [name, payload] of load(source.name)) {
        for (const lang of ['zh-CN', 'en-US'] as const) blocks.push(`# ${name} (${lang})\n${await render(source, payload, lang)}\n`)
      }
      const file = join(snapshots, `${source.name}.txt`)
      const text = blocks.join('\n')
      if (process.env.UPDATE_SNAPSHOTS) writeFileSync(file, text)
      assert.equal(text, readFileSync(file, 'utf8'))
      assert.doesNotMatch(text, /\[object|undefined|null|NaN/)
    })

    test('takes anything in any field, or says that it does not', async () => {
      for (const [, payload] of load(source.name)) {
        for (const variant of variants(payload)) {
          if (!isObject(variant)) continue
          let reading: Reading
          try {
            reading = read(source, variant)
          } catch (error) {
            assert(error instanceof Error && 'code' in error && error.code === 'bad-request', String(error))
            continue
          }
          if ('skipped' in reading) continue
          const text = await templates.render(source.name, reading.view, 'en-US')
          assert.doesNotMatch(text.text, /\[object|undefined/)
        }
      }
    })
  })
}

describe('a text', () => {
  test('is made fit for a chat', () => {
    assert.equal(tidy('a  \r\nb\u0007\u202e\tc\n\n\n\nd\u2028e\ud800 '), 'a\nb  c\n\nd\ne\ufffd')
  })

  test('is made fit in a time in proportion to its length, whatever blanks it has', () => {
    const started = performance.now()
    assert.equal(tidy(`a${' '.repeat(1_000_000)}b`).length, 1_000_002)
    assert(performance.now() - started < 1500)
  })

  test('is made of the main fields where there is no other', () => {
    assert.equal(renderPlainly({ a: 'x', b: { c: 1 }, d: 2, e: true, f: 'y'.repeat(600), g: null }), `a: x\nd: 2\ne: true\nf: ${'y'.repeat(500)}…`)
  })
})
