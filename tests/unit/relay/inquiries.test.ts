import assert from 'node:assert/strict'
import { test } from 'node:test'
import { v7 as uuid } from 'uuid'
import { createDelivery, type Delivery } from '../../../src/relay/delivery/delivery'
import { Inquiries } from '../../../src/relay/inquiries'
import { group } from '../../support/items'

test('a message that is taken back is looked for among the last 10,000, one look at a time', async () => {
  const delivery = createDelivery(uuid(), 0, { mode: 'single', target: group, bot: {}, items: [{ type: 'text', text: 'hello' }] })
  let [seen, looks, most] = [0, 0, 0]
  async function* recent(): AsyncGenerator<Delivery> {
    most = Math.max(most, ++looks)
    try {
      for (;;) {
        if (seen++ % 200 === 0) await new Promise(resolve => setImmediate(resolve))
        yield delivery
      }
    } finally {
      looks--
    }
  }
  const no = (): never => assert.fail('it is not asked for')
  const port = { find: () => undefined, choose: no, chooseLater: no, onOnline: no }
  const policy = { timeout: 1, interval: 0, retries: 0, retryUnanswered: false, settleTime: 0 }
  const inquiries = new Inquiries({ port, policy, stop: new AbortController().signal }, { recent })
  const calls = [1, 2, 3].map(() => assert.rejects(inquiries.recall('7', () => true), { code: 'not-found' }))
  await Promise.all(calls)
  assert.equal(seen, 3 * 10_000)
  assert.equal(most, 1)
})
