import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../../src/message/causes'

test('a cause is explained with the words that came with it', () => {
  for (const [cause, words, en, zh] of [
    ['kicked', undefined, 'the account is logged out', '账号已掉线'],
    ['kicked', '下线通知', 'the account is logged out (platform: "下线通知")', '账号已掉线（下线通知）'],
    ['other-account', '30000', 'OneBot is logged in to another account (30000)', 'OneBot 登录的是另一个账号（30000）'],
    ['unreachable', 'ECONNRESET', 'the platform cannot be reached: ECONNRESET', '无法连接到平台：ECONNRESET'],
    [undefined, 'retcode 1', 'retcode 1', 'retcode 1'],
  ] as const) assert.deepEqual([explain(cause, words)?.in('en-US'), explain(cause, words)?.in('zh-CN')], [en, zh])
})
