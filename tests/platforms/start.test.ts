import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { fieldsOf } from '../../src/lib/shape'
import { RelayProcess } from '../faults/process'
import { temporaryFolder } from '../support/folder'
import { apiKey } from '../support/relay'
import { until } from '../support/until'
import { callerOf, type PlatformCaller } from './caller'
import { group, refuse, Telegram } from './telegram'

/** A process with the adapter of Telegram, in which a minute takes a second. */
async function start(t: TestContext, telegram: Telegram, more: object): Promise<PlatformCaller> {
  const { name, config } = telegram.adapter
  const adapter = { name, config: { ...config, ...more } }
  const process = await RelayProcess.start({ apiKey, platform: { adapter }, folder: temporaryFolder(), haste: 60, config: {} })
  t.after(async () => {
    await process.end('SIGKILL')
    await telegram.server.stop()
  })
  return callerOf(() => process, `telegram:group:${group}`)
}

async function stateOf({ ask }: PlatformCaller): Promise<unknown> {
  const { data: { bots } } = await ask('/statusz')
  return fieldsOf([bots].flat()[0]).status
}

describe('what is accepted for later arrives', () => {
  test('where Telegram cannot be reached at the start', async t => {
    const telegram = await Telegram.start()
    telegram.server.fault({ path: /\/getMe$/, answer: 'cut', times: Infinity })
    const caller = await start(t, telegram, {})
    const id = await caller.queue({ msg: 'a' })
    const logins = (): number => telegram.server.callsTo(/\/getMe$/).length
    await until('the login is tried again', () => logins() > 1)
    assert.equal(await stateOf(caller), 'connecting')
    telegram.server.clear()
    await caller.reaches(id, 'sent')
    assert.deepEqual(telegram.messages.map(({ text }) => text), ['a'])
  })

  test('where the adapter gives up after failed polls', async t => {
    const telegram = await Telegram.start()
    const path = /\/getUpdates$/
    telegram.server.fault({ path, answer: { body: { ok: true, result: [] } } })
    telegram.server.fault({ path, answer: refuse(409, 'Conflict: terminated by other getUpdates request'), times: 2 })
    const caller = await start(t, telegram, { protocol: 'polling', pollingTimeout: 1_000, retryTimes: 0, retryInterval: 20 })
    await until('the polls have failed', () => telegram.server.callsTo(path).length === 3)
    const id = await caller.queue({ msg: 'a' })
    await caller.reaches(id, 'sent')
    assert.deepEqual(telegram.messages.map(({ text }) => text), ['a'])
  })
})
