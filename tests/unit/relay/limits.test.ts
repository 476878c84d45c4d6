import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { chat, Core, fates, limited } from '../../support/core'

const other = { kind: 'group', id: '2' } as const
const file = { type: 'file', link: { kind: 'remote', url: 'http://example.com/x' } } as const

/** When each call was made, in whole seconds. */
function times({ port }: Core): number[] {
  return port.calls.map(({ at }) => Math.floor(at / 1000))
}

describe('a platform that limits the rate', () => {
  test('is called again once the time that it named is over, while its caller waits', async () => {
    const core = new Core({ fates: [limited(2_000)] })
    await core.run(10_000, core.submit('x'))
    assert.deepEqual([core.log, times(core)], [['x sent'], [0, 2]])
  })

  test('is not called again for a caller who would wait for too long', async () => {
    const core = new Core({ fates: [limited(60_000)] })
    await core.run(59_000, core.submit('x'))
    await core.run(0, core.submit('y'))
    assert.deepEqual([core.log, times(core)], [['x unsent'], [0]])
    await core.run(2_000)
    assert.deepEqual([core.log, times(core)], [['x unsent', 'y sent'], [0, 60]])
  })

  test('is not the reason why a queue waits whose bot is offline', async () => {
    const core = new Core({ fates: [limited(60_000)] })
    await core.run(1_000, core.later('x'))
    Object.assign(core.port, { cause: 'kicked', online: false })
    assert.deepEqual(core.relay.queues().map(({ state, block }) => [state, String(block?.reason)]), [['offline', 'the account is logged out']])
  })

  for (const [seconds, told, calls] of [[10, 'x sent,sent', [0, 10, 10]], [11, 'x unsent,unsent', [0]]] as const) {
    test(`for ${seconds} seconds keeps the caller of a batch waiting only where that is not too long`, async () => {
      const core = new Core({ fates: [limited(seconds * 1000)] })
      await core.run(30_000, core.submit('x', { mode: 'batch', items: [file, file] }))
      assert.deepEqual([core.log, times(core)], [[told], calls])
    })
  }

  test('turns away at once who comes long before that time', async () => {
    const core = new Core({ fates: [limited(60_000)] })
    await core.run(1_000, core.submit('x'))
    await core.run(0, core.submit('y'))
    assert.deepEqual([core.log, times(core)], [['x unsent', 'y unsent 60'], [0]])
  })

  test('gets what was accepted for later in its order, and not before', async () => {
    const core = new Core({ fates: [limited(30_000), limited(45_000)] })
    await core.run(100_000, core.later('x'), core.later('y'))
    assert.deepEqual([core.called, core.states], [['x', 'x', 'x', 'y'], ['sent', 'sent']])
    assert.deepEqual(times(core), [0, 30, 75, 75])
  })

  for (const [scope, second] of [['chat', 0], ['account', 20]] as const) {
    test(`for the ${scope}, ${second === 0 ? 'leaves other chats alone' : 'holds all its chats'}`, async () => {
      const core = new Core({ fates: [limited(20_000, scope)] })
      await core.run(100, core.later('x', { target: chat }))
      await core.run(60_000, core.later('y', { target: other }))
      assert.deepEqual(core.port.calls.map(({ text, at }) => [text, Math.floor(at / 1000)]).sort(), [['x', 0], ['x', 20], ['y', second]])
    })
  }

  test('is shown as what keeps a queue and its deliveries, until it is over', async () => {
    const core = new Core({ fates: [limited(20_000)] })
    await core.run(1_000, core.later('x'))
    const [{ state, block } = {}] = core.relay.queues()
    assert.deepEqual([state, String(block?.reason)], ['limited', 'the platform limits how fast messages may be sent'])
    assert.equal(Math.round(((block?.until ?? 0) - core.clock.wall()) / 1000), 19)
    const [delivery] = await (await core.relay.history()).list({ states: ['queued'], limit: 1 })
    const wait = delivery && core.relay.waitOf(delivery)
    assert.deepEqual([wait?.cause, wait?.since, wait?.until], ['rate-limited', delivery?.createdAt, block?.until])
    await core.run(30_000)
    assert.deepEqual(core.relay.queues(), [])
  })

  test('is remembered over a reload', async () => {
    const core = new Core({ fates: [limited(20_000)] })
    await core.run(1_000, core.later('x'))
    core.relay.end()
    core.reload()
    await core.run(30_000)
    assert.deepEqual([core.states, times(core)], [['sent'], [0, 20]])
  })
})

describe('without a history, what got no answer', () => {
  for (const [what, retriesUnanswered, retryUnanswered, calls] of [
    ['is repeated where the account does so', true, {}, 2],
    ['is not repeated where the account does not', false, {}, 1],
    ['is repeated where the settings say so for all', false, true, 2],
    ['is repeated where the settings say so for the platform', false, { onebot: true }, 2],
    ['is not repeated where they say so for another one', false, { telegram: true }, 1],
  ] as const) {
    test(what, async () => {
      const core = new Core({ retryUnanswered })
      Object.assign(core.port, { hasHistory: false, retriesUnanswered })
      core.port.fates.push(fates.silent)
      await core.run(60_000, core.submit('x'))
      assert.equal(core.called.length, calls)
    })
  }

  test('is repeated as long as the platform carries out a repeated call only once', async () => {
    const core = new Core({ retryUnanswered: false })
    Object.assign(core.port, { hasHistory: false, idempotentFor: 15_000 })
    core.port.fates.push(fates.silent, fates.silent)
    await core.run(300_000, core.later('x'))
    assert.deepEqual([core.called.length, core.states], [2, ['unanswered']])
  })
})
