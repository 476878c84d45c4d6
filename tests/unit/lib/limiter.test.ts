import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { Limiter, OverloadError, type Limits } from '../../../src/lib/limiter'

/** A limiter, and work for it that ends when told to. */
function stage(limits: Partial<Limits> = {}) {
  const limiter = new Limiter({ concurrency: 2, capacity: 2, patience: 60_000, ...limits })
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const run = (name: string): Promise<string> => limiter.run(() => new Promise(resolve => {
    begun.push(name)
    ends.set(name, () => resolve(name))
  }))
  return { limiter, begun, run, end: (name: string) => ends.get(name)?.() }
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

  test('turns away what has waited too long when its turn comes, and gives its place to the next', async () => {
    const { begun, run, end } = stage({ concurrency: 1, patience: 20 })
    const first = run('first')
    const late = run('late')
    await setTimeout(30)
    const next = run('next')
    end('first')
    await assert.rejects(late, OverloadError)
    await first
    end('next')
    await next
    assert.deepEqual(begun, ['first', 'next'])
  })
})
