import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { contentOfItems, sealContent, type Content } from '../../../../src/platform/onebot/content'
import { OwnMessages, type OwnMessage } from '../../../../src/platform/onebot/own-messages'
import type { KnownSends } from '../../../../src/platform/port'
import { file, text } from '../../../support/items'

const a = contentOfItems([text('a')])
const b = contentOfItems([text('b')])
const log = contentOfItems([file('a.log', 'bytes')])
const now = 1_700_000_000_000

function message(id: string, time: number, content = a): OwnMessage {
  return { id, time, content }
}

/** What is known besides; nothing unless given. */
function sends(known: Partial<KnownSends> = {}): KnownSends {
  return { since: Infinity, messageIds: new Set(), unnamed: [], ...known }
}

/** The ID of the message that is taken for one that left then, from this history or what was reported; `unclear` as `take` has it. */
function takeFrom(
  own: OwnMessages, chat: string, history: readonly OwnMessage[], content: Content, since: number, at: number, known = sends(),
): string | undefined {
  const taken = own.take(chat, { content, since }, history, known, at)
  return typeof taken === 'object' ? taken.id : taken
}

/** The same without a history. */
function takeSeen(own: OwnMessages, chat: string, content: Content, since: number, at: number): string | undefined {
  return takeFrom(own, chat, [], content, since, at)
}

test('finds the oldest message with the content that nobody knows, each once', () => {
  const own = new OwnMessages(now - 3_600_000)
  const history = [message('4', now + 2_000), message('1', now, b), message('3', now + 1_000), message('2', now)]
  own.note('chat', ['2'], now)
  assert.equal(takeFrom(own, 'chat', history, a, now, now), '3')
  assert.equal(takeFrom(own, 'chat', history, a, now, now), '4')
  assert.equal(takeFrom(own, 'chat', history, a, now, now), undefined)
  assert.equal(takeFrom(own, 'chat', history, b, now, now), '1')
})

test('bears with a platform whose clock is 10 s behind, and no more', () => {
  const own = new OwnMessages(now - 3_600_000)
  assert.equal(takeFrom(own, 'chat', [message('1', now - 10_001)], a, now, now), undefined)
  assert.equal(takeFrom(own, 'chat', [message('1', now - 10_000)], a, now, now), '1')
})

test('takes what was reported by its arrival, exactly', () => {
  const own = new OwnMessages(now - 3_600_000)
  own.see('chat', message('1', now - 1))
  assert.equal(takeSeen(own, 'chat', a, now, now), undefined)
  own.see('chat', message('2', now))
  own.see('chat', message('2', now))
  assert.equal(takeSeen(own, 'chat', a, now, now), '2')
  assert.equal(takeSeen(own, 'chat', a, now, now), undefined)
  assert.equal(takeFrom(own, 'chat', [message('2', now)], a, now, now), undefined, 'the history has it under the same ID')
})

test('does not find a reported message again whose answer came before or after', () => {
  const own = new OwnMessages(now - 3_600_000)
  own.note('chat', ['1'], now)
  own.see('chat', message('1', now))
  own.see('chat', message('2', now))
  own.note('chat', ['2'], now)
  assert.equal(takeSeen(own, 'chat', a, now, now), undefined)
})

test('keeps chats apart', () => {
  const own = new OwnMessages(now - 3_600_000)
  own.note('one', ['1'], now)
  own.see('one', message('2', now))
  assert.equal(takeSeen(own, 'two', a, now, now), undefined)
  assert.equal(takeFrom(own, 'two', [message('1', now)], a, now, now), '1')
})

test('leaves an upload that was answered without an ID its message', () => {
  const own = new OwnMessages(now - 3_600_000)
  own.noteUnnamed('chat', { content: sealContent(log), since: now - 900, until: now })
  const first = message('1', now - 500, log)
  assert.equal(takeFrom(own, 'chat', [first], log, now + 1, now), undefined)
  assert.equal(takeFrom(own, 'chat', [first, message('2', now + 1_000, log)], log, now + 1, now), '2')
})

test('leaves it its message when both are there at once, in reports as well', () => {
  const own = new OwnMessages(now - 3_600_000)
  own.see('chat', message('1', now, log))
  own.noteUnnamed('chat', { content: sealContent(log), since: now - 100, until: now })
  own.see('chat', message('2', now + 100, log))
  assert.equal(takeSeen(own, 'chat', log, now + 1, now), '2')
  assert.equal(takeFrom(own, 'chat', [message('1', now, log), message('2', now, log)], log, now + 1, now), undefined)
})

test('does not waste an answer without an ID on an older message that the history shows first', () => {
  const own = new OwnMessages(now - 3_600_000)
  const older = message('0', now - 60_000, log)
  own.noteUnnamed('chat', { content: sealContent(log), since: now - 900, until: now })
  assert.equal(takeFrom(own, 'chat', [older], log, now + 1, now), undefined)
  assert.equal(takeFrom(own, 'chat', [older, message('1', now, log)], log, now + 1, now), undefined)
})

test('takes one message only for an upload that was found before its answer came', () => {
  const own = new OwnMessages(now - 3_600_000)
  const first = message('1', now, log)
  assert.equal(takeFrom(own, 'chat', [first], log, now, now + 3_000), '1')
  own.noteUnnamed('chat', { content: sealContent(log), since: now, until: now + 4_000 })
  const second = message('2', now + 5_000, log)
  assert.equal(takeFrom(own, 'chat', [first, second], log, now + 5_000, now + 8_000), '2')
  // This one was answered in time; what was found before does not speak for it.
  own.noteUnnamed('chat', { content: sealContent(log), since: now + 9_000, until: now + 9_500 })
  assert.equal(takeFrom(own, 'chat', [first, second, message('3', now + 9_000, log)], log, now + 9_600, now + 9_700), undefined)
})

test('takes one message for each attempt of an upload when all their answers come late', () => {
  const own = new OwnMessages(now - 3_600_000)
  const history = [message('1', now, log), message('2', now + 2_000, log)]
  assert.equal(takeFrom(own, 'chat', history, log, now, now + 3_000), '1')
  own.noteUnnamed('chat', { content: sealContent(log), since: now, until: now + 4_000 })
  own.noteUnnamed('chat', { content: sealContent(log), since: now + 2_000, until: now + 4_000 })
  assert.equal(takeFrom(own, 'chat', history, log, now + 5_000, now + 6_000), undefined)
})

test('keeps what was reported while others become known or are reported again', () => {
  const own = new OwnMessages(now - 3_600_000)
  own.see('chat', message('ours', now, b))
  for (let n = 0; n < 200; n++) {
    own.see('chat', message(`before ${n}`, now))
    own.note('chat', [`before ${n}`, `after ${n}`], now)
    own.see('chat', message(`after ${n}`, now))
    own.see('chat', message('other', now))
  }
  assert.equal(takeFrom(own, 'chat', [], b, now, now, sends({ since: 0 })), 'ours')
})

test('bounds what is reported and asked for by nobody', () => {
  const own = new OwnMessages(now - 3_600_000)
  for (let n = 0; n < 200; n++) own.see('chat', message(String(n), now + n))
  assert.equal(takeSeen(own, 'chat', a, now, now), '136')
})

test('remembers the last 128 IDs of a chat', () => {
  const own = new OwnMessages(now - 3_600_000)
  const history = Array.from({ length: 160 }, (_, id) => message(String(id), now))
  for (const { id } of history) own.note('chat', [id], now)
  assert.equal(takeFrom(own, 'chat', history.slice(-128), a, now, now), undefined)
  assert.equal(takeFrom(own, 'chat', history.slice(0, 32), a, now, now), 'unclear', 'it may be one of those that are forgotten')
  assert.equal(takeFrom(own, 'chat', [...history, message('late', now + 29_999)], a, now, now), 'unclear', 'the clocks may differ')
  assert.equal(takeFrom(own, 'chat', [...history, message('later', now + 30_000)], a, now, now), 'later')
})

test('forgets the chats that were used least recently', () => {
  const own = new OwnMessages(now - 3_600_000)
  const isForgotten = (key: string): boolean => takeFrom(own, key, [message('1', now)], a, now, now) === 'unclear'
  for (let n = 0; n < 1_500; n++) own.note(`chat ${n}`, ['1'], now)
  assert(isForgotten('chat 499'))
  // Each look at a chat is a use of it, and opens one that was forgotten.
  assert(!isForgotten('chat 502'))
  for (let n = 0; n < 999; n++) own.note(`other ${n}`, ['1'], now)
  assert(!isForgotten('chat 502'), 'it was used again')
  assert(isForgotten('chat 1499'))
})

test('forgets the chats that were not used for an hour or two', () => {
  const hour = 60 * 60_000
  for (const [idle, forgotten] of [[hour, false], [2 * hour + 1, true]] as const) {
    const own = new OwnMessages(now - 3_600_000)
    own.note('chat', ['1'], now)
    assert.equal(takeFrom(own, 'chat', [message('1', now + idle)], a, now + idle, now + idle), forgotten ? '1' : undefined)
  }
  const own = new OwnMessages(now - 3_600_000)
  for (let time = now; time < now + 10 * hour; time += hour / 2) {
    own.note('chat', ['1'], time)
    own.note('busy', [String(time)], time)
  }
  assert.equal(takeFrom(own, 'chat', [message('1', now + 10 * hour)], a, now + 10 * hour, now + 10 * hour), undefined)
})

test('leaves to others what is known besides, since that is complete', () => {
  const own = new OwnMessages(now)
  const history = [message('1', now - 20_000), message('2', now - 19_000), message('3', now + 10_000)]
  const known = { messageIds: new Set(['1', '3']) }
  assert.equal(takeFrom(own, 'chat', history, a, now - 30_000, now, sends({ ...known, since: now - 30_000 })), '2')
  assert.equal(takeFrom(own, 'chat', [message('4', now - 19_000)], a, now - 30_000, now, sends({ since: now - 28_999 })), 'unclear')
  assert.equal(takeFrom(own, 'chat', [message('4', now - 19_000)], a, now - 30_000, now, sends({ since: now - 29_000 })), '4')
})

test('judges what is newer than the process by what this has sent, whatever is known besides', () => {
  const own = new OwnMessages(now)
  assert.equal(takeFrom(own, 'chat', [message('1', now - 1_000)], a, now, now), '1')
  assert.equal(takeFrom(own, 'chat', [message('2', now - 1_000)], a, now - 2_000, now), 'unclear')
  assert.equal(takeFrom(own, 'chat', [message('2', now - 1_000), message('3', now + 10_000)], a, now - 2_000, now), '3')
})

test('leaves sends without IDs of earlier processes their messages, each one', () => {
  const own = new OwnMessages(now)
  const unnamed = [now - 50_000, now - 40_000].map(until => ({ content: sealContent(log), since: until - 500, until }))
  const known = sends({ since: 0, unnamed: [...unnamed, { content: sealContent(b), since: now - 30_500, until: now - 30_000 }] })
  const history = [message('1', now - 50_100, log), message('2', now - 40_100, log), message('3', now - 30_100, log)]
  assert.equal(takeFrom(own, 'chat', history, log, now - 60_000, now, known), '3')
  assert.equal(takeFrom(own, 'chat', history, log, now - 60_000, now, known), undefined)
})

test('counts a send without an ID once that is remembered and known besides', () => {
  const own = new OwnMessages(now - 3_600_000)
  const send = { content: sealContent(log), since: now - 500, until: now }
  assert(own.noteUnnamed('chat', send))
  const history = [message('1', now, log)]
  const known = sends({ unnamed: [{ ...send }] })
  assert.equal(takeFrom(own, 'chat', history, log, now - 500, now, known), undefined)
  assert.equal(takeFrom(own, 'chat', [...history, message('2', now, log)], log, now - 500, now, known), '2')
  const found = sends({ unnamed: [{ ...send }], messageIds: new Set(['2']) })
  assert.equal(takeFrom(own, 'chat', [...history, message('2', now, log), message('3', now, log)], log, now - 500, now, found), '3')
})

test('remembers 64 sends without IDs of a chat, and cannot judge what may be an older one', () => {
  const own = new OwnMessages(now - 3_600_000)
  const times = Array.from({ length: 70 }, (_, n) => now + n * 100)
  for (const time of times) own.noteUnnamed('chat', { content: sealContent(log), since: time - 50, until: time })
  const history = times.map((time, n) => message(String(n), time, log))
  assert.equal(takeFrom(own, 'chat', history, log, now - 1_000, now + 7_000), 'unclear')
  const known = sends({ since: 0, unnamed: times.map(time => ({ content: sealContent(log), since: time - 50, until: time })) })
  assert.equal(takeFrom(own, 'chat', history, log, now - 1_000, now + 7_000, known), undefined)
})

test('takes back what nobody recorded, with an ID or without', () => {
  const own = new OwnMessages(now - 3_600_000)
  own.note('chat', ['1'], now)
  own.release('chat', { messageIds: ['1'] }, a, now)
  assert.equal(takeSeen(own, 'chat', a, now, now), '1')
  const unnamed = { content: sealContent(log), since: now - 500, until: now }
  own.noteUnnamed('chat', unnamed)
  own.release('chat', { messageIds: [], trace: unnamed }, log, now)
  assert.equal(takeFrom(own, 'chat', [message('2', now, log)], log, now - 500, now), '2')
})

test('leaves what a search found and nobody recorded where it was, at its own time', () => {
  const own = new OwnMessages(now - 3_600_000)
  const early = now - 30_000
  // A message of a history is there again, and is too old for what left since.
  assert.equal(takeFrom(own, 'chat', [message('1', early, a)], a, early, now), '1')
  own.release('chat', { messageIds: ['1'] }, a, now)
  assert.equal(takeSeen(own, 'chat', a, now - 5_000, now), undefined)
  assert.equal(takeFrom(own, 'chat', [message('1', early, a)], a, early, now), '1')
  // One that was reported comes from nowhere else.
  own.see('chat', message('2', early, b))
  assert.equal(takeSeen(own, 'chat', b, early, now), '2')
  own.release('chat', { messageIds: ['2'] }, b, now)
  assert.equal(takeSeen(own, 'chat', b, now - 5_000, now), undefined)
  assert.equal(takeSeen(own, 'chat', b, early, now), '2')
  // A file goes by the ID that the search found.
  assert.equal(takeFrom(own, 'chat', [message('3', early, log)], log, early, now), '3')
  own.release('chat', { messageIds: [], trace: '3' }, log, now)
  assert.equal(takeFrom(own, 'chat', [message('3', early, log)], log, early, now), '3')
})

test('finds each of two equal files once that came in the same second', () => {
  const own = new OwnMessages(now - 3_600_000)
  const history = [message('1', now, log), message('2', now, log)]
  assert.equal(takeFrom(own, 'chat', history, log, now, now), '1')
  assert.equal(takeFrom(own, 'chat', history, log, now, now), '2')
  assert.equal(takeFrom(own, 'chat', history, log, now, now), undefined)
})

/** The least that a send without an ID may take here, in milliseconds. */
const took = 600

describe('a send without an ID during which the machine\'s clock was set', () => {
  const hour = 3_600_000
  const content = sealContent(log)
  const cases = [
    { what: 'forward', since: now, until: now + took + hour },
    { what: 'back', since: now, until: now + took - hour },
    { what: 'ahead before, and put right', since: now + hour, until: now + took },
  ]
  for (const { what, since, until } of cases) {
    test(`is given its own message, and no equal one: set ${what}`, () => {
      const own = new OwnMessages(now - hour)
      const mine = message('1', now + 500, log)
      own.noteUnnamed('chat', { content, since, until, took })
      assert.equal(takeFrom(own, 'chat', [mine], log, now, now + took), undefined, 'it is the message of the one without an ID')
      assert.equal(takeFrom(own, 'chat', [mine, message('2', now + 60_000, log)], log, now + 50_000, now + 60_000), '2')
    })
  }

  test('is not noted where a search took its message meanwhile, whatever the clock said', () => {
    const own = new OwnMessages(now - hour)
    assert.equal(takeFrom(own, 'chat', [message('1', now, log)], log, now, now), '1')
    assert.equal(own.noteUnnamed('chat', { content, since: now + hour / 2, until: now + hour / 2 + took, took }), false)
  })
})

test('does not forget a chat because the machine\'s clock was set', t => {
  const real = Date.now()
  let ahead = 0
  t.mock.method(Date, 'now', () => real + ahead)
  const own = new OwnMessages(real)
  own.note('chat', ['1'], real)
  ahead = 2 * 3_600_000
  assert.equal(own.isKnownBefore('chat', '1', Date.now() + 1), true)
})

describe('the clocks', () => {
  const unknown = { least: -Infinity, most: Infinity }
  const hour = 3_600_000

  test('are compared by what was sent from here', () => {
    const own = new OwnMessages(now - hour)
    own.note('chat', ['1'], now, 300)
    own.note('chat', ['2'], now + 5_000, 4_000)
    own.note('chat', ['3'], now)
    // Its times are whole seconds, and the second message took its time.
    assert.deepEqual(own.ahead('chat', [message('1', now - 60_000)], -Infinity, now), { least: 60_000 - 1_300, most: 60_000 })
    assert.deepEqual(own.ahead('chat', [message('1', now), message('2', now + 4_000)], -Infinity, now), { least: -1_300, most: 0 })
    assert.deepEqual(own.ahead('chat', [message('3', now), message('4', now)], -Infinity, now), unknown, 'nobody knows when those were sent')
    assert.deepEqual(own.ahead('chat', [message('1', now), message('2', now + 60_000)], -Infinity, now), unknown, 'the platform\'s was set')
  })

  test('may contradict one another by a little', () => {
    const own = new OwnMessages(now - hour)
    own.note('chat', ['1'], now + 100, 50)
    own.note('chat', ['2'], now + 1_980, 50)
    const { least, most } = own.ahead('chat', [message('1', now - 1_000 - hour), message('2', now + 2_000 - hour)], -Infinity, now)
    assert(least > hour - 1_000 && most < hour + 2_000, JSON.stringify({ least, most }))
  })

  test('are compared by whoever spoke last', () => {
    const own = new OwnMessages(now - hour)
    assert.deepEqual(own.ahead('chat', [], now - 5_000, now), { least: -Infinity, most: 5_000 })
    assert.deepEqual(own.ahead('chat', [], now + hour, now), { least: -Infinity, most: -hour })
    assert.deepEqual(own.ahead('chat', [], now * 1_000, now), unknown)
  })

  test('are not compared by what was sent before the machine\'s was set, or it slept', t => {
    const real = Date.now()
    let set = 0
    t.mock.method(Date, 'now', () => real + set)
    const own = new OwnMessages(real)
    own.note('chat', ['1'], real, 0)
    set = hour
    assert.deepEqual(own.ahead('chat', [message('1', real)], -Infinity), unknown)
    own.note('chat', ['2'], real + set, 0)
    assert.equal(own.ahead('chat', [message('2', real)], -Infinity).most, hour)
  })
})

test('tells what could be wanted but for its time, and of which it is not known whose it is', () => {
  const own = new OwnMessages(now - 3_600_000)
  own.note('chat', ['1'], now)
  const history = [
    message('1', now - 20_000), message('2', now - 20_000), message('3', now - 20_000), message('4', now - 20_000, b), message('5', now),
    message('6', now - 60_000),
  ]
  const old = own.tooOld('chat', { content: a, since: now }, history, 30_000, now)
  assert.deepEqual(old.map(({ id }) => id), ['2', '3'])
  assert.deepEqual(own.unexplained('chat', a, old, sends({ messageIds: new Set(['3']) }), now), [message('2', now - 20_000)])
  assert.deepEqual(own.tooOld('chat', { content: a, since: now }, history, 5_000, now), [])
})
