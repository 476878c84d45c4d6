import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Registry, removeFrom } from '../../../src/lib/transient'

describe('a registry', () => {
  test('keeps entries by their names, in the order in which they came', () => {
    const registry = new Registry<number>()
    for (const [name, value] of [['b', 1], ['a', 2], ['c', 3], ['b', 4]] as const) registry.set(name, value)
    assert.equal(registry.size, 3)
    assert.deepEqual(registry.names(), ['b', 'a', 'c'])
    assert.deepEqual(registry.values(), [4, 2, 3])
    assert.equal(registry.get('a'), 2)
    assert.equal(registry.delete('a'), true)
    assert.equal(registry.delete('a'), false)
    assert.equal(registry.get('a'), undefined)
    assert.deepEqual([registry.size, registry.values()], [2, [4, 3]])
  })

  test('has nothing that was not put there', () => {
    const registry = new Registry<unknown>()
    for (const name of ['constructor', 'toString', '__proto__']) {
      assert.equal(registry.get(name), undefined)
      assert.equal(registry.delete(name), false)
    }
    assert.equal(registry.size, 0)
  })
})

test('an entry is removed from a list once, wherever it is', () => {
  for (const entry of [1, 2, 3]) {
    const list = [1, 2, 3]
    assert.equal(removeFrom(list, entry), true)
    assert.deepEqual(list.sort(), [1, 2, 3].filter(other => other !== entry))
    assert.equal(removeFrom(list, entry), false)
  }
})
