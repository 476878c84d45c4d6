import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { fieldsOf, toText } from '../../src/lib/shape'
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

async function stateOf({ ask }: PlatformCaller): Promise<string> {
  const { data: { bots } } = await ask('/statusz')
  const { status, cause } = fieldsOf([bots].flat()[0])
  return `${toText(status)}: ${toText(cause)}`
}

describe('what is accepted for later arrives', () => {
  for (const [protocol, path] of [['server', /\/getMe$/], ['polling', /\/getWebhookInfo$/]] as const) {
    test(`within ten seconds where Telegram is away for a moment at the start: ${protocol}`, async t => {
      const telegram = await Telegram.start()
      telegram.server.fault({ path, answer: 'cut' })
      const begun = performance.now()
      const caller = await start(t, telegram, { protocol })
      const id = await caller.queue({ msg: 'a' })
      const failed = 'offline: the bot is not connected (connection closed before the answer was complete (UND_ERR_SOCKET))'
      await until('its failure is known', async () => await stateOf(caller) === failed)
      await caller.reaches(id, 'sent')
      assert(performance.now() - begun < 10_000)
      assert.deepEqual(telegram.messages.map(({ text }) => text), ['a'])
    })
  }

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
