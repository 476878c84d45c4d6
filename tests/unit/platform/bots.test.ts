import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeBots } from '../../../src/platform/bots'

test('the state of bots has a word for each, and none of hidden ones', () => {
  const bot = (status: Universal.Status, hidden = false) => ({ platform: 'onebot', selfId: '1', status, hidden })
  const bots = [
    bot(Universal.Status.OFFLINE),
    bot(Universal.Status.CONNECT),
    bot(Universal.Status.ONLINE, true),
    bot(Universal.Status.DISCONNECT),
    bot(Universal.Status.RECONNECT),
  ]
  assert.deepEqual(describeBots(bots).map(({ status }) => status), ['offline', 'connecting', 'disconnecting', 'reconnecting'])
})
