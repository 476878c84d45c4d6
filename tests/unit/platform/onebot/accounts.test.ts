import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Accounts, type OwnMessage } from '../../../../src/platform/onebot/accounts'
import { contentOfItems } from '../../../../src/platform/onebot/content'
import { file, text } from '../../../integration/onebot/history'

const a = contentOfItems([text('a')])
const b = contentOfItems([text('b')])
const log = contentOfItems([file('a.log', 'bytes')])
const now = 1_700_000_000_000

function message(id: string, time: number, content = a): OwnMessage {
  return { id, time, content }
}

test('finds the oldest message with the content that nobody accounts for, each once', () => {
  const accounts = new Accounts()
  const history = [message('4', now + 2_000), message('1', now, b), message('3', now + 1_000), message('2', now)]
  accounts.account('chat', ['2'], now)
  assert.equal(accounts.claimIn('chat', history, a, now, now), '3')
  assert.equal(accounts.claimIn('chat', history, a, now, now), '4')
  assert.equal(accounts.claimIn('chat', history, a, now, now), undefined)
  assert.equal(accounts.claimIn('chat', history, b, now, now), '1')
})

test('bears with a platform whose clock is 10 s behind, and no more', () => {
  const accounts = new Accounts()
  assert.equal(accounts.claimIn('chat', [message('1', now - 10_001)], a, now, now), undefined)
  assert.equal(accounts.claimIn('chat', [message('1', now - 10_000)], a, now, now), '1')
})

test('takes what was reported by its arrival, exactly', () => {
  const accounts = new Accounts()
  accounts.see('chat', message('1', now - 1))
  assert.equal(accounts.claimSeen('chat', a, now, now), undefined)
  accounts.see('chat', message('2', now))
  accounts.see('chat', message('2', now))
  assert.equal(accounts.claimSeen('chat', a, now, now), '2')
  assert.equal(accounts.claimSeen('chat', a, now, now), undefined)
  assert.equal(accounts.claimIn('chat', [message('2', now)], a, now, now), undefined, 'the history has it under the same ID')
})

test('does not find a reported message again whose answer came before or after', () => {
  const accounts = new Accounts()
  accounts.account('chat', ['1'], now)
  accounts.see('chat', message('1', now))
  accounts.see('chat', message('2', now))
  accounts.account('chat', ['2'], now)
  assert.equal(accounts.claimSeen('chat', a, now, now), undefined)
})

test('keeps chats apart', () => {
  const accounts = new Accounts()
  accounts.account('one', ['1'], now)
  accounts.see('one', message('2', now))
  assert.equal(accounts.claimSeen('two', a, now, now), undefined)
  assert.equal(accounts.claimIn('two', [message('1', now)], a, now, now), '1')
})

test('leaves an upload that was answered without an ID its message', () => {
  const accounts = new Accounts()
  accounts.accountNameless('chat', { content: log, since: now - 900, until: now })
  const first = message('1', now - 500, log)
  assert.equal(accounts.claimIn('chat', [first], log, now + 1, now), undefined)
  assert.equal(accounts.claimIn('chat', [first, message('2', now + 1_000, log)], log, now + 1, now), '2')
})

test('leaves it its message when both are there at once, in reports as well', () => {
  const accounts = new Accounts()
  accounts.see('chat', message('1', now, log))
  accounts.accountNameless('chat', { content: log, since: now - 100, until: now })
  accounts.see('chat', message('2', now + 100, log))
  assert.equal(accounts.claimSeen('chat', log, now + 1, now), '2')
  assert.equal(accounts.claimIn('chat', [message('1', now, log), message('2', now, log)], log, now + 1, now), undefined)
})

test('does not waste an answer without an ID on an older message that the history shows first', () => {
  const accounts = new Accounts()
  const older = message('0', now - 60_000, log)
  accounts.accountNameless('chat', { content: log, since: now - 900, until: now })
  assert.equal(accounts.claimIn('chat', [older], log, now + 1, now), undefined)
  assert.equal(accounts.claimIn('chat', [older, message('1', now, log)], log, now + 1, now), undefined)
})

test('does not account twice for an upload that was found before its answer came', () => {
  const accounts = new Accounts()
  const first = message('1', now, log)
  assert.equal(accounts.claimIn('chat', [first], log, now, now + 3_000), '1')
  accounts.accountNameless('chat', { content: log, since: now, until: now + 4_000 })
  const second = message('2', now + 5_000, log)
  assert.equal(accounts.claimIn('chat', [first, second], log, now + 5_000, now + 8_000), '2')
  // This one was answered in time; what was found before does not speak for it.
  accounts.accountNameless('chat', { content: log, since: now + 9_000, until: now + 9_500 })
  assert.equal(accounts.claimIn('chat', [first, second, message('3', now + 9_000, log)], log, now + 9_600, now + 9_700), undefined)
})

test('accounts for each attempt of an upload when all their answers come late', () => {
  const accounts = new Accounts()
  const history = [message('1', now, log), message('2', now + 2_000, log)]
  assert.equal(accounts.claimIn('chat', history, log, now, now + 3_000), '1')
  accounts.accountNameless('chat', { content: log, since: now, until: now + 4_000 })
  accounts.accountNameless('chat', { content: log, since: now + 2_000, until: now + 4_000 })
  assert.equal(accounts.claimIn('chat', history, log, now + 5_000, now + 6_000), undefined)
})

test('keeps what was reported while others are accounted for or reported again', () => {
  const accounts = new Accounts()
  accounts.see('chat', message('ours', now, b))
  for (let n = 0; n < 200; n++) {
    accounts.see('chat', message(`before ${n}`, now))
    accounts.account('chat', [`before ${n}`, `after ${n}`], now)
    accounts.see('chat', message(`after ${n}`, now))
    accounts.see('chat', message('other', now))
  }
  assert.equal(accounts.claimSeen('chat', b, now, now), 'ours')
})

test('bounds what is reported and asked for by nobody', () => {
  const accounts = new Accounts()
  for (let n = 0; n < 200; n++) accounts.see('chat', message(String(n), now + n))
  assert.equal(accounts.claimSeen('chat', a, now, now), '136')
})

test('remembers more IDs of a chat than a history can show, and no more than 128', () => {
  const accounts = new Accounts()
  const history = Array.from({ length: 160 }, (_, id) => message(String(id), now))
  for (const { id } of history) accounts.account('chat', [id], now)
  assert.equal(accounts.claimIn('chat', history.slice(-64), a, now, now), undefined)
  assert.equal(accounts.claimIn('chat', history.slice(0, 64), a, now, now), '0')
})

test('forgets the chats that were used least recently', () => {
  const accounts = new Accounts()
  const isForgotten = (key: string): boolean => accounts.claimIn(key, [message('1', now)], a, now, now) === '1'
  for (let n = 0; n < 1_000; n++) accounts.account(`chat ${n}`, ['1'], now)
  accounts.account('chat 0', ['2'], now)
  assert(!isForgotten('chat 0'), 'it was used again')
  assert(!isForgotten('chat 999'))
  assert(isForgotten('chat 400'))
})

test('forgets the chats that were not used for an hour or two', () => {
  const hour = 60 * 60_000
  for (const [idle, forgotten] of [[hour, false], [2 * hour + 1, true]] as const) {
    const accounts = new Accounts()
    accounts.account('chat', ['1'], now)
    assert.equal(accounts.claimIn('chat', [message('1', now + idle)], a, now + idle, now + idle), forgotten ? '1' : undefined)
  }
  const accounts = new Accounts()
  for (let time = now; time < now + 10 * hour; time += hour / 2) {
    accounts.account('chat', ['1'], time)
    accounts.account('busy', [String(time)], time)
  }
  assert.equal(accounts.claimIn('chat', [message('1', now + 10 * hour)], a, now + 10 * hour, now + 10 * hour), undefined)
})
