import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { Precedence } from '../../src/outbox/precedence'

/** Asks to go on so often, and tells how many may. */
async function ask(precedence: Precedence, count: number): Promise<() => number> {
  let passed = 0
  for (let asked = 0; asked < count; asked++) void Promise.resolve(precedence.pass()).then(() => passed++)
  await settle()
  return () => passed
}

/** Lets what was decided arrive. */
async function settle(): Promise<void> {
  for (let round = 0; round < 5; round++) await Promise.resolve()
}

describe('precedence of accepting', () => {
  let now = 0

  function tick(time: number): void {
    now += time
    mock.timers.tick(time)
  }

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] })
    mock.method(performance, 'now', () => now)
  })
  afterEach(() => {
    mock.timers.reset()
    mock.restoreAll()
  })

  test('holds nobody up while nothing is accepted', async () => {
    assert.equal((await ask(new Precedence(), 100))(), 100)
  })

  test('lets a few deliveries go on at once, and then one for 32 accepted', async () => {
    const precedence = new Precedence()
    precedence.accepted()
    const passed = await ask(precedence, 100)
    assert.equal(passed(), 8)
    for (let accepted = 1; accepted <= 64; accepted++) precedence.accepted()
    await settle()
    assert.equal(passed(), 10)
  })

  test('is over after a moment without a new one', async () => {
    const precedence = new Precedence()
    precedence.accepted()
    const passed = await ask(precedence, 100)
    tick(15)
    precedence.accepted()
    tick(19)
    await settle()
    assert.equal(passed(), 8)
    tick(1)
    await settle()
    assert.equal(passed(), 100)
    assert.equal((await ask(precedence, 100))(), 100)
  })

  test('is not over because the process was held up', async () => {
    const precedence = new Precedence()
    precedence.accepted()
    const passed = await ask(precedence, 100)
    now += 19
    precedence.accepted()
    // The timer goes off late, right after that one.
    now += 6
    mock.timers.tick(20)
    await settle()
    assert.equal(passed(), 8)
    tick(14)
    await settle()
    assert.equal(passed(), 100)
  })
})
