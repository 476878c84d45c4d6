import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe } from 'node:test'
import { readCard } from '../../../src/hooks/cards'
import { inOneLine, object } from '../../../src/hooks/fields'
import { decodeEntities } from '../../../src/hooks/html'
import { severityOfWord } from '../../../src/hooks/marks'
import { excerpt, fromDiscord, fromMarkdown, fromRobotMarkdown, fromSlack, readerOf, withEmoji, withLinks } from '../../../src/hooks/markup'
import { renderPlainly, tidy } from '../../../src/hooks/plain'
import { fieldsOfHeaders, linksOf, wordsOf } from '../../../src/hooks/push'
import type { Source } from '../../../src/hooks/source'
import { sources } from '../../../src/hooks/sources'
import { Templates } from '../../../src/hooks/templates'
import { decodeHeader, parsePairs, unescapeBytes } from '../../../src/lib/bytes'
import { escapeControls, excessOfJson, faultOfJson, parseJson } from '../../../src/lib/json'
import { safeName } from '../../../src/lib/file-name'
import { divideText } from '../../../src/lib/words'
import { isObject } from '../../../src/lib/shape'
import { parseFileName, parseParameters } from '../../../src/uploads/multipart'
import { temporaryFolder } from '../../support/folder'
import { isEvent, languages, readFixtures, render, requestOf } from '../hooks/support'
import { accepted, anything, assertSame, holds, textsOf } from './support'

const markup = textsOf(
  '**', '*', '_', '__', '~~', '`', '```\n', '[', '](', ')', '![', '<', '>', '<a href="', '</a>', '<br>', '<at id="', '<@1>', '<!date^1^{x}|', '&lt;', '&#1;',
  '&#x', '|', '\n', '\r', '\\', '# ', '\n> ', ':a:', 'https://a.example', '{{', '{%', '\u0001', '\u0002', '\u202e', '值班', ' ',
)

/** A payload of the source that differs from a real one in a few fields. */
function payloadsOf(source: Source): fc.Arbitrary<{ payload: unknown, headers: Record<string, string> }> {
  const fixtures = readFixtures(source.name).map(({ request: { payload, headers } }) => ({
    payload, headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
  }))
  const change = fc.tuple(fc.array(fc.nat(), { minLength: 1, maxLength: 5 }), fc.oneof(anything, markup))
  return fc.tuple(fc.constantFrom(...fixtures), fc.array(change, { maxLength: 4 })).map(([{ payload, headers }, changes]) => ({
    headers, payload: changes.reduce<unknown>((value, [path, other]) => changed(value, path, other), payload),
  }))
}

function changed(value: unknown, [step, ...rest]: readonly number[], other: unknown): unknown {
  if (step === undefined) return other
  if (Array.isArray(value) && value.length > 0) {
    const at = step % value.length
    return value.with(at, changed(value[at], rest, other))
  }
  const names = isObject(value) ? Object.keys(value) : []
  const name = names[step % names.length]
  return isObject(value) && name !== undefined ? { ...value, [name]: changed(value[name], rest, other) } : other
}

for (const source of sources) {
  holds(`${source.name} refuses any payload, or makes a text of it`, payloadsOf(source), async ({ payload, headers }) => {
    const request = requestOf(payload, headers)
    source.keyOf?.(request)
    const reading = accepted(() => source.read(request))
    if (!reading || !isEvent(reading)) return
    const text = await render(source, reading.view, languages[0] ?? 'en-US')
    assert.doesNotMatch(text.replaceAll('\n', ''), /\p{Cc}|\p{Cs}|\u202e/u)
  })
}

describe('the readers of markup', () => {
  const readers = { fromMarkdown, fromRobotMarkdown, fromSlack, fromDiscord, withLinks, excerpt, inOneLine, withEmoji, decodeEntities }
  for (const [name, read] of Object.entries(readers)) holds(name, markup, text => assert.equal(typeof read(text), 'string'))
  for (const name of ['text', 'loose', 'html', 'markdown', 'telegram', 'markdownv2'] as const) {
    holds(name, markup, text => assert(!/[\u0001\u0002]/.test(readerOf(name)(text.replace(/[\u0001\u0002]/g, '')))))
  }

  holds('tidy changes nothing the second time', markup, text => {
    const once = tidy(text)
    assertSame(tidy(once), once)
  })
})

describe('fields of any kind', () => {
  holds('are a card', anything, value => assert.equal(typeof readCard(value), 'string'))
  holds('are lines', anything, value => assert(renderPlainly(object(value)).split('\n').length <= 21))
  holds('are links and tags', fc.dictionary(fc.constantFrom('actions', 'extras', 'reply_markup', 'url', 'click'), fc.oneof(anything, textsOf('view', ',', ';', '"', '\'', '=', '[{'))), fields => {
    for (const [, link] of linksOf(fields)) assert(link.includes('http'))
    wordsOf(fields.actions)
    severityOfWord(fields.url)
  })
})

describe('headers, forms and JSON', () => {
  const header = textsOf('=?utf-8?b?', '=?gbk?q?', '?=', '5L2g', '=E4', '_', ' ', '\x80', '; name="', '"', '\\"', '; filename*=utf-8\'\'', '%E4', ';', '=')

  holds('are decoded', header, text => {
    decodeHeader(text)
    fieldsOfHeaders({ title: text, tags: text, actions: text })
    parseParameters(text)
    const name = safeName(parseFileName(text) ?? '')
    assert.equal(safeName(name), name)
  })

  holds('have pairs', textsOf('&', '=', '%', '%E4%BD%A0', '+', 'a'), text => {
    const bytes = Buffer.from(text)
    unescapeBytes(bytes)
    for (const charset of ['utf-8', 'gbk', 'none']) parsePairs(bytes, charset)
  })

  holds('keep what is written', fc.dictionary(fc.string({ unit: 'grapheme', minLength: 1 }), fc.string({ unit: 'grapheme' })), pairs => {
    const read = parsePairs(Buffer.from(new URLSearchParams(pairs).toString()), 'utf-8')
    assertSame(Object.fromEntries(read ?? []), pairs)
  })

  holds('hold JSON', textsOf('{', '}', '[', ']', '"', ':', ',', '\\', '\\u12', '\n', '1', 'null', 'a', '\t'), text => {
    excessOfJson(Buffer.from(text))
    const isJson = parseJson(text) !== undefined
    if (!isJson) assert(faultOfJson(text, true).line > 0)
    else assertSame(parseJson(escapeControls(text)), parseJson(text))
  })

  holds('hold JSON with raw line breaks', fc.string({ unit: 'grapheme' }), text => {
    assert.equal(parseJson(escapeControls(`"${text.replace(/["\\]/g, '')}\n"`)), `${text.replace(/["\\]/g, '')}\n`)
  })
})

holds('a long text loses nothing in its parts', fc.tuple(markup, fc.integer({ min: 2, max: 200 })), ([text, most]) => {
  const parts = divideText(text, most)
  assert(parts.join('') === text && parts.every(part => part.length <= most))
})

describe('a template', () => {
  const templates = new Templates(temporaryFolder(), [])
  const source = textsOf(
    '{{', '}}', '{%', '%}', 'if', 'for x in list', 'endfor', 'endif', 'x', '|', 'time', 'lines: 2', 'join', ' ', '{% raw %}', '"', '(1..9)', '{% picture url %}',
    '{% severity level %}', '{% assign a = ', '{% capture b %}', '{% endcapture %}', '..', '[0]',
  )

  holds('of any text is refused or kept', source, async text => {
    await templates.put('own', text).catch((error: unknown) => accepted(() => {
      throw error
    }))
  })

  holds('of any text makes a text, or says why not', source, async text => {
    const view = { list: [1, 'a', null, [text]], x: text, url: 'https://a.example/a.png', level: 'critical' }
    const made = await templates.renderText(text, view, 'zh-CN').catch((error: unknown) => {
      assert(error instanceof Error && /^(?:Parse|Render|Undefined|Token|Assertion)\w*Error$/.test(error.name), String(error))
    })
    assert(made === undefined || made.text.length <= 1_000_000)
  })
})
