import assert from 'node:assert/strict'
import { test } from 'node:test'
import { channel, Discord } from './discord'
import { group, Telegram } from './telegram'

const log = Array.from({ length: 1000 }, (_, index) => `line ${String(index).padStart(4, '0')} xxxxxxxxx\n`).join('')

for (const [name, start, to, most] of [
  ['Telegram', () => Telegram.start(), `telegram:group:${group}`, 4096],
  ['Discord', () => Discord.start(), `discord:group:${channel}`, 2000],
] as const) {
  test(`a log of 20,000 characters is divided at its lines on ${name}`, async () => {
    const platform = await start()
    const relay = await platform.relay({ longText: 'divide' })
    const { status, body } = await relay.send({ to, msg: log })
    await relay.stop()
    await platform.server.stop()
    assert.equal(status, 200, body.msg)
    assert.equal(platform.arrived.length, Math.ceil(1000 / Math.floor((most - 8) / 20)))
    const lines = platform.arrived.flatMap(({ text }, index, { length }) => {
      assert(text.length <= most && text.startsWith(`(${index + 1}/${length})\n`), text.slice(0, 20))
      return text.split('\n').slice(1)
    })
    assert.deepEqual(lines, log.trimEnd().split('\n'))
  })
}
