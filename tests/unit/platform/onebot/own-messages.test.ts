import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contentOfItems } from '../../../../src/platform/onebot/content'
import { OwnMessages, type OwnMessage } from '../../../../src/platform/onebot/own-messages'
import { file, text } from '../../../support/items'

const a = contentOfItems([text('a')])
const b = contentOfItems([text('b')])
const log = contentOfItems([file('a.log', 'bytes')])
const now = 1_700_000_000_000

function message(id: string, time: number, content = a): OwnMessage {
  return { id, time, content }
}

test('finds the oldest message with the content that nobody knows, each once', () => {
  const own = new OwnMessages()
  const history = [message('4', now + 2_000), message('1', now, b), message('3', now + 1_000), message('2', now)]
  own.note('chat', ['2'], now)
  assert.equal(own.takeFrom('chat', history, a, now, now), '3')
  assert.equal(own.takeFrom('chat', history, a, now, now), '4')
  assert.equal(own.takeFrom('chat', history, a, now, now), undefined)
  assert.equal(own.takeFrom('chat', history, b, now, now), '1')
})

test('bears with a platform whose clock is 10 s behind, and no more', () => {
  const own = new OwnMessages()
  assert.equal(own.takeFrom('chat', [message('1', now - 10_001)], a, now, now), undefined)
  assert.equal(own.takeFrom('chat', [message('1', now - 10_000)], a, now, now), '1')
})

test('takes what was reported by its arrival, exactly', () => {
  const own = new OwnMessages()
  own.see('chat', message('1', now - 1))
  assert.equal(own.takeSeen('chat', a, now, now), undefined)
  own.see('chat', message('2', now))
  own.see('chat', message('2', now))
  assert.equal(own.takeSeen('chat', a, now, now), '2')
  assert.equal(own.takeSeen('chat', a, now, now), undefined)
  assert.equal(own.takeFrom('chat', [message('2', now)], a, now, now), undefined, 'the history has it under the same ID')
})

test('does not find a reported message again whose answer came before or after', () => {
  const own = new OwnMessages()
  own.note('chat', ['1'], now)
  own.see('chat', message('1', now))
  own.see('chat', message('2', now))
  own.note('chat', ['2'], now)
  assert.equal(own.takeSeen('chat', a, now, now), undefined)
})

test('keeps chats apart', () => {
  const own = new OwnMessages()
  own.note('one', ['1'], now)
  own.see('one', message('2', now))
  assert.equal(own.takeSeen('two', a, now, now), undefined)
  assert.equal(own.takeFrom('two', [message('1', now)], a, now, now), '1')
})

test('leaves an upload that was answered without an ID its message', () => {
  const own = new OwnMessages()
  own.noteUnnamed('chat', { content: log, since: now - 900, until: now })
  const first = message('1', now - 500, log)
  assert.equal(own.takeFrom('chat', [first], log, now + 1, now), undefined)
  assert.equal(own.takeFrom('chat', [first, message('2', now + 1_000, log)], log, now + 1, now), '2')
})

test('leaves it its message when both are there at once, in reports as well', () => {
  const own = new OwnMessages()
  own.see('chat', message('1', now, log))
  own.noteUnnamed('chat', { content: log, since: now - 100, until: now })
  own.see('chat', message('2', now + 100, log))
  assert.equal(own.takeSeen('chat', log, now + 1, now), '2')
  assert.equal(own.takeFrom('chat', [message('1', now, log), message('2', now, log)], log, now + 1, now), undefined)
})

test('does not waste an answer without an ID on an older message that the history shows first', () => {
  const own = new OwnMessages()
  const older = message('0', now - 60_000, log)
  own.noteUnnamed('chat', { content: log, since: now - 900, until: now })
  assert.equal(own.takeFrom('chat', [older], log, now + 1, now), undefined)
  assert.equal(own.takeFrom('chat', [older, message('1', now, log)], log, now + 1, now), undefined)
})

test('takes one message only for an upload that was found before its answer came', () => {
  const own = new OwnMessages()
  const first = message('1', now, log)
  assert.equal(own.takeFrom('chat', [first], log, now, now + 3_000), '1')
  own.noteUnnamed('chat', { content: log, since: now, until: now + 4_000 })
  const second = message('2', now + 5_000, log)
  assert.equal(own.takeFrom('chat', [first, second], log, now + 5_000, now + 8_000), '2')
  // This one was answered in time; what was found before does not speak for it.
  own.noteUnnamed('chat', { content: log, since: now + 9_000, until: now + 9_500 })
  assert.equal(own.takeFrom('chat', [first, second, message('3', now + 9_000, log)], log, now + 9_600, now + 9_700), undefined)
})

test('takes one message for each attempt of an upload when all their answers come late', () => {
  const own = new OwnMessages()
  const history = [message('1', now, log), message('2', now + 2_000, log)]
  assert.equal(own.takeFrom('chat', history, log, now, now + 3_000), '1')
  own.noteUnnamed('chat', { content: log, since: now, until: now + 4_000 })
  own.noteUnnamed('chat', { content: log, since: now + 2_000, until: now + 4_000 })
  assert.equal(own.takeFrom('chat', history, log, now + 5_000, now + 6_000), undefined)
})

test('keeps what was reported while others become known or are reported again', () => {
  const own = new OwnMessages()
  own.see('chat', message('ours', now, b))
  for (let n = 0; n < 200; n++) {
    own.see('chat', message(`before ${n}`, now))
    own.note('chat', [`before ${n}`, `after ${n}`], now)
    own.see('chat', message(`after ${n}`, now))
    own.see('chat', message('other', now))
  }
  assert.equal(own.takeSeen('chat', b, now, now), 'ours')
})

test('bounds what is reported and asked for by nobody', () => {
  const own = new OwnMessages()
  for (let n = 0; n < 200; n++) own.see('chat', message(String(n), now + n))
  assert.equal(own.takeSeen('chat', a, now, now), '136')
})

test('remembers the last 128 IDs of a chat', () => {
  const own = new OwnMessages()
  const history = Array.from({ length: 160 }, (_, id) => message(String(id), now))
  for (const { id } of history) own.note('chat', [id], now)
  assert.equal(own.takeFrom('chat', history.slice(-128), a, now, now), undefined)
  assert.equal(own.takeFrom('chat', history.slice(0, 32), a, now, now), '0')
})

test('forgets the chats that were used least recently', () => {
  const own = new OwnMessages()
  const isForgotten = (key: string): boolean => own.takeFrom(key, [message('1', now)], a, now, now) === '1'
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
    const own = new OwnMessages()
    own.note('chat', ['1'], now)
    assert.equal(own.takeFrom('chat', [message('1', now + idle)], a, now + idle, now + idle), forgotten ? '1' : undefined)
  }
  const own = new OwnMessages()
  for (let time = now; time < now + 10 * hour; time += hour / 2) {
    own.note('chat', ['1'], time)
    own.note('busy', [String(time)], time)
  }
  assert.equal(own.takeFrom('chat', [message('1', now + 10 * hour)], a, now + 10 * hour, now + 10 * hour), undefined)
})
