import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import type { TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { group, serveCallback, startWith, user, type Endpoint } from './support'

/** A callback that answers only when told to. */
interface Callback extends Endpoint {
  /** What was asked and not answered, the oldest first. */
  open: ServerResponse[]
  /** How often it was asked. */
  asked: () => number
}

async function startCallback(t: TestContext): Promise<Callback> {
  const open: ServerResponse[] = []
  let asked = 0
  const endpoint = await serveCallback(t, (request, response) => {
    asked++
    request.resume()
    open.push(response)
  })
  return { ...endpoint, open, asked: () => asked }
}

function say({ simulator }: TestRelay, count: number): void {
  for (let index = 0; index < count; index++) simulator.say({ group, user, text: `#ping ${index}` })
}

/** How many commands the log says were dropped, line by line. */
function dropped({ logs }: TestRelay): number[] {
  return logs.flatMap(line => {
    const count = /^message-relay warn (\d+) commands? dropped: /.exec(line)?.[1]
    return count === undefined ? [] : [Number(count)]
  })
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

test('a flood of commands whose callback hangs takes 64 connections, and the relay goes on', async t => {
  const callback = await startCallback(t)
  // Longer than a busy machine may take for all of it: none of them is to be given up.
  const { relay, passed } = await startWith(t, callback, { chatApiTimeout: 120 })
  say(relay, 1_100)
  await until('all that find no place have passed', () => passed.length === 1_100 - 64 - 256)
  assert.equal((await relay.send({ group_id: group, msg: 'meanwhile' })).status, 200)
  await until('the callback is asked', () => callback.asked() === 64)
  assert.equal(callback.mostConnections(), 64)
  assert.deepEqual(dropped(relay), [1], 'one line a minute')

  callback.open.shift()?.end('{"reply":"pong"}')
  await until('the next one is asked', () => callback.asked() === 65)
  await relay.simulator.until(({ ledger }) => ledger.some(({ text }) => text === 'pong'))
  assert(callback.mostConnections() <= 65)

  relay.unload()
  await until('every message but the answered one has passed', () => passed.length === 1_099)
  assert.equal(callback.asked(), 65, 'none begins after the end')
  assert.deepEqual(dropped(relay), [1, 779])
})

test('a command that has waited for as long as an answer may take is dropped', async t => {
  const callback = await startCallback(t)
  const { relay, passed } = await startWith(t, callback, { chatApiTimeout: 4 })
  say(relay, 64 + 256)
  await until('the callback is asked', () => callback.asked() === 64)
  assert.deepEqual(passed, [])
  await until('all have passed', () => passed.length === 64 + 256)
  // Some that wait get the places of those whose time is over a moment before their own is.
  assert(callback.asked() <= 2 * 64)
  assert(callback.mostConnections() <= 64 + 64)
  relay.unload()
  assert.equal(sum(dropped(relay)), 64 + 256 - callback.asked())
})
