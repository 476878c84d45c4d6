import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { Lanes, type LaneOptions, type Turn } from '../../../src/relay/queue'
import { RelayError } from '../../../src/errors'

beforeEach(() => {
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 1_000_000 })
})
afterEach(() => mock.timers.reset())

function lanesWith(options: Partial<LaneOptions> = {}): Lanes {
  return new Lanes({ interval: 0, limit: 1000, pauseAfter: 5, pauseFor: 60_000, ...options })
}

/** Lets promises that are resolved call back. */
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}

/** A turn that must be there at once. */
function atOnce(turn: Turn | Promise<Turn>): Turn {
  assert(!(turn instanceof Promise))
  return turn
}

/** Enters, and takes down under a name when it is let in or refused. */
function queue(lanes: Lanes, log: string[], name: string, options: Parameters<Lanes['enter']>[1] = {}): Promise<Turn | undefined> {
  return Promise.resolve()
    .then(() => lanes.enter('a', options))
    .then(turn => {
      log.push(name)
      return turn
    }, (error: unknown) => {
      log.push(`${name} ${RelayError.from(error).code}`)
      return undefined
    })
}

function fail(lanes: Lanes, times: number): void {
  for (let i = 0; i < times; i++) {
    const turn = atOnce(lanes.enter('a'))
    turn.judge('bad')
    turn.end()
  }
}

const isCode = (code: string) => (error: unknown): boolean => error instanceof RelayError && error.code === code

describe('a lane', () => {
  test('lets them through one at a time, in their order', async () => {
    const lanes = lanesWith()
    const log: string[] = []
    const first = atOnce(lanes.enter('a'))
    const second = queue(lanes, log, 'second')
    const third = queue(lanes, log, 'third')
    await settle()
    assert.deepEqual(log, [])
    first.end()
    await settle()
    assert.deepEqual(log, ['second']);
    (await second)?.end();
    (await third)?.end()
    assert.deepEqual(log, ['second', 'third'])
  })

  test('does not wait for another lane', () => {
    const lanes = lanesWith()
    atOnce(lanes.enter('a'))
    atOnce(lanes.enter('b'))
  })

  test('is forgotten when nothing is left to remember', () => {
    const lanes = lanesWith({ interval: 500 })
    const turn = atOnce(lanes.enter('a'))
    turn.sent()
    turn.judge('good')
    turn.end()
    assert.equal(lanes.size, 1)
    mock.timers.tick(500)
    assert.equal(lanes.size, 0)
  })

  test('is forgotten at once where there is no interval', () => {
    const lanes = lanesWith()
    atOnce(lanes.enter('a')).end()
    assert.equal(lanes.size, 0)
  })

  test('forgets one who goes away, and only that one', async () => {
    const lanes = lanesWith()
    const log: string[] = []
    const gone = new AbortController()
    const first = atOnce(lanes.enter('a'))
    void queue(lanes, log, 'gone', { signal: () => gone.signal })
    void queue(lanes, log, 'there')
    await settle()
    gone.abort()
    first.end()
    await settle()
    assert.deepEqual(log, ['gone unsent', 'there'])
  })

  test('tells one whose time is over so', async () => {
    const lanes = lanesWith()
    const log: string[] = []
    atOnce(lanes.enter('a'))
    void queue(lanes, log, 'late', { signal: () => AbortSignal.abort(new RelayError('expired')) })
    await settle()
    assert.deepEqual(log, ['late expired'])
    assert.deepEqual(lanes.states(), [])
  })
})

describe('the interval', () => {
  test('is kept from the end of a send to the next turn', async () => {
    const lanes = lanesWith({ interval: 1000 })
    const log: string[] = []
    const first = atOnce(lanes.enter('a'))
    first.sent()
    first.end()
    void queue(lanes, log, 'second')
    await settle()
    mock.timers.tick(999)
    await settle()
    assert.deepEqual(log, [])
    mock.timers.tick(1)
    await settle()
    assert.deepEqual(log, ['second'])
  })

  test('holds nobody up who comes later than that', () => {
    const lanes = lanesWith({ interval: 1000 })
    const first = atOnce(lanes.enter('a'))
    first.sent()
    first.end()
    mock.timers.tick(1000)
    atOnce(lanes.enter('a'))
  })

  test('is waited out in the lane, so that one who goes away meanwhile is removed', async () => {
    const lanes = lanesWith({ interval: 1000 })
    const log: string[] = []
    const first = atOnce(lanes.enter('a'))
    first.sent()
    first.end()
    const gone = new AbortController()
    void queue(lanes, log, 'second', { signal: () => gone.signal })
    await settle()
    gone.abort()
    mock.timers.tick(1000)
    await settle()
    assert.deepEqual(log, ['second unsent'])
    assert.equal(lanes.size, 0)
  })

  test('is kept between two messages of one turn', async () => {
    const lanes = lanesWith({ interval: 1000 })
    const turn = atOnce(lanes.enter('a'))
    assert.equal(turn.pace(), undefined)
    turn.sent()
    let rested = false
    void turn.pace()?.then(() => rested = true)
    mock.timers.tick(999)
    await settle()
    assert(!rested)
    mock.timers.tick(1)
    await settle()
    assert(rested)
  })

  test('lets nobody overtake those who wait for it', async () => {
    const lanes = lanesWith({ interval: 1000 })
    const log: string[] = []
    const first = atOnce(lanes.enter('a'))
    first.sent()
    first.end()
    void queue(lanes, log, 'second')
    await settle()
    // The time is over, but the timer has not gone off yet.
    mock.timers.reset()
    mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 1_002_000 })
    void queue(lanes, log, 'third')
    await settle()
    assert.deepEqual(log, ['second'])
  })

  test('does not last for hours when the clock is set back', async t => {
    mock.timers.reset()
    const lanes = lanesWith({ interval: 20 })
    const { now } = Date
    const hours = 10_000_000
    const ahead = t.mock.method(Date, 'now', () => now() + hours)
    const first = atOnce(lanes.enter('a'))
    first.sent()
    first.end()
    ahead.mock.restore()
    const second = await lanes.enter('a')
    second.end()
  })
})

describe('the limit', () => {
  test('refuses who would be one too many, and says when to come again', () => {
    const lanes = lanesWith({ limit: 1 })
    atOnce(lanes.enter('a'))
    void lanes.enter('a')
    assert.throws(() => lanes.enter('a'), error => error instanceof RelayError && error.code === 'queue-full' && error.headers['retry-after'] === '1')
    assert.equal(lanes.room('a'), 0)
    assert.equal(lanes.room('b'), 1)
  })

  test('of none lets through only who need not wait', () => {
    const lanes = lanesWith({ limit: 0 })
    const turn = atOnce(lanes.enter('a'))
    assert.throws(() => lanes.enter('a'), isCode('queue-full'))
    assert(!lanes.isIdle('a'))
    turn.end()
    assert(lanes.isIdle('a'))
    atOnce(lanes.enter('a'))
  })

  test('does not concern the patient', async () => {
    const lanes = lanesWith({ limit: 0 })
    const log: string[] = []
    const turn = atOnce(lanes.enter('a'))
    void queue(lanes, log, 'patient', { patient: true })
    await settle()
    turn.end()
    await settle()
    assert.deepEqual(log, ['patient'])
  })
})

describe('a pause', () => {
  test('begins with the fifth failure in a row, and tells when it ends', () => {
    const lanes = lanesWith()
    fail(lanes, 4)
    const turn = atOnce(lanes.enter('a'))
    turn.judge('none')
    turn.end()
    fail(lanes, 1)
    mock.timers.tick(1000)
    assert.throws(() => lanes.enter('a'), error => error instanceof RelayError && error.code === 'paused' && error.headers['retry-after'] === '59')
    assert.deepEqual(lanes.states(), [{ lane: 'a', waiting: 0, pausedUntil: 1_060_000 }])
    atOnce(lanes.enter('b'))
  })

  test('does not begin when one succeeded in between', () => {
    const lanes = lanesWith()
    fail(lanes, 4)
    const turn = atOnce(lanes.enter('a'))
    turn.judge('good')
    turn.end()
    fail(lanes, 4)
    atOnce(lanes.enter('a'))
  })

  test('turns those away who wait, but not the patient', async () => {
    const lanes = lanesWith({ pauseAfter: 1 })
    const log: string[] = []
    const turn = atOnce(lanes.enter('a'))
    void queue(lanes, log, 'first')
    void queue(lanes, log, 'patient', { patient: true })
    void queue(lanes, log, 'second')
    await settle()
    turn.judge('bad')
    turn.end()
    await settle()
    assert.deepEqual(log, ['first paused', 'second paused'])
    mock.timers.tick(60_000)
    await settle()
    assert.deepEqual(log, ['first paused', 'second paused', 'patient'])
  })

  test('is followed by one that probes: its failure pauses the lane again', async () => {
    const lanes = lanesWith()
    const log: string[] = []
    fail(lanes, 5)
    mock.timers.tick(60_000)
    const probe = atOnce(lanes.enter('a'))
    void queue(lanes, log, 'behind')
    await settle()
    probe.judge('bad')
    probe.end()
    await settle()
    assert.deepEqual(log, ['behind paused'])
    assert.throws(() => lanes.enter('a'), isCode('paused'))
  })

  test('is over for good when the probe succeeds', () => {
    const lanes = lanesWith()
    fail(lanes, 5)
    mock.timers.tick(60_000)
    const probe = atOnce(lanes.enter('a'))
    probe.judge('good')
    probe.end()
    fail(lanes, 4)
    atOnce(lanes.enter('a'))
  })

  test('is waited out by a turn that goes on', async () => {
    const lanes = lanesWith({ pauseAfter: 1 })
    const turn = atOnce(lanes.enter('a'))
    turn.judge('bad')
    let rested = false
    void turn.pace()?.then(() => rested = true)
    await settle()
    assert(!rested)
    mock.timers.tick(60_000)
    await settle()
    assert(rested)
  })

  test('leaves nothing behind in the end', () => {
    const lanes = lanesWith({ interval: 10 })
    fail(lanes, 1)
    mock.timers.tick(60_000)
    assert.equal(lanes.size, 0)
    fail(lanes, 5)
    mock.timers.tick(120_000)
    assert.equal(lanes.size, 0)
  })

  test('of weeks is not forgotten at once', () => {
    const lanes = lanesWith({ pauseAfter: 1, pauseFor: 2_147_483_000 })
    fail(lanes, 1)
    mock.timers.tick(1000)
    assert.throws(() => lanes.enter('a'), isCode('paused'))
  })
})

describe('a turn that cannot go on', () => {
  test('turns those away who wait behind it, but not the patient', async () => {
    const lanes = lanesWith()
    const log: string[] = []
    const turn = atOnce(lanes.enter('a'))
    void queue(lanes, log, 'first')
    void queue(lanes, log, 'patient', { patient: true })
    await settle()
    turn.turnAway(new RelayError('unsent'))
    await settle()
    assert.deepEqual(log, ['first unsent'])
    assert.equal(lanes.states()[0]?.waiting, 1)
  })
})

describe('closing', () => {
  test('turns away all who wait and all who come, and ends the rests of turns', async () => {
    const lanes = lanesWith({ interval: 3_600_000 })
    const log: string[] = []
    const turn = atOnce(lanes.enter('a'))
    turn.sent()
    let rested = false
    void turn.pace()?.then(() => rested = true)
    void queue(lanes, log, 'waiting')
    void queue(lanes, log, 'patient', { patient: true })
    await settle()
    lanes.close()
    await settle()
    assert.deepEqual(log, ['waiting stopping', 'patient stopping'])
    assert(rested)
    assert.equal(turn.pace(), undefined)
    turn.end()
    assert.equal(lanes.size, 0)
    assert.throws(() => lanes.enter('a'), isCode('stopping'))
  })
})
