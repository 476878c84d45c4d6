import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fieldsOf, type JsonObject } from '../../../src/lib/shape'
import { until } from '../../support/until'
import { post } from '../hooks/support'
import { Desk, hanMei, liLei } from './support'

/** What Alertmanager sends about another machine. */
function payload(name: string, machine: string): JsonObject {
  const text = readFileSync(`tests/fixtures/hooks/alertmanager/${name}.json`, 'utf8').replaceAll('db-1', machine).replaceAll('c6eadffa33fcdf37', machine)
  return fieldsOf(fieldsOf(JSON.parse(text)).payload)
}

for (const way of ['quote', 'reaction'] as const) {
  test(`an alert calls who is on duty, and escalates no more once she takes it by a ${way}; its end says how long it took, and who had it`, async t => {
    const target = { to: 'group:123456', mention: { critical: 'oncall' }, ack: { who: 'oncall', escalate: [{ after: 1, mention: 'all' }] } }
    const desk = await Desk.open(t, { targets: { ops: target } })
    const { ledger } = desk.relay.simulator
    const fire = async (name: string, machine: string): Promise<void> => {
      const { status, text } = await post(desk.relay, 'alertmanager/ops', { ...payload(name, machine), groupKey: machine })
      assert.equal(status, 200, text)
    }
    await fire('firing-one', 'db-1')
    const [first] = ledger
    assert.deepEqual(first?.segments[0], { type: 'at', data: { qq: liLei } })
    const id = first.messageId ?? assert.fail()
    assert.match(await desk.answer(() => way === 'quote' ? desk.quote(id, '我来') : desk.react(id, '128064')), /^李雷 在看（\d\d:\d\d，已响 \d 秒）$/)

    await fire('firing-one', 'db-2')
    const other = { type: 'reply', data: { id: String(await desk.last()) } }
    await until('the other alert escalates', () => ledger.at(-1)?.text.includes('没有人认领') === true)
    assert.deepEqual(ledger.at(-1)?.segments.slice(0, 2), [other, { type: 'at', data: { qq: 'all' } }])
    assert.equal(ledger.length, 4)
    // Who quotes the step takes it, too; that it called everybody lets everybody do so.
    const step = await desk.last()
    assert.match(await desk.answer(() => desk.quote(step, '我来', hanMei)), /^韩梅梅 在看/)

    await fire('resolved-one', 'db-1')
    assert.match(ledger.at(-1)?.text ?? '', /\n持续 \d+ 秒，李雷处理$/)
  })
}
