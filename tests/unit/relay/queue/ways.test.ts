import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RelayError } from '../../../../src/errors'
import type { MessageRequest, Route, TextItem } from '../../../../src/message/model'
import { readAddress } from '../../../../src/message/target'
import { createDelivery, unanswered, type Change, type Delivery, type ItemResult, type Results } from '../../../../src/relay/delivery/delivery'
import { firstWay, hasNextWay, nextWay } from '../../../../src/relay/queue/ways'
import { itemsForWay } from '../../../../src/relay/send/items'
import { Text } from '../../../../src/texts/text'

const sent: ItemResult = { success: true, messageIds: ['1'] }
const failed = (code: 'refused' | 'unsent' | 'expired' | 'bad-request'): ItemResult => ({ success: false, error: new RelayError(code, new Text(code)) })
const ways = ['group:1', 'telegram:group:-2', 'http:group:oncall/3'].flatMap(text => readAddress(text) ?? [])
const item: TextItem = { type: 'text', text: 'a' }

/** A delivery to a name with three ways, or to a chat. */
function deliver({ whenUnknown = 'stop', mode = 'single', isRouted = true, ...more }: {
  whenUnknown?: Route['whenUnknown']
  mode?: Delivery['mode']
  isRouted?: boolean
} & Change = {}): Delivery {
  const route: Route = { name: 'oncall', ways, after: 2_000, whenUnknown }
  const request: MessageRequest = { mode, items: [item, item], target: { kind: 'group', id: '1' }, bot: {}, ...isRouted && { route } }
  const delivery = createDelivery({ id: 'd', caller: null, door: '' }, 1, 1_000, request)
  return { ...delivery, bot: 'onebot:1', ...more }
}

/** The delivery after a change. */
function after(delivery: Delivery, change: Change | undefined): Delivery {
  assert(change)
  return { ...delivery, ...change }
}

for (const [what, delivery, results, goesOn] of [
  ['what was refused', deliver(), [failed('refused'), failed('refused')], true],
  ['what the platform cannot take', deliver(), [failed('bad-request'), failed('bad-request')], true],
  ['what could not be sent', deliver(), [failed('unsent'), failed('unsent')], true],
  ['what was kept waiting', deliver(), [undefined, undefined], true],
  ['what was sent', deliver(), [sent, sent], false],
  ['what went unanswered', deliver(), [unanswered(), unanswered()], false],
  ['what went unanswered, where the name says so', deliver({ whenUnknown: 'next' }), [unanswered(), unanswered()], true],
  ['a batch of which nothing has arrived', deliver({ mode: 'batch' }), [failed('refused'), failed('unsent')], true],
  ['a batch of which a part has arrived', deliver({ mode: 'batch', whenUnknown: 'next' }), [failed('refused'), sent], false],
  ['a batch of which a part may have arrived', deliver({ mode: 'batch', whenUnknown: 'next' }), [failed('refused'), unanswered()], false],
  ['what goes to a chat', deliver({ isRouted: false }), [failed('refused'), failed('refused')], false],
] as const satisfies readonly (readonly [string, Delivery, Results, boolean])[]) {
  test(`${what} ${goesOn ? 'goes on by the next way' : 'ends there'}`, () => {
    assert.equal(nextWay(delivery, results, 5_000) !== undefined, goesOn)
  })
}

test('a delivery goes its ways one after another, and its record shows them', () => {
  const refused = [failed('refused'), failed('refused')]
  const first = deliver()
  const second = after(first, nextWay(first, refused, 5_000))
  const past = [{ target: 'group:1', outcome: 'refused', reason: new RelayError('refused').said, at: 5_000 }]
  assert.deepEqual(second.flow.route, { name: 'oncall', ways, after: 2_000, whenUnknown: 'stop', index: 1, past })
  assert.deepEqual([second.state, second.target.id, second.bot, second.results, second.open], ['queued', '-2', '', [undefined, undefined], []])
  const third = after(second, nextWay(second, refused, 6_000))
  assert.deepEqual([third.target.id, third.flow.route?.past.map(({ target }) => target)], ['oncall/3', ['group:1', 'telegram:group:-2']])
  assert.equal(nextWay(third, refused, 7_000), undefined)
  assert.deepEqual([first, second, third].map(({ flow: { route } }) => hasNextWay(route)), [true, true, false])
  for (const [platform, id, index] of [[undefined, '1', 0], ['telegram', '-2', 1], ['discord', '1', 0]] as const) {
    const again = after(third, firstWay(third, way => way.platform === platform))
    assert.deepEqual([again.target.id, again.bot, again.flow.route?.index], [id, '', index])
  }
})

test('a message that may have arrived before says so, where it has text', () => {
  const first = deliver({ whenUnknown: 'next' })
  const lost = after(first, nextWay(first, [unanswered(), unanswered()], 5_000))
  const reply = { type: 'reply', messageId: '7' } as const
  assert.deepEqual(itemsForWay(first, [item]), [item])
  assert.deepEqual(itemsForWay(after(first, nextWay(first, [failed('refused')], 5_000)), [item]), [item])
  assert.match(JSON.stringify(itemsForWay(lost, [reply, item])[1]), /可能重复.*May be a repetition.*\\na"/)
  const file = { type: 'file', link: { kind: 'remote', url: 'http://x/a' } } as const
  assert.deepEqual(itemsForWay(lost, [file]), [file])
  const chinese = { ...lost, flow: { ...lost.flow, policy: { name: 'oncall', lang: 'zh-CN' as const } } }
  assert.deepEqual(itemsForWay(chinese, [item])[0], { type: 'text', text: '（可能重复：此前的发送未得到确认。）\na' })
})
