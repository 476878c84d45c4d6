import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Limiter, OverloadError, type Limits } from '../../../src/lib/limiter'

/** A limiter, and work for it that ends when told to. */
function stage(limits: Partial<Limits> = {}) {
  const controller = new AbortController()
  const limiter = new Limiter({ concurrency: 2, capacity: 2, patience: 60_000, ...limits }, controller.signal)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const run = (name: string): Promise<string> => limiter.run(() => new Promise(resolve => {
    begun.push(name)
    ends.set(name, () => resolve(name))
  }))
  return { controller, limiter, begun, run, end: (name: string) => ends.get(name)?.() }
}

describe('a limiter', () => {
  test('lets so much be under way, so much wait in order, and turns the rest away', async () => {
    const { begun, run, end } = stage()
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(run)
    await assert.rejects(run('e'), OverloadError)
    assert.deepEqual(begun, ['a', 'b'])
    end('b')
    assert.equal(await b, 'b')
    await setImmediate()
    assert.deepEqual(begun, ['a', 'b', 'c'])
    const f = run('f')
    for (const name of ['a', 'c']) end(name)
    assert.deepEqual(await Promise.all([a, c]), ['a', 'c'])
    await setImmediate()
    assert.deepEqual(begun, ['a', 'b', 'c', 'd', 'f'])
    for (const name of ['d', 'f']) end(name)
    assert.deepEqual(await Promise.all([d, f]), ['d', 'f'])
    const again = run('g')
    end('g')
    assert.equal(await again, 'g')
  })

  test('gives the place of work that fails to the next', async () => {
    const { limiter, begun, run, end } = stage({ concurrency: 1 })
    const failing = limiter.run(() => Promise.reject(new Error('failed')))
    const next = run('next')
    await assert.rejects(failing, /failed/)
    end('next')
    assert.equal(await next, 'next')
    assert.deepEqual(begun, ['next'])
  })

  test('turns away what has waited too long, and it takes no place later', async () => {
    const { begun, run, end } = stage({ concurrency: 1, patience: 20 })
    const first = run('first')
    await assert.rejects(run('late'), OverloadError)
    end('first')
    await first
    const second = run('second')
    end('second')
    await second
    assert.deepEqual(begun, ['first', 'second'])
  })

  test('begins nothing once it is aborted', async () => {
    const { controller, begun, run, end } = stage({ concurrency: 1 })
    const first = run('first')
    const waiting = run('waiting')
    controller.abort(new Error('over'))
    await assert.rejects(waiting, { name: 'Error' })
    await assert.rejects(run('new'), /over/)
    end('first')
    assert.equal(await first, 'first')
    assert.deepEqual(begun, ['first'])
  })
})
