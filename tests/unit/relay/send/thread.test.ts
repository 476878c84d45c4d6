import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RelayError } from '../../../../src/errors'
import { threadDeedOf, type Delivery } from '../../../../src/relay/delivery/delivery'
import { decideDeed, type Joining } from '../../../../src/relay/send/thread'
import { Core, fates, limited } from '../../../support/core'

const text = (msg: string) => ({ type: 'text', text: msg }) as const
const hour = 3_600_000

/** What the deliveries have done with their threads, the oldest first. */
function deeds({ rows }: Core): (string | undefined)[] {
  return rows.map(threadDeedOf)
}

describe('how a message goes on with its thread', () => {
  const wall = 1e9
  const base: Joining = { mode: 'reply', past: [], wall, retries: 2, canUpdate: true, canAnswer: () => true, recallableFor: 120_000 }
  const arrived = (...messageIds: string[]): Delivery['results'] => [{ success: true, messageIds }]
  /** A delivery of the thread that was sent a minute ago. */
  const sent = (id: string, more: Partial<Delivery> = {}): Delivery => ({
    id, seq: 1, state: 'sent', mode: 'single', deferred: true, target: { kind: 'group', id: '1' }, caller: null, door: '', bot: 'onebot:1',
    createdAt: wall - 60_000, updatedAt: wall - 60_000, expiresAt: null, attempts: 1, results: arrived(id), open: [], key: null, fingerprint: null, flow: { thread: { name: 't', mode: 'reply', done: 'new', index: 0 } },
    summary: { items: [], calls: [], waited: null, platformTime: 0 }, ...more,
  })
  const flow = (done: 'replaced' | 'updated', ids: string[]): Pick<Delivery, 'flow'> => (
    { flow: { thread: { name: 't', mode: 'reply', done, ids, index: 0 } } }
  )
  const open = { indices: [0], likeness: '', since: 0, settle: 30_000, calls: 1 }
  const failed = (code: 'refused' | 'unanswered'): Delivery['results'] => [{ success: false, error: new RelayError(code) }]
  const unanswered = (more: Partial<Delivery> = {}): Delivery => (
    sent('?', { state: 'unanswered', results: failed('unanswered'), open: [open], ...more })
  )
  const digest = { digest: { id: 'd', count: 3, shown: true } }

  const cases: [what: string, joining: Partial<Joining>, done: string, ids: string[]][] = [
    ['the first one of a thread', {}, 'new', []],
    ['after others', { past: [sent('a'), sent('b')] }, 'replied', ['a']],
    ['after one that was refused', { past: [sent('x', { state: 'failed', results: failed('refused') }), sent('b')] }, 'replied', ['b']],
    ['after one whose ID is not known', { past: [sent('x', { results: arrived() })] }, 'new', []],
    ['after one that another has replaced', { past: [sent('a'), sent('b', flow('replaced', ['a']))] }, 'replied', ['b']],
    ['where the platform takes no answers', { past: [sent('a')], canAnswer: () => false }, 'new', []],
    ['an update', { mode: 'update', past: [sent('a'), sent('a', flow('updated', ['a']))] }, 'updated', ['a']],
    ['an update that the platform does not have', { mode: 'update', past: [sent('a')], canUpdate: false }, 'replied', ['a']],
    ['an update of a digest', { mode: 'update', past: [sent('a', { flow: digest })] }, 'replied', ['a']],
    ['an update of a batch', { mode: 'update', past: [sent('a', { mode: 'batch' })] }, 'replied', ['a']],
    ['an update of a message that was divided', { mode: 'update', past: [sent('a', { results: arrived('a', 'b') })] }, 'replied', ['a']],
    ['a replacement', { mode: 'replace', past: [sent('a'), sent('b')] }, 'replaced', ['b']],
    ['a replacement of what was divided', { mode: 'replace', past: [sent('a', { results: arrived('a', 'b') })] }, 'replaced', ['a', 'b']],
    ['a replacement of what is too old', { mode: 'replace', past: [sent('a', { updatedAt: wall - 120_000 })] }, 'replied', ['a']],
    ['a replacement of a digest', { mode: 'replace', past: [sent('a', { flow: digest })] }, 'replied', ['a']],
    ['a replacement after what may still be carried out', { mode: 'replace', past: [sent('a'), unanswered({ deferred: false, updatedAt: wall - 29_000 })] }, 'replied', ['a']],
    ['a replacement after what has settled', { mode: 'replace', past: [sent('a'), unanswered({ deferred: false, updatedAt: wall - 31_000 })] }, 'replaced', ['a']],
    ['an update after what may be called again', { mode: 'update', past: [sent('a'), unanswered({ updatedAt: wall - 23 * hour })] }, 'replied', ['a']],
    ['an update after what is called no more', { mode: 'update', past: [sent('a'), unanswered({ open: [{ ...open, calls: 3 }] })] }, 'updated', ['a']],
  ]
  const phased = (id: string, phase?: 'on' | 'over'): Delivery => sent(id, { flow: { thread: { name: 't', mode: 'reply', ...phase && { phase }, done: 'new', index: 0 } } })
  cases.push(
    ['a new outage', { phase: 'on', past: [phased('a', 'on'), phased('b', 'over')] }, 'new', []],
    ['a new outage, again', { phase: 'on', past: [phased('a', 'on'), phased('b', 'over'), phased('c', 'on')] }, 'replied', ['c']],
    ['a new outage, after a remark', { phase: 'on', past: [phased('a', 'over'), phased('b')] }, 'new', []],
    ['the end of an outage', { phase: 'over', past: [phased('a', 'over'), phased('b', 'on')] }, 'replied', ['b']],
    ['a second end', { phase: 'over', past: [phased('a', 'on'), phased('b', 'over')] }, 'replied', ['a']],
    ['a remark after the end', { past: [phased('a', 'on'), phased('b', 'over')] }, 'replied', ['a']],
  )
  for (const [what, joining, done, ids] of cases) {
    test(`${what}: ${done}`, () => assert.deepEqual(decideDeed({ ...base, ...joining }), { done, ids }))
  }
})

describe('a thread', () => {
  test('is answered by its later messages, with or without a caller who waits', async () => {
    const core = new Core()
    for (const [index, msg] of ['a', 'b', 'c'].entries()) {
      await core.run(1_000, core.submit(msg, { thread: 't', ...index === 1 && { deferred: { wait: 0 } } }))
    }
    assert.deepEqual(core.port.texts, ['a', 'reply 1+b', 'reply 1+c'])
    assert.deepEqual(deeds(core), ['new', 'replied', 'replied'])
  })

  test('is one caller\'s, and ends after seven days', async () => {
    const core = new Core()
    await core.run(1_000, core.later('a', { thread: 't', caller: 'ci' }), core.later('b', { thread: 't' }))
    core.clock.step(6.9 * 24 * hour)
    await core.run(1_000, core.later('c', { thread: 't', caller: 'ci' }))
    core.clock.step(0.2 * 24 * hour)
    await core.run(1_000, core.later('d', { thread: 't' }))
    assert.deepEqual(core.port.texts, ['a', 'b', 'reply 1+c', 'd'])
  })

  test('of a batch goes on with one of its messages', async () => {
    const core = new Core()
    void core.later('a', { thread: 't' })
    const [at, video] = [{ type: 'at', userId: '5' }, { type: 'video', link: { kind: 'remote', url: 'https://a.test/b.mp4' } }] as const
    await core.run(1_000, core.later('batch', { thread: 't', mode: 'batch', items: [video, at, text('b'), video, text('c')] }))
    await core.run(1_000, core.later('d', { thread: 't' }))
    assert.deepEqual(core.port.texts, ['a', 'video', 'reply 1+at+b', 'video', 'c', 'reply 1+d'])
  })

  test('is not gone on with a second time by the rest of a batch', async () => {
    const core = new Core()
    void core.later('a', { thread: 't' })
    core.port.fates.push(fates.sent, fates.sent, limited(5_000))
    const video = { type: 'video', link: { kind: 'remote', url: 'https://a.test/b.mp4' } } as const
    await core.run(30_000, core.later('batch', { thread: 't', mode: 'batch', items: [text('b'), video, text('c')] }))
    assert.deepEqual(core.port.texts, ['a', 'reply 1+b', 'video', 'c'])
  })

  test('yields to an answer that the request names', async () => {
    const core = new Core()
    void core.later('a', { thread: 't' })
    void core.later('b', { thread: 't', items: [{ type: 'reply', messageId: '77' }, text('b')] })
    await core.run(1_000)
    assert.deepEqual([core.port.texts, deeds(core)], [['a', 'reply 77+b'], ['new', 'new']])
  })

  test('that the platform will not answer goes on without that', async () => {
    const core = new Core({ retries: 0 })
    await core.run(1_000, core.later('a', { thread: 't' }))
    core.port.canUpdate = true
    core.port.fates.push(fates.refused, fates.refused)
    await core.run(1_000, core.later('b', { thread: 't', threadMode: 'update' }))
    assert.deepEqual([core.called, deeds(core)], [['a', 'b', 'reply 1+b', 'b'], ['new', 'new']])
    assert.deepEqual(core.states, ['sent', 'sent'])
  })
})

describe('an update', () => {
  test('changes the first message, also after a restart', async () => {
    const core = new Core()
    core.port.canUpdate = true
    for (const msg of ['a', 'b', 'c']) {
      await core.run(1_000, core.later(msg, { thread: 't', threadMode: 'update' }))
      core.restart()
    }
    assert.deepEqual([core.port.texts, deeds(core)], [['c'], ['new', 'updated', 'updated']])
  })

  test('that got no answer is made again, before any later one', async () => {
    const core = new Core()
    core.port.canUpdate = true
    core.port.fates.push(fates.sent, fates.silent, fates.silent)
    for (const msg of ['a', 'b']) void core.later(msg, { thread: 't', threadMode: 'update' })
    await core.run(5_000)
    core.restart()
    await core.run(5_000)
    assert.deepEqual(core.called, ['a', 'b', 'b'])
    await core.run(60_000, core.later('c', { thread: 't', threadMode: 'update' }))
    assert.deepEqual([core.port.texts, core.states], [['c'], ['sent', 'sent', 'sent']])
  })
})

describe('a replacement', () => {
  test('takes the last message back, once the new one is there', async () => {
    const core = new Core()
    for (const msg of ['a', 'b', 'c']) await core.run(1_000, core.later(msg, { thread: 't', threadMode: 'replace' }))
    assert.deepEqual([core.port.texts, core.port.recalls, deeds(core)], [['c'], ['1', '2'], ['new', 'replaced', 'replaced']])
  })

  test('of what is too old answers it', async () => {
    const core = new Core()
    core.port.recallableFor = 120_000
    for (const msg of ['a', 'b']) await core.run(121_000, core.later(msg, { thread: 't', threadMode: 'replace' }))
    assert.deepEqual([core.port.texts, core.port.recalls], [['a', 'reply 1+b'], []])
  })

  test('that is refused leaves both, and says so', async () => {
    for (const fate of ['refused', 'silent'] as const) {
      const core = new Core()
      await core.run(1_000, core.later('a', { thread: 't' }))
      core.port.recallFate = fate
      await core.run(20_000, core.later('b', { thread: 't', threadMode: 'replace' }))
      assert.deepEqual([core.port.texts, deeds(core), core.states], [['a', 'b'], ['new', 'new'], ['sent', 'sent']])
      await core.run(1_000, core.later('c', { thread: 't' }))
      assert.equal(core.called.at(-1), 'reply 1+c')
    }
  })

  test('is finished by the next process, once', async () => {
    const core = new Core()
    await core.run(1_000, core.later('a', { thread: 't' }))
    core.port.recallFate = 'silent'
    await core.run(1_000, core.later('b', { thread: 't', threadMode: 'replace' }))
    core.restart()
    core.port.recallFate = 'done'
    await core.run(60_000)
    assert.deepEqual([core.called, core.port.texts, core.port.recalls], [['a', 'b'], ['b'], ['1', '1']])
    assert.deepEqual([deeds(core), core.states], [['new', 'replaced'], ['sent', 'sent']])
  })

  test('is made also where only a look-up finds the new one', async () => {
    const core = new Core({ retries: 0 })
    await core.run(1_000, core.submit('a', { thread: 't' }))
    core.port.isHistorySilent = true
    core.port.fates.push(fates.lost)
    await core.run(20_000, core.submit('b', { thread: 't', threadMode: 'replace' }))
    assert.deepEqual([core.log, core.port.recalls], [['a sent', 'b unanswered'], []])
    core.port.isHistorySilent = false
    await core.run(120_000)
    assert.deepEqual([core.port.texts, deeds(core)], [['b'], ['new', 'replaced']])
  })
})
