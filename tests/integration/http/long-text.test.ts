import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { fieldsOf } from '../../../src/lib/shape'
import type { Config } from '../../../src/config/schema'
import { read, relayFor, type Reply, type TestRelay } from '../../support/relay'
import { left } from '../hooks/support'
import { failureOf, group, idsOf, outline } from '../webhook/support'

const log = Array.from({ length: 1000 }, (_, index) => `line ${String(index).padStart(4, '0')} xxxxxxxxx\n`).join('')
const lines = log.split('\n')
const excerpt = log.slice(0, 999)
const limited = { name: 'limited', key: 'the-secret-of-limited', rate: 5 }

const doors = {
  webhook: relay => relay.send({ group_id: group, msg: log }),
  send: async relay => read(await relay.request(`/send/group:${group}`, { method: 'POST', body: log })),
  hooks: async relay => read(await relay.request(`/hooks/message/group:${group}`, { method: 'POST', body: JSON.stringify({ text: log }) })),
  onebot: relay => relay.request('/onebot/send_group_msg', {
    method: 'POST', body: JSON.stringify({ group_id: group, message: log }), headers: { 'content-type': 'application/json' },
  }),
} satisfies Record<string, (relay: TestRelay) => Promise<{ status: number }>>

const relayWith = (t: TestContext, config: Config = {}): Promise<TestRelay> => (
  relayFor(t, { config: { chatApiMaxRetries: 0, keys: [limited], ...config } })
)

/** The lines of the messages, each of which has its number before them. */
function joined(relay: TestRelay): string[] {
  const texts = outline(relay)
  return texts.flatMap((text, index) => {
    const [label, ...rest] = text.split('\n')
    assert.equal(label, `(${index + 1}/${texts.length})`)
    assert(text.length <= 4500)
    return rest
  })
}

/** The content of the file that was sent. */
function fileOf({ simulator }: TestRelay): string {
  const [call] = simulator.calls.filter(({ action }) => action === 'upload_group_file')
  const { file, name } = fieldsOf(call?.params)
  assert.equal(name, 'message.txt')
  return Buffer.from(String(file).replace('base64://', ''), 'base64').toString()
}

/** Sends the log through each door, and looks at what has arrived each time. */
async function eachDoor(relay: TestRelay, look: (door: string) => void): Promise<void> {
  for (const [door, send] of Object.entries(doors)) {
    relay.simulator.clear()
    assert.equal((await send(relay)).status, 200, door)
    await left(relay)
    look(door)
  }
}

describe('a log of 20,000 characters goes through each door', () => {
  test('as before where nothing is set', async t => {
    const relay = await relayWith(t)
    await eachDoor(relay, door => {
      const isFile = door === 'send' || door === 'hooks'
      assert.deepEqual(outline(relay), isFile ? [excerpt, '[file]'] : [log], door)
    })
  })

  test('as its beginning and a file', async t => {
    const relay = await relayWith(t, { longText: 'file' })
    await eachDoor(relay, door => {
      assert.deepEqual(outline(relay), [excerpt, '[file]'], door)
      assert.equal(fileOf(relay).trimEnd(), log.trimEnd(), door)
    })
  })

  test('as several messages', async t => {
    const relay = await relayWith(t, { longText: 'divide' })
    await eachDoor(relay, door => {
      assert.deepEqual(joined(relay).slice(0, 1000), lines.slice(0, 1000), door)
      assert.equal(outline(relay).length, 5, door)
    })
  })
})

describe('a divided text', () => {
  test('of which a part is refused fails, and says that the others were sent', async t => {
    const relay = await relayWith(t, { longText: 'divide' })
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    assert.match(failureOf(await doors.webhook(relay), 502), /\(the other parts of the message were sent\)$/)
    assert.equal(outline(relay).length, 4)
    relay.simulator.clear()
    relay.simulator.fault({ fault: { kind: 'refuse' }, times: 5 })
    assert.doesNotMatch(failureOf(await doors.webhook(relay), 502), /other parts/)
  })

  test('is shown by a dry run, and a repeated key sends nothing more', async t => {
    const relay = await relayWith(t, { longText: 'divide' })
    const shown = await read(await relay.request('/webhook?dry_run=1', { method: 'POST', body: JSON.stringify({ group_id: group, msg: log }) }))
    const { messages } = shown.data
    assert(Array.isArray(messages) && messages.length === 5)
    assert.deepEqual(outline(relay), [])
    const ask = (): Promise<Reply> => relay.send({ group_id: group, msg: log }, { 'idempotency-key': 'a' })
    assert.deepEqual(idsOf(await ask()), idsOf(await ask()))
    assert.equal(outline(relay).length, 5)
  })

  test('counts with all its parts for the rate of a key', async t => {
    const relay = await relayWith(t, { longText: 'divide' })
    const ask = (msg: string): Promise<Reply> => relay.send({ group_id: group, msg }, { authorization: `Bearer ${limited.key}` })
    idsOf(await ask(log))
    failureOf(await ask('more'), 429)
  })
})
