import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKey, askAs, useRelay } from '../../support/relay'
import { post } from '../hooks/support'

const key = 'k'.repeat(32)
const relay = useRelay({ config: {
  people: { 'li-lei': { onebot: 10001, name: '李雷' }, 'han-mei': { telegram: 7, name: '韩梅梅' } },
  rotas: { oncall: { people: 'li-lei', every: '1w', from: '2026-11-30T09:00+08:00' } },
  targets: { ops: { to: 'group:1', mention: { critical: 'oncall' } } },
  keys: [{ name: 'ci', key, allow: ['send', 'hooks'] }],
} })

const arrived = (): string[] => relay.simulator.ledger.map(({ segments }) => (
  segments.map(({ type, data }) => type === 'at' ? `@${String(data.qq)}` : String(data.text)).join('|')
))

describe('severity and mention', () => {
  test('of a request say whom to call, in place of its name', async () => {
    for (const fields of [
      {}, { severity: 'critical' }, { severity: 'critical', mention: 'none' }, { mention: 'oncall,li-lei' }, { severity: 'warning', mention: { warning: 'all' } },
      { severity: 'ok', mention: 'oncall' }, { mention: 'han-mei' },
    ]) assert.equal((await relay.send({ to: 'ops', msg: 'x', ...fields })).status, 200)
    assert.deepEqual(arrived(), ['x', '@10001| x', 'x', '@10001| x', '@all| x', 'x', '@韩梅梅 x'])
  })

  test('may be in an address, a form, and the address of a hook', async () => {
    assert.equal((await askAs(relay, apiKey, 'POST', '/webhook?severity=critical', { to: 'ops', msg: '1' })).status, 200)
    const form = new FormData()
    for (const [name, value] of [['msg', '2'], ['mention', 'oncall']] as const) form.set(name, value)
    for (const path of ['ops', 'group:1?mention=li-lei&severity=info']) assert.equal((await relay.request(`/send/${path}`, { method: 'POST', body: form })).status, 200)
    assert.equal((await post(relay, 'message/ops?severity=critical', { text: '3' })).status, 200)
    assert.equal((await post(relay, 'message/group:1?mention=oncall', { text: '4' })).status, 200)
    assert.deepEqual(arrived(), ['@10001| 1', '@10001| 2', '@10001| 2', '@10001| ❌ 3', '@10001| 4'])
  })

  test('call nobody unknown, and everybody only with the permission', async () => {
    const problem = async (body: object): Promise<unknown[]> => {
      const { status, msg } = await askAs(relay, key, 'POST', '/webhook', { to: 'ops', msg: 'x', ...body })
      return [status, msg]
    }
    assert.deepEqual(await problem({ mention: 'wang' }), [400, 'mention: there is no person and no rota "wang"'])
    assert.deepEqual(await problem({ mention: 'wang' }), await problem({ mention: { critical: 'wang' } }))
    const lacks = [403, 'this key may not do this: it lacks the permission mention-all']
    assert.deepEqual([await problem({ mention: 'all' }), await problem({ severity: 'ok', mention: { info: 'all' } })], [lacks, lacks])
    assert.deepEqual([(await post(relay, 'message/ops?mention=all', { text: 'x' }, { key })).status, (await post(relay, 'message/ops?mention=wang', { text: 'x' })).status], [403, 400])
    assert.deepEqual([(await problem({ severity: 'critical', mention: 'oncall' }))[0], arrived()], [200, ['@10001| x']])
  })

  test('make another request of one with the same key', async () => {
    const send = (fields: object) => relay.send({ to: 'ops', msg: 'x', ...fields }, { 'idempotency-key': 'k' })
    assert.deepEqual([(await send({ mention: 'li-lei' })).status, (await send({ mention: 'li-lei' })).status, (await send({})).status], [200, 200, 422])
    assert.deepEqual(arrived(), ['@10001| x'])
  })
})
