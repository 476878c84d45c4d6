import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fieldsOf } from '../../../src/lib/shape'
import { useRelay } from '../../support/relay'
import { post, putTemplate } from './support'

const relay = useRelay({ config: {
  people: { worst: { onebot: 10001 }, bad: { onebot: 10002 }, usual: { onebot: 10003 } },
  targets: { ops: { to: 'group:1', mention: { critical: 'worst', warning: 'bad', info: 'usual' } } },
} })

const fixture = (name: string): unknown => fieldsOf(JSON.parse(readFileSync(join(__dirname, '../../fixtures/hooks', `${name}.json`), 'utf8'))).payload

/** Posts as a sender does. @returns who was called */
async function called(path: string, body: unknown): Promise<unknown> {
  relay.simulator.clear()
  assert.equal((await post(relay, path, body)).status, 200, path)
  const [first] = relay.simulator.ledger[0]?.segments ?? []
  return first?.type === 'at' ? first.data.qq : 'nobody'
}

describe('how bad an event is', () => {
  test('is what its source says, and calls people by it', async () => {
    for (const [source, name, expected] of [
      ['alertmanager', 'firing-one', '10001'], ['uptime-kuma', 'down', '10001'], ['grafana', 'firing-one', '10002'], ['apprise', 'attachment', '10002'],
      ['message', 'gotify', '10003'], ['alertmanager', 'resolved-one', 'nobody'], ['uptime-kuma', 'up', 'nobody'],
    ] as const) assert.equal(await called(`${source}/ops`, fixture(`${source}/${name}`)), expected, `${source} ${name}`)
  })

  test('is by the usual words of a sender that nobody has described', async () => {
    assert.equal(await called('beacon/ops', { text: 'a', severity: 'CRITICAL' }), '10001')
    assert.equal(await called('beacon/ops', { text: 'b', status: 'recovered' }), 'nobody')
    assert.equal(await called('beacon/ops', { text: 'c', priority: 8 }), '10002')
  })

  test('is by a tag of a template, or the address, which wins but for an end', async () => {
    await putTemplate(relay, 'deploys.liquid', '{{ app }}{% severity how %}')
    for (const [how, expected] of [['fatal', '10001'], ['error', '10002'], ['ok', 'nobody']]) {
      assert.equal(await called('deploys/ops', { app: 'shop', how, level: 'info' }), expected)
    }
    assert.equal(await called('deploys/ops', { app: 'shop', level: 'info' }), '10003')
    assert.equal(await called('deploys/ops?severity=critical', { app: 'shop', how: 'error' }), '10001')
    assert.equal(relay.simulator.ledger[0]?.text, ' shop')
    assert.equal(await called('deploys/ops?severity=critical', { app: 'shop', how: 'ok' }), 'nobody')
    assert.equal(await called('message/ops?severity=Disaster', { text: 'a' }), '10001')
    assert.equal(await called('message/ops?severity=unheard-of', { text: 'a' }), '10003')
  })
})
