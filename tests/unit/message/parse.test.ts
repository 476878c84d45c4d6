import assert from 'node:assert/strict'
import { posix, win32 } from 'node:path'
import { describe, test } from 'node:test'
import { RelayError } from '../../../src/errors'
import { parseContent, parseReply, parseTo } from '../../../src/message/parse'
import { Random } from '../../faults/random'

const upload = '0b0e0f5e-9c7b-4a53-9a44-0123456789ab/report.pdf'

function parseRequest(body: unknown) {
  const { list: [destination] } = parseTo(body)
  return { ...destination && { target: destination.target, bot: destination.bot }, ...parseContent(body) }
}

function isRefused(pattern: RegExp) {
  return (error: unknown) => error instanceof RelayError && error.status === 400 && pattern.test(error.message)
}

describe('a request', () => {
  test('is single without messages, and text without a type; null is absent in every field', () => {
    const request = parseRequest({ group_id: null, user_id: 42, type: null, msg: ' x ', url: null, messages: null, platform: null, self_id: null })
    assert.deepEqual(request, { mode: 'single', target: { kind: 'private', id: '42' }, bot: {}, items: [{ type: 'text', text: ' x ' }] })
    assert.deepEqual(parseRequest({ group_id: '1', msg: 'x', platform: 'discord', self_id: 10000 }).bot, { platform: 'discord', selfId: '10000' })
  })

  test('holds text that UTF-8 can, in which half of a surrogate pair is a replacement character', () => {
    const { items } = parseRequest({ group_id: '1', msg: 'a\ud800b\udc00 \u{1f600}' })
    assert.deepEqual(items, [{ type: 'text', text: 'a\ufffdb\ufffd \u{1f600}' }])
  })

  const wrong: [unknown, RegExp][] = [
    [null, /object/], [[], /object/], ['x', /object/],
    [{ msg: 'x' }, /group_id or user_id is required/], [{ group_id: '', user_id: '', msg: 'x' }, /required/],
    [{ group_id: '1', user_id: '2', msg: 'x' }, /not both/],
    [{ group_id: 1.5, msg: 'x' }, /group_id must be a string or a whole number/], [{ group_id: 2 ** 53, msg: 'x' }, /group_id/],
    [{ user_id: true, msg: 'x' }, /user_id/], [{ user_id: {}, msg: 'x' }, /user_id/], [{ group_id: ' ', msg: 'x' }, /group_id is not an ID/],
    [{ group_id: '1\n2', msg: 'x' }, /group_id is not an ID/], [{ group_id: '1'.repeat(256), msg: 'x' }, /group_id is not an ID/],
    ...['voice', 'constructor', '', 1].map((type): [unknown, RegExp] => [{ group_id: '1', type, msg: 'x' }, /type must be/]),
    [{ group_id: '1' }, /msg is required/], [{ group_id: '1', msg: 5 }, /msg must be a string/], [{ group_id: '1', msg: ' \n\t\u3000' }, /blank/],
    [{ group_id: '1', type: 'image' }, /url is required for type image/], [{ group_id: '1', type: 'file', url: '' }, /url is required/],
    [{ group_id: '1', type: 'video', url: ['http://a/'] }, /url must be a string/], [{ group_id: '1', messages: {} }, /messages must be an array/],
    [{ group_id: '1', msg: 'x', messages: false }, /messages must be an array/], [{ group_id: '1', messages: [] }, /empty/],
    [{ group_id: '1', msg: 'x', platform: 5 }, /platform/],
  ]
  /**
   * Fields as other programs have them: `message` for OneBot and `content` for Discord in server/notification-providers/onebot.js and
   * discord.js of louislam/uptime-kuma; `chat_id` and `text` for Telegram in status_ex/slash.sh of cyberomanov/status; `target` in
   * mirai-api-http.
   */
  const misnamed: [unknown, string][] = [
    ...['message', 'text', 'content', 'Msg'].map((name): [unknown, string] => (
      [{ group_id: '1', [name]: 'x', expires_in: 5 }, `msg is required for type text: found "${name}" instead`])),
    [{ group_id: '1', msg: '', text: 'x', kind: 'image' }, 'msg is required for type text: found "text", "kind" instead'],
    [{ group_id: '1', message: [{ type: 'text', data: { text: 'x' } }] }, 'msg is required for type text: found "message" instead'],
    ...['groupId', 'to_group', 'chat_id', 'target'].map((name): [unknown, string] => (
      [{ [name]: '1', msg: 'x' }, `to, group_id or user_id is required: found "${name}" instead`])),
    [{ groupId: '1', messages: [{ message: 'x' }] }, 'to, group_id or user_id is required: found "groupId" instead'],
    ...['image', 'file', 'link', 'photo', 'msg'].map((name): [unknown, string] => (
      [{ group_id: '1', type: 'image', [name]: 'https://example.com/a.png' }, `url is required for type image: found "${name}" instead`])),
    [{ group_id: '1', a: 1, b: 2, c: 3, d: null, e: '', f: 4, g: 5, h: 6 }, 'msg is required for type text: found "a", "b", "c", "f", "g" instead'],
    [{ 'group_id': '1', '\u202ea\n': 1 }, 'msg is required for type text: found "\ufffda\ufffd" instead'],
  ]
  test('is refused with the fields that it has in place of a missing one', () => {
    for (const [body, msg] of misnamed) assert.throws(() => parseRequest(body), { message: msg }, JSON.stringify(body))
    const { items } = parseRequest({ group_id: '1', messages: [{ text: 'x' }, { type: 'image', file: 'x' }, { type: 'at', qq: '1' }, { type: 'reply', id: 5 }] })
    assert.deepEqual(items.map(item => item instanceof RelayError && item.message), [
      'msg is required for type text: found "text" instead', 'url is required for type image: found "file" instead',
      'user_id is required for type at: found "qq" instead', 'message_id is required for type reply: found "id" instead',
    ])
    const reply = parseReply({ messages: [{ type: 'text', data: { text: 'x' } }] })
    assert.deepEqual(reply?.items.map(item => item instanceof RelayError && item.message), ['msg is required for type text: found "data" instead'])
  })

  test('is refused where it is malformed', () => {
    for (const [body, pattern] of wrong) assert.throws(() => parseRequest(body), isRefused(pattern), JSON.stringify(body))
  })

  test('is a batch with messages, and what is wrong with one item stays with it', () => {
    const request = parseRequest({ user_id: '2', messages: [{ msg: 'a' }, 'b', null, { type: 'image' }, { type: 'file', url: upload }] })
    assert.equal(request.mode, 'batch')
    const seen = request.items.map(item => item instanceof RelayError ? { wrong: item.message } : item)
    assert.deepEqual(seen, [
      { type: 'text', text: 'a' },
      { wrong: 'an item of messages must be an object' },
      { wrong: 'an item of messages must be an object' },
      { wrong: 'url is required for type image' },
      { type: 'file', link: { kind: 'upload', id: upload } },
    ])
  })
})

describe('a link', () => {
  function read(url: string) {
    const request = parseRequest({ group_id: '1', type: 'image', url })
    const [item] = request.items
    assert(item && !(item instanceof RelayError) && item.type === 'image')
    return item.link
  }

  test('is passed on as given when it is http', () => {
    const links = [
      'http://h/a%20b', 'https://User@Host:1/%e4?q=%2F#f', 'https://例子.测试/图.png', 'http://h', 'http://h?a=..', 'http://h/a..b/...?x=../y',
      'http://h//a//b', 'http://h\\a\\b', 'http://h/%252e%252e/a', 'http://h/.a/b.?c=./d#/./e', 'http://h/%', 'http://h/.%2/%2',
    ]
    for (const url of links) assert.deepEqual(read(url), { kind: 'remote', url })
  })

  test('gets its scheme in lower case, and the dot segments of its path resolved', () => {
    const links = [
      ['HTTPS://Host/A', 'https://Host/A'],
      ['http://x/../../../../etc/passwd', 'http://x/etc/passwd'],
      ['http://x/a/./b/../c', 'http://x/a/c'],
      ['http://x/a/..', 'http://x/'],
      ['http://x/a/.', 'http://x/a/'],
      ['http://x/%2e%2E/.%2e/%2e./etc', 'http://x/etc'],
      ['http://x\\..\\..\\etc', 'http://x\\etc'],
      ['http://x/a//../b?c#d', 'http://x/a/b?c#d'],
      ['http://x/a/../b%2Fc/?d=e/f#g', 'http://x/b%2Fc/?d=e/f#g'],
    ]
    for (const [given, url] of links) assert.deepEqual(read(given ?? ''), { kind: 'remote', url })
  })

  test('never climbs when it is taken for a path, and stays the same link', () => {
    const pieces = [
      '/', '/', '\\', '..', '..', '.', '%2e', '%2E', '%2f', '%5C', '%25', '%', '?', '#', '@', ':', 'a', 'etc', '.%2e', '\uff0e', '%3f', '%23', '%00', '//',
    ]
    const random = new Random(20261121)
    let accepted = 0
    for (let round = 0; round < 30_000; round++) {
      const rest = Array.from({ length: random.between(0, 13) }, () => random.pick(pieces)).join('')
      const given = `${random.pick(['http', 'HTTPS'])}://${random.chance(0.75) ? 'h' : ''}${rest}`
      let url: string
      try {
        const link = read(given)
        assert(link.kind === 'remote')
        url = link.url
      } catch (error) {
        assert(isRefused(/url/)(error), given)
        continue
      }
      accepted++
      assert.equal(new URL(url).href, new URL(given).href)
      const decoded = url.replace(/%([0-7][0-9a-f])/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
      for (const text of [url, decoded]) {
        for (const path of [posix, win32]) {
          // What could be the name of a drive is put behind `.\` on Windows.
          const [scheme, ...segments] = path.normalize(text).replace(/^\.\\/, '').split(/[/\\]/)
          assert.match(scheme ?? '', /^https?:$/, `${given} -> ${url}`)
          assert(!segments.includes('..'), `${given} -> ${url}`)
          // The folder of the host is not left, whatever follows it.
          const host = text.split(/[/\\]/)[2] ?? ''
          assert(host === '' || host === '.' || segments[0] === host, `${given} -> ${url}`)
        }
      }
    }
    assert(accepted > 5_000)
  })

  test('is refused where it would still climb', () => {
    const links = [
      'http://../etc/passwd', 'http://%2e%2e/etc', 'http://a..b/', 'http://\uff0e\uff0e/etc', 'http://u@../etc', 'http://x/a?b=/../../../etc', 'http://x/a?/..',
      'http://x/a#/..', 'http://x/a?b/..#c', 'http://x/a#\\..\\etc', 'http://x/a?b=%2f%2e%2E%2Fetc', 'http://x/..%2f..%2fetc', 'http://x/a%5c..%5cb',
    ]
    for (const url of links) assert.throws(() => read(url), isRefused(/url/), url)
  })

  test('may have 8,192 bytes', () => {
    for (const [character, bytes] of [['x', 1], ['好', 3]] as const) {
      const fitting = `http://h/${'x'.repeat((8192 - 9) % bytes)}${character.repeat(Math.floor((8192 - 9) / bytes))}`
      assert.deepEqual(read(fitting), { kind: 'remote', url: fitting })
      assert.throws(() => read(`${fitting}x`), isRefused(/url must have at most 8192 bytes/))
    }
    assert.throws(() => read(`${upload}${'x'.repeat(8192)}`), isRefused(/8192 bytes/))
    const base64 = 'A'.repeat(10_000)
    assert.deepEqual(read(`data:text/plain;base64,${base64}`), { kind: 'data', base64, mediaType: 'text/plain' })
  })

  test('may have a host of 253 bytes, with parts of 63 characters, whatever stands around it', () => {
    const label = 'x'.repeat(63)
    const longest = [label, label, label, 'x'.repeat(61)].join('.')
    const escaped = encodeURIComponent('例'.repeat(20))
    const han = '例'.repeat(20)
    for (const host of [longest, `${'p'.repeat(2000)}:@${longest}:${'0'.repeat(300)}80`, [han, han, han, han, han].join('.'), `${escaped}.com`, '[::1]:80', `${label}。${label}`]) {
      const url = `http://${host}/`
      assert.deepEqual(read(url), { kind: 'remote', url })
    }
    const long = [
      `${longest}x`, `${label}x.com`, `u@${longest}x`, Array<string>(14).fill(han).join('.'), encodeURIComponent('例'.repeat(90)), '\u3316'.repeat(20),
      'é'.repeat(64), `${encodeURIComponent('é'.repeat(32))}${'é'.repeat(32)}`,
    ]
    for (const host of long) assert.throws(() => read(`http://${host}/`), isRefused(/host .* 253 bytes, and 63 characters/), host)
  })

  test('holds no half of a surrogate pair', () => {
    for (const url of ['http://h/\ud800', 'http://h/?\udc00x']) assert.throws(() => read(url), isRefused(/url/))
    assert.deepEqual(read('http://h/\u{1f600}'), { kind: 'remote', url: 'http://h/\u{1f600}' })
  })

  test('is a file ID, or holds data as base64, whatever the alphabet', () => {
    assert.deepEqual(read(upload), { kind: 'upload', id: upload })
    assert.deepEqual(read('base64://aGk='), { kind: 'data', base64: 'aGk=' })
    assert.deepEqual(read('BASE64://-_8'), { kind: 'data', base64: '+/8=' })
    assert.deepEqual(read('DATA:IMAGE/PNG;BASE64,aGk'), { kind: 'data', base64: 'aGk', mediaType: 'IMAGE/PNG' })
    assert.deepEqual(read('data:image/png;base64,aGk='), { kind: 'data', base64: 'aGk=', mediaType: 'image/png' })
    assert.deepEqual(read('data:;base64,aGk='), { kind: 'data', base64: 'aGk=' })
  })

  const folder = upload.slice(0, 36)
  const hostile = [
    'file:///etc/passwd', 'FILE:///etc/passwd', '/etc/passwd', '../secret', 'C:\\Windows\\win.ini', '\\\\host\\share\\x', '//host/share/x',
    'report.pdf', './report.pdf', `${folder}/../${folder}/report.pdf`, `${folder}/..`, `${folder}/.`, `${folder}/%2e%2e%2fx`, `${folder}/a\\b`,
    `${folder}/`, folder, `/${upload}`, `${folder}/a/b`, `${folder}/a\u0000b`, `${folder.toUpperCase()}/a`, `x${upload}`,
    'ftp://host/x', 'javascript:alert(1)', 'data:text/html,<b>', 'data:image/png;base64,***', 'base64://', 'base64://a b', 'base64://aGk=aGk=',
    'http://', 'http:///x', 'https://a b/', 'http://host/a\nb', ' http://host/', 'http:host', 'internal:x', '[CQ:image,file=x]', 'undefined',
  ]
  test('is refused where it leads to a file of this machine, or nowhere', () => {
    for (const url of hostile) assert.throws(() => read(url), isRefused(/url/), JSON.stringify(url))
    assert.throws(() => read('https://host/build log.png'), isRefused(/%20/))
  })
})

describe('the answer of a callback', () => {
  test('replies with messages, or else with reply, or not at all', () => {
    assert.deepEqual(parseReply({ reply: 'a\udc00' }), { items: [{ type: 'text', text: 'a\ufffd' }] })
    assert.deepEqual(parseReply({ reply: 'a', messages: [] }), { items: [{ type: 'text', text: 'a' }] })
    for (const reply of ['a', 42, false, []]) {
      assert.deepEqual(parseReply({ reply, messages: [{ msg: 'b' }] }), { items: [{ type: 'text', text: 'b' }] })
    }
    for (const body of [{}, { reply: null }, { reply: '' }, { reply: ' ' }, { messages: [] }, { messages: null, reply: null }, { group_id: '1' }]) {
      assert.equal(parseReply(body), undefined)
    }
  })

  test('redirects the reply, to the group first', () => {
    assert.deepEqual(parseReply({ reply: 'a', group_id: 1, user_id: '2' })?.target, { kind: 'group', id: '1' })
    assert.deepEqual(parseReply({ reply: 'a', group_id: '', user_id: '2' })?.target, { kind: 'private', id: '2' })
  })

  test('is refused with a malformed target, reply or messages', () => {
    for (const body of [{ reply: 'a', group_id: 1.5 }, { reply: 'a', user_id: [] }, { reply: 5 }, { reply: 'a', messages: 'b' }, { messages: Array(1001).fill({ msg: 'a' }) }]) {
      assert.throws(() => parseReply(body), isRefused(/./))
    }
  })
})
