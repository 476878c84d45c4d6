import assert from 'node:assert/strict'
import { test } from 'node:test'
import { states } from '../../../../src/relay/delivery/delivery'
import { matches, type Filter } from '../../../../src/relay/delivery/filter'
import { deliveryOf, idsOf, stored } from './stored'
import { words } from '../../../../src/texts/text'

const pick = <T>(values: readonly T[], index: number): T => values[index % values.length] ?? assert.fail()

test('a list and its count have what a filter asks for, the newest or the oldest first, also of more rows than are read at once', async () => {
  const { store, table, save } = await stored()
  const start = Date.now() - 10_000_000
  const all = Array.from({ length: 4_500 }, (_, index) => deliveryOf({
    createdAt: start + index * 100, state: pick(states, index), target: { kind: index % 7 ? 'group' : 'private', id: String(index % 3) },
    flow: index % 4 === 3 ? {} : { thread: { name: 't', mode: 'reply', done: 'replied', ids: ['7'], index: 1 } },
    caller: pick(['', 'CI', 'ci', 'É'], index) || null, door: pick(['webhook', 'hooks/a', 'hooks/b', 'hooks', 'hooks-of-others'], index >> 2),
    bot: pick(['onebot:1', 'discord:2', ''], index >> 1),
    summary: {
      items: [{ type: 'text', msg: pick(['Straße 100%_"\\', 'build.*', '🚀\n告警'], index) }], waited: null, platformTime: 0,
      calls: [{ at: 0, took: 0, outcome: 'refused', reason: words('refused: "msg":"n.*"') }],
    },
  }))
  save(all)
  const { id: before } = all[2_250] ?? assert.fail()
  const filters: Filter[] = [
    {}, { states: ['failed'] }, { states: ['sent', 'failed'] }, { states: [] }, { targets: [{ kind: 'group', id: '1' }] }, { targets: [] }, { caller: 'CI' },
    { caller: 'ci', states: ['sent'] }, { targets: [{ kind: 'private', id: '0', platform: 'discord' }, { kind: 'group', id: '2', platform: 'onebot' }] },
    { targets: [{ kind: 'group', id: '1' }, { kind: 'group', id: '1', platform: 'none' }] }, { door: 'hooks' }, { door: 'hooks/b' }, { bot: 'onebot:1' }, { thread: 't' },
    { text: 'STRAßE 100%_"\\' }, { text: '.*' }, { text: 'nothing' }, { text: 'refused' }, { text: '告警' }, { text: '\n告' }, { text: '🚀', caller: 'É' },
    { since: start + 10_000 }, { until: start + 10_000 }, { since: start + 10_000, until: start + 20_000, states: ['unanswered'], door: 'hooks' },
    { before }, { before, until: start + 20_000 }, { before, since: start + 20_000, text: 'build' },
  ]
  for (const filter of filters) {
    const what = JSON.stringify(filter)
    const expected = all.filter(each => matches(each, filter))
    for (const limit of [30, 9_000]) {
      assert.deepEqual(idsOf(await table.list({ ...filter, limit })), idsOf(expected).reverse().slice(0, limit), what)
      assert.deepEqual(idsOf(await table.list({ ...filter, limit, order: 'asc' })), idsOf(expected).slice(0, limit), what)
    }
    const counts = await table.count(filter)
    // The text is also looked for where it only stands in the same JSON.
    if (filter.text !== 'refused') assert.deepEqual(states.map(each => counts.get(each) ?? 0), states.map(each => expected.filter(({ state }) => state === each).length), what)
  }
  assert.notEqual((await table.list({ text: '告警', limit: 1 })).length, 0)
  await store.close()
})
