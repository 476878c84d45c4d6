import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Core, fates } from '../../../support/core'

const key = { key: 'k' }
const hour = 3_600_000

describe('an Idempotency-Key', () => {
  test('is answered from the first request, refused for another one, and does not belong to other callers', async () => {
    const core = new Core()
    for (const [text, more] of [['x', key], ['x', key], ['y', key], ['z', { ...key, caller: 'ci' }]] as const) {
      await core.run(100, core.submit(text, more))
    }
    assert.deepEqual(core.log, ['x sent', 'x replay sent', 'y key-reused', 'z sent'])
  })

  test('whose lifetime is over is free, also where its first request is found later', async () => {
    const core = new Core({ retries: 0, fates: [fates.lost] })
    core.port.hasHistory = false
    const repeat = (): unknown => core.submit('x', { ...key, event: { lifetime: 50_000 } })
    repeat()
    await core.run(60_000)
    repeat()
    core.port.hasHistory = true
    await core.run(20_000)
    repeat()
    await core.run(1_000)
    assert.deepEqual([core.log, core.states], [['x unanswered', 'x sent', 'x replay sent'], ['sent', 'sent']])
    assert.deepEqual(core.rows.map(delivery => delivery.key === null), [true, false])
  })

  for (const [when, isStopped] of [['in time', false], ['at a stop', true]] as const) {
    test(`whose first request went unanswered is answered ${when} where the platform tells nothing of its history`, async () => {
      const core = new Core({ retries: 0, fates: [fates.silent] })
      await core.run(60_000, core.submit('x', key))
      core.port.isHistorySilent = true
      await core.run(1_000, core.submit('x', key))
      if (isStopped) core.relay.end()
      await core.run(isStopped ? 0 : 9_000)
      assert.deepEqual([core.log, core.called], [['x unanswered', 'x replay unanswered'], ['x']])
    })
  }

  test('of what went unanswered leaves it so where its time is over before its turn', async () => {
    const core = new Core({ retries: 0 })
    core.port.hasHistory = false
    core.port.fates.push(fates.lost, { arrives: 5_000, answered: 5_000 })
    await core.run(50_000, core.submit('x', { ...key, expiresIn: 1_000 }))
    await core.run(10, core.submit('ahead'))
    await core.run(10_000, core.submit('x', { ...key, expiresIn: 1_000 }))
    assert.deepEqual([core.log, core.called], [['x unanswered', 'x unanswered', 'ahead sent'], ['x', 'ahead']])
    assert.deepEqual(core.states, ['sent', 'unanswered'])
  })

  test('of what went unanswered leaves it so where too many wait before it, and is sent once they have left', async () => {
    const core = new Core({ retries: 0, capacity: 1 })
    core.port.hasHistory = false
    core.port.fates.push(fates.lost)
    await core.run(60_000, core.submit('x', key))
    core.port.fates.push({ arrives: 5_000, answered: 5_000 })
    for (const text of ['leaving', 'waiting']) void core.submit(text)
    await core.run(10)
    await core.run(100, core.submit('x', key))
    assert.deepEqual([core.log, core.states], [['x unanswered', 'x replay unanswered'], ['unanswered']])
    await core.run(10_000)
    await core.run(20_000, core.submit('x', key))
    assert.deepEqual([core.called, core.log.at(-1)], [['x', 'leaving', 'waiting', 'x'], 'x sent'])
  })

  test('is in progress while the first request is under way, and answered for what was accepted for later', async () => {
    const core = new Core({ fates: [{ arrives: 500, answered: 500 }, { arrives: 500, answered: 500 }] })
    await core.run(100, core.submit('x', key))
    await core.run(1000, core.submit('x', key))
    await core.run(1, core.later('y', { key: 'l' }))
    await core.run(1000, core.later('y', { key: 'l' }))
    assert.deepEqual(core.log, ['x in-progress 1', 'x sent', 'y accepted', 'y replay accepted'])
  })

  test('does not compare the content of an event, also while its first report is under way', async () => {
    const core = new Core({ fates: [{ arrives: 500, answered: 500 }] })
    await core.run(100, core.later('x', { ...key, event: {} }))
    await core.run(1000, core.later('y', { ...key, event: {} }))
    assert.deepEqual([core.log, core.called], [['x accepted', 'y replay accepted'], ['x']])
  })

  test('is free again after a failure, and after a day', async () => {
    const core = await Core.ready({ retries: 0 })
    core.port.online = false
    await core.run(100, core.submit('x', key))
    core.port.online = true
    core.port.fates.push({ ...fates.sent })
    await core.run(100, core.submit('x', key))
    core.clock.step(25 * hour)
    await core.run(100, core.submit('x', key))
    assert.deepEqual([core.log, core.called], [['x unsent', 'x sent', 'x sent'], ['x', 'x']])
  })

  test('is free where nothing was accepted, because the disk is full', async () => {
    const core = await Core.ready()
    core.storage.isFull = true
    await core.run(100, core.submit('x', key))
    core.storage.isFull = false
    await core.run(100, core.submit('x', key))
    assert.deepEqual([core.log, core.called, core.states], [['x storage-full', 'x sent'], ['x'], ['sent']])
  })

  for (const [outcome, fate, told, calls] of [
    ['sent', { arrives: 0, answered: 500 }, ['x replay sent', 'x replay sent'], 1],
    ['refused', { ...fates.refused, answered: 500 }, ['x storage-full', 'x sent'], 2],
  ] as const) {
    test(`is answered right where its message was ${outcome} and the full disk does not take that`, async () => {
      const core = await Core.ready({ retries: 0, fates: [fate] })
      await core.run(100, core.submit('x', key))
      core.storage.isFull = true
      await core.run(1_000)
      await core.run(100, core.submit('x', key))
      assert.deepEqual([core.log, core.states], [[`x ${outcome}`, told[0]], ['sending']])
      core.storage.isFull = false
      await core.run(1_000, core.submit('x', key))
      assert.deepEqual([core.log.at(-1), core.called.length, core.states.at(-1)], [told[1], calls, 'sent'])
    })
  }

  for (const [what, fate, told, calls] of [
    ['arrived meanwhile', { arrives: 50_000 }, 'x replay sent', 1],
    ['did not arrive', {}, 'x sent', 2],
  ] as const) {
    test(`of a message that ${what} is answered once it has settled, and until then with the wait`, async () => {
      const core = new Core({ settleTime: 60_000, retries: 0, fates: [fate] })
      await core.run(20_000, core.submit('x', key))
      const early = core.submit('x', key)
      await core.run(1)
      assert.equal((await early).retryAfter, 41)
      await core.run(50_000)
      await core.run(1_000, core.submit('x', key))
      assert.deepEqual([core.log, core.called.length], [['x unanswered', 'x replay unanswered', told], calls])
    })
  }
})

describe('a retry', () => {
  test('sends what failed at the end of its queue, and nothing that arrived or waits', async () => {
    const core = new Core({ retries: 0, fates: [fates.refused] })
    const { delivery } = await Promise.race([core.submit('x'), core.run(100).then(() => assert.fail('no answer'))])
    const failures: string[] = []
    const retry = (id: string): Promise<void> => core.relay.retry(id, ({ platform }) => assert.equal(platform, 'onebot'))
      .catch((error: unknown) => void failures.push(String(error)))
    core.port.fates.push({ arrives: 500, answered: 500 })
    void core.submit('before')
    void retry(delivery.id)
    await core.run(100)
    void retry(delivery.id)
    void retry('nonsense')
    await core.run(1000)
    void retry(delivery.id)
    await core.run(100)
    assert.deepEqual(core.port.texts, ['before', 'x'])
    assert.match(failures.join('\n'), /^RelayError: no such delivery\nRelayError: this delivery is queued.*\nRelayError: this delivery is sent.*$|^RelayError: this delivery is queued.*\nRelayError: no such delivery\nRelayError: this delivery is sent.*$/)
  })

  test('of a message that was refused because of its chat ends the telling of that refusal', async () => {
    const core = new Core({ retries: 0, fates: [fates.muted] })
    const { delivery } = await Promise.race([core.submit('x', key), core.run(100).then(() => assert.fail('no answer'))])
    await core.run(100, core.submit('x', key))
    void core.relay.retry(delivery.id, () => undefined)
    await core.run(120_000)
    await core.run(100, core.submit('x', key))
    assert.deepEqual([core.log, core.states], [['x refused', 'x replay refused', 'x replay sent'], ['sent']])
  })

  for (const [when, repeats, queued, sent] of [
    ['one of them arrived', ['x', 'x'], 0, 1], ['none did', ['x'], 1, 1], ['the key means something else now', ['x', 'y'], 2, 3],
  ] as const) {
    test(`of requests with one key takes the last of them where ${when}`, async () => {
      const core = await Core.ready({ retries: 0 })
      core.port.online = false
      for (let count = 0; count < 2; count++) await core.run(500, core.submit('x', key))
      const failed = core.rows.map(({ id }) => id)
      core.port.online = true
      for (const text of repeats.slice(1)) void core.submit(text, key)
      await core.run(100)
      const refused: string[] = []
      for (const id of failed) {
        void core.relay.retry(id, () => undefined).catch((error: unknown) => refused.push(String(error)))
        await core.run(100)
      }
      for (const reason of refused) assert.match(reason, /^RelayError: the same request came again with its Idempotency-Key, as delivery /)
      assert.deepEqual([failed.length - refused.length, core.called.length], [queued, sent])
      await core.run(100, core.submit(repeats.at(-1) ?? '', key))
      assert.deepEqual(core.log.at(-1), `${repeats.at(-1)} replay sent`)
    })
  }

  test('sends nothing that is answered while it waits for its turn', async () => {
    const core = new Core({ retries: 0 })
    core.port.hasHistory = false
    core.port.fates.push({ arrives: 50_000, answered: 50_000 }, { arrives: 9_000, answered: 9_000 })
    const submitted = core.submit('x')
    await core.run(45_000)
    const { delivery } = await submitted
    await core.run(10, core.submit('ahead'))
    await Promise.all([core.relay.retry(delivery.id, () => undefined), core.run(20_000)])
    assert.deepEqual([core.log, core.called, core.port.texts], [['x unanswered', 'ahead sent'], ['x', 'ahead'], ['x', 'ahead']])
    assert.deepEqual(core.states, ['sent', 'sent'])
  })

  test('is refused while the platform may still be carrying it out', async () => {
    const core = new Core({ retries: 0, settleTime: 60_000, fates: [fates.silent] })
    const submitted = core.submit('x')
    await core.run(15_000)
    const { delivery } = await submitted
    await assert.rejects(core.relay.retry(delivery.id, () => undefined), /may still be carrying it out: try again in 46 s/)
  })
})

describe('what ended without an answer', () => {
  test('is found after a minute, also when nobody asks', async () => {
    const core = new Core({ retries: 0, fates: [{ arrives: 40_000 }] })
    await core.run(45_000, core.submit('x'))
    assert.deepEqual([core.log, core.states], [['x unanswered'], ['unanswered']])
    await core.run(30_000)
    assert.deepEqual([core.called, core.states], [['x'], ['sent']])
  })

  test('joins its queue again at its old place, where it was accepted for later and has calls left', async () => {
    const core = new Core({ retries: 1, fates: [fates.silent] })
    await core.run(595_000, core.later('x', { items: [{ type: 'image', link: { kind: 'remote', url: 'http://example.com/x' } }] }))
    assert.deepEqual([core.called, core.states], [['image'], ['unanswered']])
    // One that is leaving when it has settled, and one that waits behind it.
    core.port.fates.push({ arrives: 9_000, answered: 9_000 })
    for (const text of ['before', 'behind']) void core.later(text)
    await core.run(60_000)
    assert.deepEqual(core.called, ['image', 'before', 'image', 'behind'])
  })

  test('does so without the part that was refused', async () => {
    const core = new Core({ retries: 1, fates: [fates.silent, fates.refused, fates.refused] })
    const link = { kind: 'remote', url: 'http://example.com/x' } as const
    await core.run(595_000, core.later('x', { mode: 'batch', items: [{ type: 'image', link }, { type: 'file', link, name: 'x' }] }))
    assert.deepEqual([core.called, core.states], [['image', 'file', 'file'], ['unanswered']])
    await core.run(60_000)
    assert.deepEqual([core.called.slice(3), core.states], [['image'], ['failed']])
  })

  test('is on the list while it ends', async () => {
    const core = await Core.ready({ fates: [{ arrives: 0, answered: 500 }] })
    await core.run(100, core.submit('a'))
    const history = await core.relay.history()
    // It ends after the file was read.
    const listed = history.list({ limit: 10 })
    await core.run(2_000)
    assert.deepEqual((await listed).map(({ state }) => state), ['sent'])
  })

  test('is found by a further look, although a question for the history was never answered', async () => {
    const core = await Core.ready({ retries: 0, retryUnanswered: false })
    core.port.isHistorySilent = true
    core.port.fates.push(fates.lost)
    await core.run(120_000, core.submit('lost'))
    assert.deepEqual(core.log, ['lost unanswered'])
    core.port.isHistorySilent = false
    await core.run(240_000)
    assert.deepEqual(core.states, ['sent'])
  })
})
