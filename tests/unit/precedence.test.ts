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
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())

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
    mock.timers.tick(15)
    precedence.accepted()
    mock.timers.tick(19)
    await settle()
    assert.equal(passed(), 8)
    mock.timers.tick(1)
    await settle()
    assert.equal(passed(), 100)
    assert.equal((await ask(precedence, 100))(), 100)
  })
})
