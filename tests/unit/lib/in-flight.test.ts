import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { InFlight } from '../../../src/lib/in-flight'
import { until } from '../../support/until'

describe('what is under way', () => {
  test('is waited for by everybody who asks, and nothing new begins', async () => {
    const inFlight = new InFlight()
    const leaves = [inFlight.enter(), inFlight.enter()]
    inFlight.close()
    assert.throws(() => inFlight.enter(), { code: 'stopping' })
    let drained = 0
    const drains = [inFlight.drain(60_000), inFlight.drain(60_000)].map(drain => drain.then(() => drained++))
    leaves[0]?.()
    leaves[0]?.()
    await new Promise(resolve => setImmediate(resolve))
    assert.equal(drained, 0)
    leaves[1]?.()
    await until('both are told', () => drained === 2, 1_000)
    await Promise.all(drains)
    await inFlight.drain(60_000)
  })

  test('is not waited for longer than one asks', async () => {
    const inFlight = new InFlight()
    inFlight.enter()
    await inFlight.drain(20)
  })
})
