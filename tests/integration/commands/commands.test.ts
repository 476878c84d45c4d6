import assert from 'node:assert/strict'
import { json } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import type { Saying } from '../../../simulator/types'
import type { SimulatorOptions } from '../../../simulator'
import { fieldsOf, type JsonObject } from '../../../src/lib/shape'
import { Relay } from '../../../src/relay/relay'
import { addForward } from '../../support/onebot'
import type { TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { group, say, serveCallback, startWith, user } from './support'

// What callbacks may answer is in tests/unit/commands; commands of other platforms are in tests/platforms.

interface Stage {
  relay: TestRelay
  passed: string[]
  /** What the callback was asked. */
  bodies: JsonObject[]
  /** The lines of the log about commands, without their ID, origin and duration. */
  outcomes: () => string[]
}

/** A relay whose callback answers like this. */
async function start(t: TestContext, answer: unknown = { reply: 'pong' }, simulator: SimulatorOptions = {}): Promise<Stage> {
  const bodies: JsonObject[] = []
  const { url } = await serveCallback(t, (request, response) => {
    void json(request).then(body => {
      bodies.push(fieldsOf(body))
      response.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
    })
  })
  const secret = `${url.replace('//', '//user:secret@')}hook?token=secret`
  const { relay, passed } = await startWith(t, { url: secret }, { chatApiMaxRetries: 0 }, simulator)
  assert(relay.logs.includes(`message-relay info listening for commands: "#" and 4 characters, posted to ${url.slice(0, -1)}`))
  const entry = /^message-relay (\w+) [0-9a-f-]{36} command "(.*?)" from group "123456": (.*), \d+ ms$/
  const outcomes = (): string[] => relay.logs.flatMap(line => {
    const [, level, name, outcome] = entry.exec(line) ?? []
    return level === undefined ? [] : [name === 'ping' ? `${level} ${outcome}` : `${level} ${name} ${outcome}`]
  })
  return { relay, passed, bodies, outcomes }
}

for (const messageFormat of ['array', 'string'] as const) {
  test(`a command of OneBot with messages as ${messageFormat} is posted as it was typed, and the reply goes back`, async t => {
    const { relay, passed, bodies } = await start(t, { reply: 'pong' }, { messageFormat })
    const text = '#ping <b> [x] &amp;\n y '
    relay.simulator.say({ group, user, text, messageId: -7 })
    await relay.simulator.until(({ ledger }) => ledger.length === 1)
    // A private chat, and a temporary one that names a group.
    relay.simulator.say({ user, text: '#ping x', messageId: 5 })
    await relay.simulator.until(({ ledger }) => ledger.length === 2)
    relay.simulator.say({ user, text: '#ping x', messageId: 6, subType: 'group', raw: { target_id: 123456 } })
    await relay.simulator.until(({ ledger }) => ledger.length === 3)
    assert.deepEqual(bodies, [
      { command: 'ping', content: '<b> [x] &amp;\n y ', raw_message: text, user_id: user, group_id: group, message_id: '-7' },
      ...['5', '6'].map(id => ({ command: 'ping', content: 'x', raw_message: '#ping x', user_id: user, message_id: id })),
    ])
    const [first, ...others] = relay.simulator.ledger.map(({ target: { type, id }, text }) => `${type}:${id} ${text}`)
    assert.deepEqual([first, others], [`group:${group} pong`, Array(2).fill(`private:${user} pong`)])
    assert.deepEqual(passed, [])
    assert(!relay.logs.some(line => line.startsWith('message-relay ') && line.includes('secret')))
  })
}

test('the reply to a temporary chat names its group to the platform, and to nobody else', async t => {
  const { relay: { simulator }, bodies } = await start(t, { reply: 'pong', user_id: user })
  const events: [event: JsonObject, group?: number][] = [
    [{ group_id: 123456, temp_source: 0 }, 123456], [{ sender: { user_id: Number(user), group_id: 123456 } }, 123456],
    // NapCat's `packages/napcat-onebot/api/msg.ts`, where it finds no group.
    [{ group_id: 284840486 }], [{}],
  ]
  for (const [raw] of events) {
    const sent = simulator.ledger.length
    simulator.say({ user, text: '#ping x', subType: 'group', raw })
    await simulator.until(({ ledger }) => ledger.length > sent)
  }
  const calls = simulator.calls.filter(({ action }) => action === 'send_private_msg')
  assert.deepEqual(calls.map(({ params }) => [params.user_id, params.group_id]), events.map(([, id]) => [Number(user), id]))
  assert(bodies.every(body => !('group_id' in body)))
})

describe('a message that is reported twice', () => {
  const reports: [what: string, first: Partial<Saying>, second: Partial<Saying>][] = [
    ['with one ID', { messageId: 7 }, { messageId: 7 }],
    ['with one number of the server', { messageId: 7, raw: { real_seq: '55' } }, { messageId: 8, raw: { real_seq: '55' } }],
    ['in a private chat', { group: undefined, messageId: 7 }, { group: undefined, messageId: 7 }],
  ]
  for (const [what, first, second] of reports) {
    test(`${what} runs a command once`, async t => {
      const { relay: { simulator }, bodies, passed } = await start(t)
      for (const each of [first, second]) simulator.say({ group, user, text: '#ping x', ...each })
      await until('the second report goes on to the others', () => passed.length === 1)
      // Others may be equal, but for the number.
      simulator.say({ group, user, text: '#ping x', ...second, messageId: 9, raw: { real_seq: '56' } })
      simulator.say({ group, user: '10002', text: '#ping x', ...second, raw: { real_seq: '0' } })
      await simulator.until(({ ledger }) => ledger.length === 3)
      assert.deepEqual(bodies.map(({ message_id: id }) => id), ['7', '9', String(second.messageId)])
    })
  }

  test('over two connections of one account runs a command once', async t => {
    const { relay: { app, simulator }, bodies, passed } = await start(t)
    const fork = addForward(app, simulator.endpoint, { selfId: simulator.selfId })
    t.after(() => fork.dispose())
    await simulator.until(({ connections }) => connections === 2)
    simulator.say({ group, user, text: '#ping x' })
    await simulator.until(({ ledger }) => ledger.length === 1)
    await until('the second report goes on to the others', () => passed.length === 1)
    assert.equal(bodies.length, 1)
  })
})

describe('listening', () => {
  test('lets everything else pass, what only its type says is the bot\'s own as well, and logs nothing of it', async t => {
    const { relay, passed, bodies, outcomes } = await start(t)
    for (const text of ['#pin', 'hello', '#ping', '#pings x']) assert.equal(await say(relay, passed, text), undefined, text)
    // Koishi drops those whose sender is the bot.
    relay.simulator.say({ group, user, text: '#ping own', raw: { post_type: 'message_sent' } })
    await until('it has passed', () => passed.length === 5)
    assert.deepEqual([bodies, outcomes()], [[], []])
  })

  test('comes before middlewares that were prepended earlier, and not for a message on its way here when the relay ends', async t => {
    const { relay, passed, bodies, outcomes } = await start(t)
    let others = 0
    relay.app.middleware((_, next) => {
      others++
      return next()
    }, true)
    await relay.reload()
    assert.equal(await say(relay, passed, '#ping x'), 'pong')
    assert.equal(others, 0)
    relay.app.middleware((_, next) => {
      relay.unload()
      return next()
    }, true)
    assert.equal(await say(relay, passed, '#ping y'), undefined)
    assert.deepEqual([bodies.length, outcomes().length, passed], [1, 1, ['#ping y']])
  })

  test('shows a hostile name harmlessly', async t => {
    const { relay, passed, outcomes } = await start(t)
    for (const text of ['#%s\n\u202e x', '#\u001b%o% x']) await say(relay, passed, text)
    await until('both are logged', () => outcomes().length === 2)
    assert.deepEqual(outcomes(), ['info %s\ufffd\ufffd replied', 'info \ufffd%o% replied'])
  })
})

describe('an answer', () => {
  test('may name another target and hold several items, wrong ones among them, and one that is refused', async t => {
    const messages = [{ type: 'sound' }, { msg: 'a' }, { type: 'file', url: 'base64://YQ==' }]
    const { relay, passed, outcomes } = await start(t, { user_id: 10002, messages })
    relay.simulator.fault({ fault: { kind: 'refuse' }, action: 'upload_private_file' })
    assert.equal(await say(relay, passed, '#ping x'), 'a')
    await until('it is logged', () => outcomes().length === 1)
    assert.deepEqual([relay.simulator.ledger[0]?.target, passed, outcomes()], [{ type: 'private', id: '10002' }, [], ['info replied']])
    const warnings = relay.logs.flatMap(line => /^message-relay warn \S+ an item of the reply (.{12})/.exec(line)?.[1] ?? [])
    assert.deepEqual(warnings, ['is left out:', 'failed: 502 '])
  })

  test('whose delivery fails ends the message all the same, and the log tells nothing of a failure that nobody foresaw', async t => {
    const { relay, passed, outcomes } = await start(t)
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    relay.simulator.say({ group, user, text: '#ping x' })
    await until('it is refused', () => outcomes().length === 1)
    t.mock.method(Relay.prototype, 'submit', () => Promise.reject(new TypeError('secret\n    at secret')))
    relay.simulator.say({ group, user, text: '#ping y' })
    await until('it fails', () => outcomes().length === 2)
    const [first, second] = outcomes()
    assert.match(first ?? '', /^warn the reply was not delivered: .*\(refused\)$/)
    assert.match(second ?? '', /^warn the reply was not delivered: "TypeError" at ".*commands\.test.*"$/)
    assert.deepEqual(passed, [])
  })

  test('counts as under way until its reply is sent, and is not sent once the relay stops', async t => {
    const { relay, outcomes } = await start(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 1_000 } })
    relay.simulator.say({ group, user, text: '#ping x' })
    await relay.simulator.until(({ pending }) => pending.length === 1)
    const end = relay.app.parallel('exit', 'SIGTERM')
    relay.simulator.say({ group, user, text: '#ping y' })
    await until('the second is refused', () => outcomes().some(line => line.endsWith('(stopping)')))
    await end
    assert.deepEqual([outcomes().length, outcomes().at(-1), relay.simulator.ledger.length], [2, 'info replied', 1])
  })

  const silences: [content: string, line: string][] = [
    ['', 'info no reply'],
    ['{"reply":"","messages":[]}', 'info no reply'],
    ['{"msg":"secret"}', 'warn no reply: the answer has neither reply nor messages: found "msg" instead'],
    ['{"reply":"secret","group_id":{}}', 'warn no reply: group_id must be a string or a whole number, one of more than 15 digits a string (bad-request)'],
    ['{"messages":[{"type":"image"},{}]}', 'warn no reply: every item of messages is wrong, the first: url is required for type image'],
  ]
  for (const [content, line] of silences) {
    test(`is no reply as ${content || 'nothing'}: the message goes on to the others`, async t => {
      const { relay, passed, outcomes } = await start(t, content)
      assert.equal(await say(relay, passed, '#ping x'), undefined)
      assert.deepEqual([passed, outcomes()], [['#ping x'], [line]])
    })
  }
})
