import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { RelayError } from '../../../src/errors'
import { object } from '../../../src/hooks/sources/values'
import { sources } from '../../../src/hooks/sources'
import type { HookRequest, Source } from '../../../src/hooks/source'
import { assertReadable, assertSnapshot, hostileValues, isEvent, languages, render, replaced, requestOf, type Language } from './support'

const folder = join(__dirname, '../../fixtures/hooks')

for (const source of sources.filter(({ name }) => existsSync(join(folder, name)))) {
  describe(`what ${source.name} posts`, () => {
    const fixtures = readFixtures(source)

    test('makes texts that can be read', () => {
      const texts = fixtures.flatMap(({ name, request }) => {
        const reading = source.read(request)
        if (!isEvent(reading)) return [`== ${name}: ${reading.skipped}`]
        const { branch = '', status = '', view } = reading
        return languages.map(lang => {
          const text = render(source, view, lang)
          assertReadable(text)
          return `== ${name} (${lang}) event=${reading.name} branch=${branch} status=${status}\n${text}`
        })
      })
      assertSnapshot(source.name === 'github' ? 'github-more' : source.name, texts)
    })

    test('may hold anything in any field', () => {
      let number = 0
      for (const { name, request } of fixtures) {
        for (const value of hostileValues) {
          for (const payload of replaced(request.payload, value)) {
            check(source, { ...request, payload: object(payload) }, name, languages[number++ % languages.length])
          }
        }
      }
    })

    test('may come without any header', () => {
      for (const { name, request } of fixtures) check(source, { ...request, headers: {} }, name)
    })
  })
}

/** Whether a request is refused, skipped, or becomes a short text, and nothing else. */
function check(source: Source, request: HookRequest, name: string, lang: Language = 'en-US'): void {
  try {
    const key = source.keyOf?.(request)
    assert(key === undefined || key.text.length < 1000, name)
    const reading = source.read(request)
    if (!isEvent(reading)) {
      assert(reading.skipped.length < 300, name)
      return
    }
    assert(reading.name !== '' && `${reading.name}${reading.branch}${reading.status}`.length < 600, name)
    const text = render(source, reading.view, lang)
    assert(text.length < 4000, `${name}: ${text.length} characters`)
    assert.doesNotMatch(text.replaceAll('\n', ''), /\p{Cc}|\p{Cs}|\u202e/u, name)
    assert.doesNotMatch(text, /\[object|undefined|NaN/, name)
  } catch (error) {
    if (!(error instanceof RelayError && error.code === 'bad-request')) throw error
  }
}

function readFixtures({ name: source }: Source): { name: string, request: HookRequest }[] {
  const files = readdirSync(join(folder, source)).filter(file => file.endsWith('.json')).sort()
  assert(files.length > 0)
  return files.map(file => {
    const { headers, payload } = object(JSON.parse(readFileSync(join(folder, source, file), 'utf8')))
    return { name: file.replace('.json', ''), request: requestOf(payload, headersOf(headers)) }
  })
}

function headersOf(value: unknown): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(object(value)).map(([name, each]) => [name, String(each)]))
}
