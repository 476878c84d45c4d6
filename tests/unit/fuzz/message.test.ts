import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe } from 'node:test'
import { parseMessage } from '../../../src/onebot-api/message'
import { parseTexts } from '../../../src/texts/text'
import { nameOfUrl, parseLink, writeLink } from '../../../src/message/link'
import { parseMentions } from '../../../src/message/mentions'
import type { ParsedItem } from '../../../src/message/model'
import { parseNames } from '../../../src/message/names'
import {
  ignoredFields, parseContent, parseReply, parseSelector, parseTo, parseWishes, readItems, writeItems,
} from '../../../src/message/parse'
import { readCodes, readMessage } from '../../../src/message/segments'
import { isName, parseDestinations, readAddress, readTarget, toName, writeAddress, writeTarget } from '../../../src/message/target'
import { parseDuration, parseTime } from '../../../src/lib/time'
import { encodeCq } from '../../../simulator/cqcode'
import { accepted, anything, assertSame, holds, objectsOf, textsOf } from './support'

const links = [
  'https://a.example/b.png?c#d', 'HTTP://a.example/../b', 'https://a.example/%2e%2E/..\\c', 'base64://aGk=', 'data:image/png;base64,aGk', 'data:;base64,-_',
  '01234567-89ab-cdef-0123-456789abcdef/a b.txt',
]
const ids = ['1', 1, 'all', '-100', '0', 'ou_1', 'a:b', 'x'.repeat(256)]
const chats = ['group:1', 'private:a', 'discord:group:3', 'onebot:20002:group:3', 'feishu:group:oc_1', 'ops', 'group:1,ops', ['ops', 'group:1'], '值班']
const types = ['text', 'image', 'file', 'video', 'audio', 'at', 'reply']
const own = {
  type: types, msg: ['hi', ' ', '\ud800'], url: links, name: ['a.txt', '../a', 'con'], user_id: ids, message_id: ids, line: ['x'], at: ids, reply_to: ids,
}
const wishes = {
  urgent: [true, false, '1'], send_at: [60, '90', '2026-11-20T17:00:00+08:00', '2026-02-30T00:00:00Z'], thread: ['x', 'x'.repeat(201)],
  thread_mode: ['reply', 'update', 'replace'], severity: ['critical', 'ok'], mention: ['all', ['a', 'none'], { critical: 'a，b' }], expires_in: [1, 0.5, 1e9],
}
const items = objectsOf(own)
const bodies = fc.tuple(
  objectsOf({ ...own, ...wishes, to: chats, group_id: ids, user_id: ids, platform: ['feishu', ''], self_id: ids, reply: ['pong'] }),
  fc.option(fc.array(fc.oneof({ weight: 4, arbitrary: items }, anything), { maxLength: 8 }), { nil: undefined }),
).map(([body, messages]) => messages ? { ...body, messages } : body)
const anyBody = fc.oneof({ weight: 5, arbitrary: bodies }, anything)
const named = { get: (name: string) => name === 'ops' ? { addresses: [{ target: { kind: 'group', id: '2' } as const }], isList: false } : undefined }

/** Items survive the file of the relay. */
function assertKept(parsed: readonly ParsedItem[]): void {
  assertSame(readItems(parseTexts(JSON.stringify(writeItems(parsed)))), parsed)
}

describe('any body of /webhook', () => {
  holds('is read, and its items are kept as they are', anyBody, body => {
    const content = accepted(() => parseContent(body))
    if (content) assertKept(content.items)
  })

  holds('has destinations that can be written', anyBody, body => {
    for (const { target } of accepted(() => parseTo(body, named))?.list ?? []) assertSame(readTarget(writeTarget(target)), target)
    accepted(() => parseSelector(body))
  })

  holds('has ignored fields that are safe in a line of the log', anyBody, body => {
    for (const name of ignoredFields(body)) assert(name.length <= 400 && !/\p{Cc}|\p{Cs}/u.test(name), name)
  })

  holds('has wishes, also as a form', objectsOf(wishes), fields => {
    for (const isForm of [true, false]) {
      const read = accepted(() => parseWishes(fields, isForm))
      assert(read?.sendAt === undefined || Number.isSafeInteger(read.sendAt.at))
    }
  })
})

holds('any answer of a command is read', bodies, body => {
  const reply = accepted(() => parseReply(body))
  if (reply) assertKept(reply.items)
})

holds('any stored items are read', anything, stored => readItems(stored))

describe('a link', () => {
  const written = fc.oneof(
    fc.constantFrom(...links), fc.webUrl({ withFragments: true, withQueryParameters: true, size: 'medium' }),
    textsOf('https://', 'a.example', '/', '\\', '.', '%2e', '%2F', '@', ':', '?', '#', 'data:', ';base64,', 'aGk=', 'xn--', '。', '..'),
  )

  holds('is refused, or is the same when it is read again', written, url => {
    const link = accepted(() => parseLink(url))
    if (!link) return
    assertSame(parseLink(writeLink(link)), link)
    if (link.kind === 'remote') assert.equal(new URL(link.url).host, new URL(url).host)
  })

  holds('has a name that is safe', written, url => assert.match(nameOfUrl(url), /^[^/\\\p{Cc}]{1,120}$/u))
})

describe('a target', () => {
  const words = textsOf('group:', 'private:', 'lark:', 'feishu:', 'onebot:20002:', '1', ':', ',', '值班', 'e\u0301', 'ﬀ', '*')

  holds('is the same when it is read again', words, word => {
    const address = readAddress(word)
    if (address) assertSame(readAddress(writeAddress(address)), address)
  })

  holds('is one of a list', words, to => accepted(() => parseDestinations(to, {}, named)))

  holds('has a name with one form', words, word => {
    const name = toName(word)
    if (isName(name)) assert(toName(name) === name && !readAddress(name) && !name.includes(','))
  })
})

describe('the names of the settings', () => {
  const rules = {
    to: chats, first: [['group:1', 'ops', { url: 'https://a' }], 'ops, group:2'], after: [1], when_unknown: ['next'], platform: ['feishu'], selfId: [1],
    lang: ['zh-CN'], digest: [60], quiet: [{ from: '22:00', to: '08:00', zone: 'Asia/Shanghai' }], mention: ['all'],
    ack: [{ escalate: [{ after: '5m', to: 'a' }, { after: 600, mention: 'all', again: '1h' }] }, { escalate: [{ after: 1, to: 'b' }] }],
  }
  const values = fc.oneof(objectsOf(rules), anything, fc.constantFrom(...chats))

  holds('are read, each or a warning', fc.dictionary(fc.constantFrom('a', 'b', 'ops', '值班', 'no name', '__proto__'), values), raw => {
    const { names, warnings } = parseNames(raw, () => true)
    assert.equal(names.size + warnings.length, Object.keys(raw).length)
  })

  holds('call people', anything, value => accepted(() => parseMentions(value)))
  holds('have times', anything, value => {
    const duration = parseDuration(value)
    assert(duration === undefined || Number.isSafeInteger(duration))
    if (typeof value === 'string') parseTime(value)
  })
})

describe('a message of OneBot', () => {
  const codes = textsOf('[CQ:', ']', ',', '=', 'at', 'qq=1', 'image', ',file=base64://aGk=', '&#91;', '&amp;', '&#44;', '[', 'text', ' ')
  const names = fc.stringMatching(/^[A-Za-z_][\w-]{0,10}$/)
  const value = textsOf('[', ']', ',', 'a=', '&', '&amp;', '&#44;', ';base64,')
  const segments = fc.array(fc.oneof(
    value.filter(text => text !== '').map(text => ({ type: 'text', data: { text } })),
    fc.record({ type: names.filter(type => type !== 'text'), data: fc.dictionary(names, value, { maxKeys: 4 }) }),
  ), { maxLength: 6 })

  holds('is the same with CQ codes', segments, all => {
    // Two texts in a row are one.
    const joined: typeof all = []
    for (const segment of all) {
      const last = joined.at(-1)
      if (last?.type === 'text' && segment.type === 'text') last.data = { text: `${last.data.text}${segment.data.text}` }
      else joined.push({ ...segment })
    }
    assertSame([...readCodes(encodeCq(all))], joined)
  })

  holds('may hold any codes', codes, text => {
    const read = [...readCodes(text)]
    assertSame(readMessage(text), read)
    // Whatever it is, it is the same once it is written.
    const items = accepted(() => parseMessage(text, false))
    if (items) assertKept(items)
  })

  holds('may have any segments', fc.oneof(fc.array(fc.oneof(objectsOf({
    type: [...types, 'record', 'face'], data: [{ text: 1 }, { qq: 'all' }, { id: 1 }, { file: 'base64://aGk=', name: 'a' }],
  }), anything)), anything), message => {
    readMessage(message)
    const items = accepted(() => parseMessage(message, false))
    if (items) assertKept(items)
  })
})
