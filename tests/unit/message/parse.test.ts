import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RelayError } from '../../../src/errors'
import { parseReply, parseRequest } from '../../../src/message/parse'

const upload = '0b0e0f5e-9c7b-4a53-9a44-0123456789ab/report.pdf'

function isRefused(pattern: RegExp) {
  return (error: unknown) => error instanceof RelayError && error.status === 400 && pattern.test(error.message)
}

describe('a request', () => {
  test('is single without messages, and text without a type', () => {
    assert.deepEqual(parseRequest({ group_id: '1', msg: ' hi ' }), {
      mode: 'single', target: { kind: 'group', id: '1' }, bot: {}, items: [{ type: 'text', text: ' hi ' }],
    })
  })

  test('takes null for absent in every field', () => {
    const request = parseRequest({
      group_id: null, user_id: 42, type: null, msg: 'x', url: null, messages: null, platform: null, self_id: null,
    })
    assert.deepEqual(request, { mode: 'single', target: { kind: 'private', id: '42' }, bot: {}, items: [{ type: 'text', text: 'x' }] })
  })

  test('names the bot', () => {
    const { bot } = parseRequest({ group_id: '1', msg: 'x', platform: 'discord', self_id: 10000 })
    assert.deepEqual(bot, { platform: 'discord', selfId: '10000' })
  })

  const wrong: [string, unknown, RegExp][] = [
    ['null', null, /object/],
    ['an array', [], /object/],
    ['a text', 'x', /object/],
    ['no target', { msg: 'x' }, /group_id or user_id is required/],
    ['an empty target', { group_id: '', user_id: '', msg: 'x' }, /required/],
    ['both targets', { group_id: '1', user_id: '2', msg: 'x' }, /not both/],
    ['a fractional ID', { group_id: 1.5, msg: 'x' }, /group_id must be a string or a whole number/],
    ['an inexact ID', { group_id: 2 ** 53, msg: 'x' }, /group_id/],
    ['a boolean ID', { user_id: true, msg: 'x' }, /user_id/],
    ['an object for an ID', { user_id: {}, msg: 'x' }, /user_id/],
    ['a blank ID', { group_id: ' ', msg: 'x' }, /group_id is not an ID/],
    ['an ID with a line break', { group_id: '1\n2', msg: 'x' }, /group_id is not an ID/],
    ['a huge ID', { group_id: '1'.repeat(256), msg: 'x' }, /group_id is not an ID/],
    ['an unknown type', { group_id: '1', type: 'audio', msg: 'x' }, /type must be/],
    ['a type that objects inherit', { group_id: '1', type: 'constructor', msg: 'x' }, /type must be/],
    ['an empty type', { group_id: '1', type: '', msg: 'x' }, /type must be/],
    ['a number for a type', { group_id: '1', type: 1, msg: 'x' }, /type must be/],
    ['no msg', { group_id: '1' }, /msg is required/],
    ['a number for msg', { group_id: '1', msg: 5 }, /msg must be a string/],
    ['a blank msg', { group_id: '1', msg: ' \n\t\u3000' }, /blank/],
    ['no url', { group_id: '1', type: 'image' }, /url is required for type image/],
    ['an empty url', { group_id: '1', type: 'file', url: '' }, /url is required/],
    ['an array for url', { group_id: '1', type: 'video', url: ['http://a/'] }, /url must be a string/],
    ['messages that are no array', { group_id: '1', messages: {} }, /messages must be an array/],
    ['false for messages', { group_id: '1', msg: 'x', messages: false }, /messages must be an array/],
    ['no messages', { group_id: '1', messages: [] }, /empty/],
    ['a platform that is no text', { group_id: '1', msg: 'x', platform: 5 }, /platform/],
  ]
  for (const [what, body, pattern] of wrong) {
    test(`is refused with ${what}`, () => {
      assert.throws(() => parseRequest(body), isRefused(pattern))
    })
  }

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

  test('is passed on byte for byte when it is http', () => {
    for (const url of ['http://h/a b'.replace(' ', '%20'), 'HTTPS://User@Host:1/%e4?q=%2F#f', 'https://例子.测试/图.png']) {
      assert.deepEqual(read(url), { kind: 'remote', url })
    }
  })

  test('holds data as base64, whatever the alphabet', () => {
    assert.deepEqual(read('base64://aGk='), { kind: 'data', base64: 'aGk=' })
    assert.deepEqual(read('base64://-_8'), { kind: 'data', base64: '+/8' })
    assert.deepEqual(read('data:image/png;base64,aGk='), { kind: 'data', base64: 'aGk=', mediaType: 'image/png' })
    assert.deepEqual(read('data:;base64,aGk='), { kind: 'data', base64: 'aGk=' })
  })

  test('is a file ID', () => {
    assert.deepEqual(read(upload), { kind: 'upload', id: upload })
  })

  const folder = upload.slice(0, 36)
  const hostile = [
    'file:///etc/passwd', 'FILE:///etc/passwd', '/etc/passwd', '../secret', 'C:\\Windows\\win.ini', '\\\\host\\share\\x', '//host/share/x',
    'report.pdf', './report.pdf', `${folder}/../${folder}/report.pdf`, `${folder}/..`, `${folder}/.`, `${folder}/%2e%2e%2fx`, `${folder}/a\\b`,
    `${folder}/`, folder, `/${upload}`, `${folder}/a/b`, `${folder}/a\u0000b`, `${folder.toUpperCase()}/a`, `x${upload}`,
    'ftp://host/x', 'javascript:alert(1)', 'data:text/html,<b>', 'data:image/png;base64,***', 'base64://', 'base64://a b', 'base64://aGk=aGk=',
    'http://', 'http:///x', 'https://a b/', 'http://host/a\nb', ' http://host/', 'http:host', 'internal:x', '[CQ:image,file=x]', 'undefined',
  ]
  for (const url of hostile) {
    test(`is refused: ${JSON.stringify(url)}`, () => {
      assert.throws(() => read(url), isRefused(/url/))
    })
  }
})

describe('the answer of a callback', () => {
  test('replies with text', () => {
    assert.deepEqual(parseReply({ reply: 'pong' }), { items: [{ type: 'text', text: 'pong' }] })
  })

  test('prefers messages to reply', () => {
    assert.deepEqual(parseReply({ reply: 'a', messages: [{ msg: 'b' }] }), { items: [{ type: 'text', text: 'b' }] })
  })

  test('means no reply when it holds nothing to send', () => {
    for (const body of [{}, { reply: null }, { reply: '' }, { reply: ' ' }, { messages: [] }, { messages: null, reply: null }, { group_id: '1' }]) {
      assert.equal(parseReply(body), undefined)
    }
  })

  test('falls back to reply when messages are empty', () => {
    assert.deepEqual(parseReply({ reply: 'a', messages: [] }), { items: [{ type: 'text', text: 'a' }] })
  })

  test('redirects the reply, to the group first', () => {
    assert.deepEqual(parseReply({ reply: 'a', group_id: 1, user_id: '2' })?.target, { kind: 'group', id: '1' })
    assert.deepEqual(parseReply({ reply: 'a', group_id: '', user_id: '2' })?.target, { kind: 'private', id: '2' })
  })

  test('is refused with a malformed target, reply or messages', () => {
    for (const body of [{ reply: 'a', group_id: 1.5 }, { reply: 'a', user_id: [] }, { reply: 5 }, { reply: 'a', messages: 'b' }]) {
      assert.throws(() => parseReply(body), isRefused(/./))
    }
  })
})
