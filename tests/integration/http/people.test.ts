import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { fieldsOf, objectsIn } from '../../../src/lib/shape'
import { day } from '../../../src/lib/time'
import { apiKey, askAs, useRelay, type Reply } from '../../support/relay'

const relay = useRelay()
const settings = {
  people: { 'li-lei': { onebot: 10001, feishu: 'ou_1', name: '李雷' }, 'bad': 7 },
  rotas: { oncall: { people: ['li-lei'], every: '1w', from: '2026-11-30T09:00+08:00', zone: 'Asia/Shanghai' } },
  targets: { ops: { to: 'group:1', mention: { critical: 'oncall' } }, lost: { to: 'group:1', mention: 'bad' } },
}
const rota = { people: ['li-lei', 'wang'], every: 86_400, from: '2026-11-30T01:00:00.000Z', zone: 'Asia/Shanghai' }

const ask = (method: string, path: string, body?: unknown, key = apiKey): Promise<Reply> => askAs(relay, key, method, path, body)

beforeEach(async () => {
  await relay.reload(settings)
  for (const path of ['targets/night', 'targets/day', 'rotas/night', 'people/wang']) await ask('DELETE', `/${path}`)
})

describe('people and rotas', () => {
  test('are listed beside those of the settings, with who is on duty, and kept', async () => {
    const made = await ask('PUT', '/people/wang', { onebot: '3' })
    assert.deepEqual([made.status, made.data], [201, { name: 'wang', person: { onebot: '3' }, source: 'made' }])
    const { status, data: { now, until, ...shown } } = await ask('PUT', '/rotas/night', rota)
    assert.deepEqual([status, shown], [201, { name: 'night', ...rota, swaps: [], source: 'made' }])
    assert(['li-lei', 'wang'].includes(String(now)) && Date.parse(String(until)) - Date.now() <= day, String(until))
    assert.equal((await ask('PUT', '/rotas/night', { ...rota, people: 'wang', every: '2d', from: '2026-11-30T09:00' })).status, 200)

    await relay.reload(settings)
    const key = String((await ask('POST', '/keys', { name: 'reader', allow: 'read' })).data.key)
    assert.deepEqual((await ask('GET', '/people', undefined, key)).data.people, [
      { name: 'li-lei', person: { onebot: '10001', lark: 'ou_1', name: '李雷' }, source: 'settings' }, { name: 'wang', person: { onebot: '3' }, source: 'made' },
    ])
    assert.deepEqual((await ask('GET', '/rotas', undefined, key)).data.rotas, [
      { name: 'oncall', people: ['li-lei'], every: 604_800, from: rota.from, zone: rota.zone, now: 'li-lei', swaps: [], source: 'settings' },
      { name: 'night', ...rota, people: ['wang'], every: 172_800, now: 'wang', swaps: [], source: 'made' },
    ])
    for (const [method, path] of [['PUT', '/people/x'], ['DELETE', '/rotas/night'], ['POST', '/rotas/night/swaps']] as const) {
      assert.equal((await ask(method, path, {}, key)).status, 403)
    }
    await ask('DELETE', '/keys/reader')
    assert(relay.logs.some(line => line.includes('people: "bad" is left out')) && relay.logs.some(line => line.includes('targets: "lost" is left out')))
    for (const line of ['the person "wang" was made', 'the rota "night" was changed']) assert(relay.logs.some(each => each.includes(`${line} (by the master key`)), line)
  })

  test('change hands for a time by a swap, also where the settings have them', async () => {
    await ask('PUT', '/people/wang', {})
    const [from, until] = [new Date(Date.now() - day), new Date(Date.now() + day)].map(time => time.toISOString())
    const swap = { from, until, who: 'wang' }
    const { status, data } = await ask('POST', '/rotas/oncall/swaps', swap)
    assert.deepEqual([status, data.now, data.until, data.swaps], [200, 'wang', until, [swap]])
    assert.equal((await ask('DELETE', '/people/wang')).msg, 'this person is used by the rota "oncall": change that first')
    const back = await ask('POST', '/rotas/oncall/swaps', { ...swap, who: 'li-lei' })
    assert.deepEqual([back.data.now, back.data.swaps], ['li-lei', [{ ...swap, who: 'li-lei' }]])
    for (const [path, body, expected] of [
      ['oncall', { ...swap, until: from }, [400, 'until must be after from, and ahead']], ['gone', swap, [404, 'no such rota']],
    ] as const) {
      const answer = await ask('POST', `/rotas/${path}/swaps`, body)
      assert.deepEqual([answer.status, answer.msg], expected)
    }
  })

  test('are in use as long as a name calls them, and those of the settings stay', async () => {
    await ask('PUT', '/people/wang', { onebot: 3 })
    await ask('PUT', '/rotas/night', rota)
    const ack = { from: 'warning', who: ['wang'], remind: 3600, escalate: [{ after: 300, mention: ['night'] }, { after: 900, to: 'day', again: 60 }] }
    await ask('PUT', '/targets/day', 'group:3')
    const written = { to: ['group:2'], mention: { critical: ['night', 'all'] }, ack }
    assert.deepEqual((await ask('PUT', '/targets/night', written)).data, { name: 'night', ...written, source: 'made' })
    const listed = objectsIn((await ask('GET', '/targets')).data.targets)
    const { name, source, ...again } = fieldsOf(listed.find(each => each.name === 'night'))
    assert.deepEqual([name, source, (await ask('PUT', '/targets/night', again)).data], ['night', 'made', { name: 'night', ...written, source: 'made' }])
    for (const [path, users] of [
      ['people/wang', 'person is used by the rota "night", the name "night"'], ['rotas/night', 'rota is used by the name "night"'], ['targets/day', 'name is used by the name "night"'],
    ]) {
      const { status, msg } = await ask('DELETE', `/${path}`)
      assert.deepEqual([status, msg], [409, `this ${users}: change that first`])
    }
    for (const [method, path] of [['PUT', 'people/li-lei'], ['DELETE', 'people/li-lei'], ['DELETE', 'rotas/oncall']] as const) {
      const { status, msg } = await ask(method, `/${path}`, {})
      assert.deepEqual([status, msg], [409, `this ${path.startsWith('people') ? 'person' : 'rota'} is in the settings of the relay: change it there`])
    }
    for (const [path, body, message] of [
      ['people/all', {}, /^all is reserved/], ['people/oncall', {}, /there is a rota/], ['people/wang', { onebot: true }, /^onebot must be/], ['rotas/li-lei', rota, /there is a person/],
      ['rotas/night', { ...rota, people: ['gone'] }, /^people: there is no person "gone"/], ['targets/night', { to: 'group:1', mention: 'gone' }, /^mention: there is no person and no rota "gone"/],
      ['targets/day', { to: 'group:1', ack: { escalate: [{ after: 1, to: 'night' }] } }, /^ack\.escalate\[0\]\.to: "night" leads back to this name/],
    ] as const) {
      const { status, msg } = await ask('PUT', `/${path}`, body)
      assert.equal(status, 400)
      assert.match(msg, message)
    }
  })
})
