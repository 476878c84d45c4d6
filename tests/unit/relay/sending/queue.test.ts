import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { RelayError } from '../../../../src/errors'
import { Queues, type QueueOptions, type Slot } from '../../../../src/relay/sending/queue'

beforeEach(() => {
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 1_000_000 })
})
afterEach(() => mock.timers.reset())

function queuesWith(options: Partial<QueueOptions> = {}): Queues {
  return new Queues({ interval: 0, capacity: 1000, pauseAfter: 5, pauseFor: 60_000, ...options }, () => undefined, () => Date.now())
}

/** Lets promises that are resolved call back. */
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}

/** A slot that must be there at once. */
function atOnce(slot: Slot | Promise<Slot>): Slot {
  assert(!(slot instanceof Promise))
  return slot
}

/** Enters, and takes down under a name when it is let in or refused. */
function queue(queues: Queues, log: string[], name: string, options: Parameters<Queues['enter']>[1] = {}): Promise<Slot | undefined> {
  return Promise.resolve()
    .then(() => queues.enter('a', options))
    .then(slot => {
      log.push(name)
      return slot
    }, (error: unknown) => {
      log.push(`${name} ${RelayError.from(error).code}`)
      return undefined
    })
}

function fail(queues: Queues, times: number, name = 'a'): void {
  for (let i = 0; i < times; i++) {
    const slot = atOnce(queues.enter(name))
    slot.judge('bad')
    slot.release()
  }
}

const isCode = (code: string) => (error: unknown): boolean => error instanceof RelayError && error.code === code

describe('a queue', () => {
  test('lets them through one at a time, in their order', async () => {
    const queues = queuesWith()
    const log: string[] = []
    const first = atOnce(queues.enter('a'))
    const second = queue(queues, log, 'second')
    const third = queue(queues, log, 'third')
    await settle()
    assert.deepEqual(log, [])
    first.release()
    await settle()
    assert.deepEqual(log, ['second']);
    (await second)?.release();
    (await third)?.release()
    assert.deepEqual(log, ['second', 'third'])
  })

  test('does not wait for another queue', () => {
    const queues = queuesWith()
    atOnce(queues.enter('a'))
    atOnce(queues.enter('b'))
  })

  test('is forgotten when nothing is left to remember', () => {
    const queues = queuesWith({ interval: 500 })
    const slot = atOnce(queues.enter('a'))
    slot.sent()
    slot.judge('good')
    slot.release()
    assert.equal(queues.size, 1)
    mock.timers.tick(500)
    assert.equal(queues.size, 0)
  })

  test('is forgotten at once where there is no interval', () => {
    const queues = queuesWith()
    atOnce(queues.enter('a')).release()
    assert.equal(queues.size, 0)
  })

  test('forgets one who goes away, and only that one', async () => {
    const queues = queuesWith()
    const log: string[] = []
    const gone = new AbortController()
    const first = atOnce(queues.enter('a'))
    void queue(queues, log, 'gone', { signal: () => gone.signal })
    void queue(queues, log, 'there')
    await settle()
    gone.abort()
    first.release()
    await settle()
    assert.deepEqual(log, ['gone unsent', 'there'])
  })

  test('tells one whose time is over so', async () => {
    const queues = queuesWith()
    const log: string[] = []
    atOnce(queues.enter('a'))
    void queue(queues, log, 'late', { signal: () => AbortSignal.abort(new RelayError('expired')) })
    await settle()
    assert.deepEqual(log, ['late expired'])
    assert.deepEqual(queues.states(), [])
  })
})

describe('the interval', () => {
  test('is kept from the end of a send to the next slot', async () => {
    const queues = queuesWith({ interval: 1000 })
    const log: string[] = []
    const first = atOnce(queues.enter('a'))
    first.sent()
    first.release()
    void queue(queues, log, 'second')
    await settle()
    mock.timers.tick(999)
    await settle()
    assert.deepEqual(log, [])
    mock.timers.tick(1)
    await settle()
    assert.deepEqual(log, ['second'])
  })

  test('holds nobody up who comes later than that', () => {
    const queues = queuesWith({ interval: 1000 })
    const first = atOnce(queues.enter('a'))
    first.sent()
    first.release()
    mock.timers.tick(1000)
    atOnce(queues.enter('a'))
  })

  test('is waited out in the queue, so that one who goes away meanwhile is removed', async () => {
    const queues = queuesWith({ interval: 1000 })
    const log: string[] = []
    const first = atOnce(queues.enter('a'))
    first.sent()
    first.release()
    const gone = new AbortController()
    void queue(queues, log, 'second', { signal: () => gone.signal })
    await settle()
    gone.abort()
    mock.timers.tick(1000)
    await settle()
    assert.deepEqual(log, ['second unsent'])
    assert.equal(queues.size, 0)
  })

  test('is kept between two messages of one slot', async () => {
    const queues = queuesWith({ interval: 1000 })
    const slot = atOnce(queues.enter('a'))
    assert.equal(slot.pace(), undefined)
    slot.sent()
    let rested = false
    void slot.pace()?.then(() => rested = true)
    mock.timers.tick(999)
    await settle()
    assert(!rested)
    mock.timers.tick(1)
    await settle()
    assert(rested)
  })

  test('lets nobody overtake those who wait for it', async () => {
    const queues = queuesWith({ interval: 1000 })
    const log: string[] = []
    const first = atOnce(queues.enter('a'))
    first.sent()
    first.release()
    void queue(queues, log, 'second')
    await settle()
    // The time is over, but the timer has not gone off yet.
    mock.timers.reset()
    mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 1_002_000 })
    void queue(queues, log, 'third')
    await settle()
    assert.deepEqual(log, ['second'])
  })

  test('does not last for hours when the clock is set back', async t => {
    mock.timers.reset()
    const queues = new Queues({ interval: 20, capacity: 1000, pauseAfter: 5, pauseFor: 60_000 })
    const { now } = Date
    const hours = 10_000_000
    const ahead = t.mock.method(Date, 'now', () => now() + hours)
    const first = atOnce(queues.enter('a'))
    first.sent()
    first.release()
    ahead.mock.restore()
    const second = await queues.enter('a')
    second.release()
  })
})

describe('the capacity', () => {
  test('refuses who would be one too many, and says when to come again', () => {
    const queues = queuesWith({ capacity: 1 })
    atOnce(queues.enter('a'))
    void queues.enter('a')
    assert.throws(() => queues.enter('a'), error => error instanceof RelayError && error.code === 'queue-full' && error.headers['retry-after'] === '1')
    assert.equal(queues.capacityLeft('a'), 0)
    assert.equal(queues.capacityLeft('b'), 1)
  })

  test('of none lets through only who need not wait', () => {
    const queues = queuesWith({ capacity: 0 })
    const slot = atOnce(queues.enter('a'))
    assert.throws(() => queues.enter('a'), isCode('queue-full'))
    assert(!queues.isIdle('a'))
    slot.release()
    assert(queues.isIdle('a'))
    atOnce(queues.enter('a'))
  })

  test('does not concern the patient', async () => {
    const queues = queuesWith({ capacity: 0 })
    const log: string[] = []
    const slot = atOnce(queues.enter('a'))
    void queue(queues, log, 'patient', { isPatient: true })
    await settle()
    slot.release()
    await settle()
    assert.deepEqual(log, ['patient'])
  })
})

describe('a pause', () => {
  test('begins with the fifth failure in a row, and tells when it ends', () => {
    const queues = queuesWith()
    fail(queues, 4)
    const slot = atOnce(queues.enter('a'))
    slot.judge('none')
    slot.release()
    fail(queues, 1)
    mock.timers.tick(1000)
    assert.throws(() => queues.enter('a'), error => error instanceof RelayError && error.code === 'paused' && error.headers['retry-after'] === '59')
    assert.deepEqual(queues.states(), [
      { queue: 'a', waiting: 0, callers: 0, isBusy: false, pausedUntil: 1_060_000, reason: undefined },
    ])
    atOnce(queues.enter('b'))
  })

  test('does not begin when one succeeded in between', () => {
    const queues = queuesWith()
    fail(queues, 4)
    const slot = atOnce(queues.enter('a'))
    slot.judge('good')
    slot.release()
    fail(queues, 4)
    atOnce(queues.enter('a'))
  })

  test('slots those away who wait, but not the patient', async () => {
    const queues = queuesWith({ pauseAfter: 1 })
    const log: string[] = []
    const slot = atOnce(queues.enter('a'))
    void queue(queues, log, 'first')
    void queue(queues, log, 'patient', { isPatient: true })
    void queue(queues, log, 'second')
    await settle()
    slot.judge('bad')
    slot.release()
    await settle()
    assert.deepEqual(log, ['first paused', 'second paused'])
    mock.timers.tick(60_000)
    await settle()
    assert.deepEqual(log, ['first paused', 'second paused', 'patient'])
  })

  test('is followed by one that probes: its failure pauses the queue again', async () => {
    const queues = queuesWith()
    const log: string[] = []
    fail(queues, 5)
    mock.timers.tick(60_000)
    const probe = atOnce(queues.enter('a'))
    void queue(queues, log, 'behind')
    await settle()
    probe.judge('bad')
    probe.release()
    await settle()
    assert.deepEqual(log, ['behind paused'])
    assert.throws(() => queues.enter('a'), isCode('paused'))
  })

  test('is over for good when the probe succeeds', () => {
    const queues = queuesWith()
    fail(queues, 5)
    mock.timers.tick(60_000)
    const probe = atOnce(queues.enter('a'))
    probe.judge('good')
    probe.release()
    fail(queues, 4)
    atOnce(queues.enter('a'))
  })

  test('is waited out by a slot that goes on', async () => {
    const queues = queuesWith({ pauseAfter: 1 })
    const slot = atOnce(queues.enter('a'))
    slot.judge('bad')
    let rested = false
    void slot.pace()?.then(() => rested = true)
    await settle()
    assert(!rested)
    mock.timers.tick(60_000)
    await settle()
    assert(rested)
  })

  test('leaves nothing behind in the end', () => {
    const queues = queuesWith({ interval: 10 })
    fail(queues, 1)
    mock.timers.tick(60_000)
    assert.equal(queues.size, 0)
    fail(queues, 5)
    mock.timers.tick(120_000)
    assert.equal(queues.size, 0)
  })

  test('of weeks is not forgotten at once', () => {
    const queues = queuesWith({ pauseAfter: 1, pauseFor: 2_147_483_000 })
    fail(queues, 1)
    mock.timers.tick(1000)
    assert.throws(() => queues.enter('a'), isCode('paused'))
  })
})

describe('a slot that cannot go on', () => {
  test('slots those away who wait behind it, but not the patient', async () => {
    const queues = queuesWith()
    const log: string[] = []
    const slot = atOnce(queues.enter('a'))
    void queue(queues, log, 'first')
    void queue(queues, log, 'patient', { isPatient: true })
    await settle()
    slot.turnAway(new RelayError('unsent'))
    await settle()
    assert.deepEqual(log, ['first unsent'])
    assert.equal(queues.states()[0]?.waiting, 1)
  })
})

describe('closing', () => {
  test('turns away all who wait and all who come, and ends the rests of slots', async () => {
    const queues = queuesWith({ interval: 3_600_000 })
    const log: string[] = []
    const slot = atOnce(queues.enter('a'))
    slot.sent()
    let rested = false
    void slot.pace()?.then(() => rested = true)
    void queue(queues, log, 'waiting')
    void queue(queues, log, 'patient', { isPatient: true })
    await settle()
    queues.close()
    await settle()
    assert.deepEqual(log, ['waiting stopping', 'patient stopping'])
    assert(rested)
    assert.equal(slot.pace(), undefined)
    slot.release()
    assert.throws(() => queues.enter('a'), isCode('stopping'))
  })

  test('forgets neither the interval nor a pause', async () => {
    const options = { interval: 1000, capacity: 1000, pauseAfter: 1, pauseFor: 60_000 }
    const queues = queuesWith(options)
    const log: string[] = []
    const slot = atOnce(queues.enter('a'))
    slot.sent()
    slot.release()
    fail(queues, 1, 'b')
    queues.close()
    queues.open(options)
    void queue(queues, log, 'next')
    await settle()
    assert.deepEqual(log, [])
    mock.timers.tick(1000)
    await settle()
    assert.deepEqual(log, ['next'])
    assert.throws(() => queues.enter('b'), isCode('paused'))
  })
})
