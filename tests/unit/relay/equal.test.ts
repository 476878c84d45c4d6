import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Core, fates } from '../../support/core'

const minute = 60_000
const many = Array.from({ length: 150 }, (_, index) => index)

const kinds = {
  text: { type: 'text', text: 'equal' }, file: { type: 'file', link: { kind: 'remote', url: 'http://x/equal' } },
} as const

for (const [kind, item] of Object.entries(kinds)) {
  const more = { items: [item] }
  const shown = kind === 'text' ? 'equal' : 'file'
  /** How often it is in the chat. */
  const count = ({ port }: Core): number => port.texts.filter(text => text === shown).length

  /** Sends one after another. */
  const send = async (core: Core, ...keys: (string | undefined)[]): Promise<void> => {
    for (const key of keys) await core.run(100, core.submit('equal', { ...more, ...key !== undefined && { key } }))
  }

  /** Sends something of which nothing arrives. */
  const lose = async (core: Core): Promise<void> => {
    core.port.fates.push(fates.silent)
    void core.submit('lost', { ...more, key: 'lost' })
    await core.run(12 * minute)
    assert.equal(core.log.pop(), 'lost unanswered')
  }

  /** Asks for what was lost once more: who is told that it was sent must have a message of its own. */
  const askAgain = async (core: Core, others: number): Promise<void> => {
    assert.equal(count(core), others)
    const known = new Set(core.port.entries.map(({ id }) => id))
    const asked = core.submit('again', { ...more, key: 'lost' })
    await core.run(minute)
    const { delivery: { results: [result] } } = await asked
    assert(result)
    assert.equal(count(core), result.success ? others + 1 : others, core.log.at(-1))
    assert(!result.success || !result.messageIds.some(id => known.has(id)), 'it was told of the message of another')
  }

  describe(`a ${kind} that was lost is not taken for an equal one of the relay`, () => {
    const options = { retries: 0, retryUnanswered: false }

    test('whatever was sent meanwhile, with keys and without', async () => {
      const core = new Core(options)
      await lose(core)
      await send(core, 'a', undefined)
      for (const index of many) await core.run(100, core.submit(`other ${index}`))
      await askAgain(core, 2)
    })

    test('however many equal ones were sent right before', async () => {
      const core = new Core(options)
      await send(core, ...many.map(index => index % 2 === 0 ? String(index) : undefined))
      await lose(core)
      await askAgain(core, many.length)
    })

    test('whether that had a key, came later, or had arrived when the relay was killed', async () => {
      const core = new Core(options)
      await lose(core)
      await send(core, 'a')
      await core.run(100, core.later('equal', more))
      core.port.fates.push(fates.lost)
      await core.run(100, core.submit('killed', { ...more, key: 'killed' }))
      core.restart()
      await core.run(minute)
      await askAgain(core, 3)
    })

    test('but found where its answer was lost, beside equal ones, after the relay was killed', async () => {
      const core = new Core(options)
      await send(core, undefined)
      core.port.fates.push(fates.lost)
      core.port.isHistorySilent = true
      await core.run(15_000, core.submit('found', { ...more, key: 'found' }))
      assert.equal(core.log.at(-1), 'found unanswered')
      await send(core, 'a')
      core.port.isHistorySilent = false
      core.restart()
      await core.run(15 * minute)
      void core.submit('found', { ...more, key: 'found' })
      await core.run(minute)
      assert.deepEqual([core.log.at(-1), count(core)], ['found replay sent', 3])
    })
  })
}
