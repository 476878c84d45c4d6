import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Logger } from 'koishi'
import { digestWriter } from '../../../src/hooks/digest'
import { Templates } from '../../../src/hooks/templates'
import { temporaryFolder } from '../../support/folder'

const lineOf = (text: string) => ({ text, message: text, count: 1 })

test('a digest is in the language of its messages, and dated only if it began on another day', async () => {
  const write = digestWriter(new Templates(temporaryFolder(), []), 'zh-CN', new Logger('test'))
  const digest = (texts: string[], since: number, language?: 'zh-CN' | 'en-US'): Promise<string> => (
    write({ count: texts.length, delay: undefined, since, more: 0, lines: texts.map(lineOf) }, language)
  )
  const now = Date.now()
  assert.match(await digest(['web-1 is down', '数据库 web-2', 'up again'], now), /^📋 3 messages since \d\d:\d\d\nweb-1/)
  assert.match(await digest(['🔥 告警：磁盘', 'web-2'], now), /^📋 \d\d:\d\d 以来的 2 条消息\n/)
  assert.match(await digest(['1', '2'], now), /以来的 2 条消息/)
  assert.match(await digest(['web-1 is down'], now, 'zh-CN'), /以来的 1 条消息/)
  assert.match(await digest(['web-1 is down'], now - 86_400_000 * 3), /^📋 1 messages since .*\d{4}.* \d\d:\d\d\n/)
})
