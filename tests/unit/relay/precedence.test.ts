import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { Precedence } from '../../../src/relay/precedence'

describe('precedence of accepting', () => {
  let now = 0
  let idle = 0
  let precedence = new Precedence()
  let passed = 0

  /** Lets time pass, of which the process is idle for so much, in milliseconds. */
  function tick(time: number, idleTime = 0): void {
    now += time
    idle += idleTime
    mock.timers.tick(time)
  }

  /** Lets what was decided arrive. */
  async function settle(): Promise<void> {
    for (let round = 0; round < 5; round++) await Promise.resolve()
  }

  /** Asks to go on so often. */
  async function ask(count: number): Promise<void> {
    for (let asked = 0; asked < count; asked++) void Promise.resolve(precedence.pass()).then(() => passed++)
    await settle()
  }

  /** A process that does not keep up with the requests that come. */
  async function flood(): Promise<void> {
    precedence.accept()
    tick(20)
    await ask(1)
    precedence.accept()
    await ask(100)
  }

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] })
    mock.method(performance, 'now', () => now)
    mock.method(performance, 'eventLoopUtilization', () => ({ idle, active: 0, utilization: 0 }))
    now = idle = passed = 0
    precedence = new Precedence()
  })
  afterEach(() => {
    mock.timers.reset()
    mock.restoreAll()
  })

  test('holds nobody up while the process keeps up', async () => {
    for (let round = 0; round < 50; round++) {
      precedence.accept()
      await ask(2)
      tick(20, 6)
    }
    assert.equal(passed, 100)
  })

  test('lets a few deliveries go on in a flood, and then one for 32 accepted', async () => {
    await flood()
    assert.equal(passed, 8)
    for (let accepted = 0; accepted < 64; accepted++) precedence.accept()
    await settle()
    assert.equal(passed, 10)
  })

  test('is over a moment after the last request', async () => {
    await flood()
    for (let time = 0; time < 240; time += 20) {
      tick(20)
      await settle()
      assert.equal(passed, 8)
    }
    for (let round = 1; round <= 12; round++) {
      tick(20)
      await settle()
      assert.equal(passed, Math.min(8 + 8 * round, 101))
    }
    await ask(100)
    assert.equal(passed, 201)
  })

  test('is over once the process keeps up again', async () => {
    await flood()
    precedence.accept()
    tick(19, 10)
    precedence.accept()
    tick(1)
    await settle()
    assert.equal(passed, 16)
  })

  test('holds no delivery up for more than two seconds', async () => {
    await flood()
    for (let time = 0; time < 1_980; time += 10) {
      precedence.accept()
      tick(10)
    }
    await settle()
    const before = passed
    assert(before < 20)
    for (let time = 0; time < 40; time += 10) {
      precedence.accept()
      tick(10)
    }
    await settle()
    assert.equal(passed, 101)
  })
})
