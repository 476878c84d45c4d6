import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RelayError } from '../../../src/errors'
import { MediaLinks } from '../../../src/http/files'
import { charsetOf, decodeText, kindOfName, kindOfType, mediaTypeOf, nameFor } from '../../../src/http/media-type'
import { readyRoute } from '../../../src/http/monitoring'
import { parseHandling, type Handling } from '../../../src/http/preferences'
import { words } from '../../../src/texts/text'

const id = '0b1f7d6e-1d3c-4b52-8f3c-0a2b4c6d8e0f/a b.png'
const hour = 60 * 60 * 1000
const links = new MediaLinks(() => 'http://host/relay', 'secret')
const queryOf = (link: string) => new URL(link).searchParams
/** The query of a link to that file that was made at the beginning of time, and expires after an hour. */
const query = queryOf(links.to({ id }, 0))

function changed(name: string, value: string): URLSearchParams {
  const other = new URLSearchParams(query)
  other.set(name, value)
  return other
}

describe('signed links', () => {
  test('lead to the file below the address of the plugin, for an hour', () => {
    const { origin, pathname } = new URL(links.to({ id }))
    assert.equal(origin + pathname, `http://host/relay/media/${id.replace(' ', '%20')}`)
    assert.match(query.get('signature') ?? '', /^[\w-]{43}$/)
    assert.equal(query.get('expires'), String(hour))
    assert.ok(links.isValid(id, query, hour - 1))
    assert.ok(!links.isValid(id, query, hour))
  })

  test('hold for one file, one end and one secret', () => {
    assert.ok(!links.isValid(`${id}x`, query, 0))
    assert.ok(!links.isValid(id, changed('expires', String(hour + 1)), 0))
    assert.ok(!new MediaLinks(() => '', 'another').isValid(id, query, 0))
    // The digit is at the end of the time in the one, and at the beginning of the name in the other.
    const signature = queryOf(links.to({ id: 'b' }, 1)).get('signature') ?? ''
    assert.ok(!links.isValid('1b', new URLSearchParams({ expires: String(hour / 10), signature }), 0))
  })

  test('are not valid with any other text as signature or time', () => {
    const signature = query.get('signature') ?? ''
    const other = (signature.startsWith('A') ? 'B' : 'A') + signature.slice(1)
    for (const text of ['', 'é', other, `${signature}=`, ` ${signature}`, signature.slice(1), signature.repeat(100)]) {
      assert.ok(!links.isValid(id, changed('signature', text), 0), text)
    }
    for (const end of ['', 'NaN', 'Infinity', '-1', 'x']) assert.ok(!links.isValid(id, changed('expires', end), 0), end)
    assert.ok(!links.isValid(id, queryOf(links.to({ id }, NaN)), 0))
    assert.ok(!links.isValid(id, new URLSearchParams(), 0))
  })
})

describe('a Content-Type', () => {
  test('is read without its parameters and whatever its case', () => {
    const cases = [['', ''], ['Text/HTML; charset=utf-8', 'text/html'], [' image/png ;x', 'image/png'], ['nonsense', 'nonsense'], [';', '']]
    assert.deepEqual(cases.map(([header = '']) => mediaTypeOf(header)), cases.map(([, type]) => type))
  })

  test('says what bytes are, unless it says nothing of them', () => {
    const cases = [
      ['image/png', 'image'], ['IMAGE/JPEG; q=1', 'image'], ['video/mp4', 'video'], ['audio/mpeg', 'file'], ['text/plain', 'file'],
      ['image/svg+xml', 'file'], ['image/heic', 'file'], ['image/jpg', 'image'],
      ['imaginary/png', 'file'], ['image', 'file'], ['application/octet-stream', undefined], ['', undefined],
    ] as const
    assert.deepEqual(cases.map(([header]) => kindOfType(header)), cases.map(([, kind]) => kind))
  })

  test('names a charset, or it is UTF-8', () => {
    const cases = [['', 'utf-8'], ['text/plain', 'utf-8'], ['text/plain; charset=GBK', 'gbk'], ['a/b; x=y; Charset="Big5"', 'big5'], ['a/b; charset=', 'utf-8']]
    assert.deepEqual(cases.map(([header = '']) => charsetOf(header)), cases.map(([, charset]) => charset))
  })
})

describe('a file name', () => {
  test('says by its extension what the file is', () => {
    const cases = [
      ['a.png', 'image'], ['a.JPeG', 'image'], ['a.tar.webp', 'image'], ['a.mp4', 'video'], ['a.mov', 'video'], ['a.log', 'file'], ['png', 'file'],
      ['.png', 'file'], ['a.', 'file'], ['', 'file'], ['a.png/b', 'file'], ['a.constructor', 'file'], ['a.svg', 'file'],
      ['a.ts', 'file'], ['a.m4v', 'video'],
    ]
    assert.deepEqual(cases.map(([name = '']) => kindOfName(name)), cases.map(([, kind]) => kind))
  })

  test('is made of the kind and the type where there is none', () => {
    for (const [kind, type, name] of [
      ['image', 'image/jpeg', 'image.jpg'], ['file', 'Application/PDF; x=y', 'file.pdf'], ['file', 'application/x-made-up', 'file'],
      ['video', '', 'video'], ['file', 'constructor', 'file'], ['file', 'application/octet-stream', 'file'], ['video', 'video/quicktime', 'video.mov'],
      ['file', 'audio/mpeg', 'file.mp3'], ['file', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'file.docx'],
    ] as const) assert.equal(nameFor(kind, type), name)
  })
})

describe('the bytes of a text', () => {
  test('are read in its charset', () => {
    assert.equal(decodeText(Buffer.from('构建 🙂'), ''), '构建 🙂')
    for (const [bytes, charset, text] of [
      ['', '', ''], ['efbbbf61', 'utf8', 'a'], ['b9b9bda8', 'gb2312', '构建'], ['a4a4', 'big5', '中'], ['e9', 'ISO-8859-1', 'é'],
      // Which of its two orders UTF-16 has, its mark says (RFC 2781, section 4.3).
      ['fffe8467', 'utf-16', '构'], ['feff6784', 'UTF-16', '构'], ['6784', 'utf-16be', '构'],
    ] as const) assert.equal(decodeText(Buffer.from(bytes, 'hex'), `text/plain; charset=${charset}`), text, charset)
  })

  test('are refused where they are none in its charset, and so is a charset that is not known', () => {
    const cases: [bytes: string, type: string, msg: RegExp][] = [
      ['ff', '', /^the text is not utf-8: /], ['e69e61', '', /^the text is not utf-8: /], ['eda080', '', /^the text is not utf-8: /],
      ['81', 'text/plain; charset=gbk', /^the text is not gbk: /], ['61', 'text/plain; charset=utf-16', /^the text is not utf-16le: /],
      ['61', 'text/plain; charset=utf-7', /^unknown charset/], ['61', 'text/plain; charset="a b"', /^unknown charset/],
    ]
    for (const [bytes, type, msg] of cases) {
      assert.throws(() => decodeText(Buffer.from(bytes, 'hex'), type), (error: unknown) =>
        error instanceof RelayError && error.code === 'bad-request' && msg.test(error.message), type)
    }
  })
})

/** What a header says, beside an empty query. */
function parse(prefer: string): Partial<Handling> {
  const { isStrict, deferred } = parseHandling({ prefer }, new URLSearchParams())
  return { isStrict, ...deferred && { deferred } }
}

const now = { isStrict: false, deferred: { wait: 0 } }
const strict = { isStrict: true }
const neither = { isStrict: false }

describe('the header Prefer', () => {
  const cases: [header: string, handling: object][] = [
    ['respond-async', now], ['Respond-Async', now], [' respond-async ; x=1', now], ['respond-async=', now], ['respond-async = ""', now],
    ['respond-async, wait=2', { isStrict: false, deferred: { wait: 2000 } }],
    ['respond-async,wait = "2" ;x', { isStrict: false, deferred: { wait: 2000 } }],
    ['respond-async, wait= 2 ;x', { isStrict: false, deferred: { wait: 2000 } }],
    ['respond-async, wait= , wait=2', now], ['respond-async, wait=2 3', now],
    ['handling=strict', strict], ['handling = "Strict"', strict], ['x="a, b", handling=strict', strict], ['handling=strict" ', neither],
    ['handling=lenient, handling=strict', neither], ['x="handling=strict', neither], ['', neither], [',;=', neither],
  ]
  for (const [header, handling] of cases) test(`is read: ${header}`, () => assert.deepEqual(parse(header), handling))

  test('is read in one go, whatever stands there', () => {
    const blanks = ' '.repeat(60_000)
    const start = performance.now()
    for (const header of [`a=${blanks}"`, `a${blanks}"`, `${blanks}"`, `a="${blanks}`, `a=""${blanks}"`, `a=b${blanks}"`]) {
      assert.deepEqual(parse(header), neither)
    }
    assert(performance.now() - start < 1_000)
  })
})

test('the relay is ready while it can keep and send a message, and says why not otherwise', () => {
  for (const [failure, standsBehind, isOnline, told] of [
    [undefined, undefined, true, ''], [undefined, undefined, false, 'no bot is online'],
    [new RelayError('store-down', words('the file is damaged')), undefined, true, 'the file is damaged'],
    [new RelayError('standby'), words('process 7'), true, 'this relay stands by, because another process uses its data folder'],
  ] as const) {
    const { handle } = readyRoute({ failure, standsBehind }, () => isOnline)
    const ask = (): unknown => Reflect.apply(handle, undefined, [])
    if (told === '') assert.deepEqual(ask(), { data: { ready: true } })
    else assert.throws(ask, { code: 'unsent', message: `not ready: ${told}` })
  }
})
