import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { useRelay } from '../../support/relay'
import { fieldsOf } from '../../../src/lib/shape'

describe('the language of answers', () => {
  const relay = useRelay({ config: { chatApiMaxRetries: 0, keys: [{ name: 'bound', key: 'a-key-of-grafana', sources: ['grafana'] }] } })
  const post = async (path: string, body: string, headers: Record<string, string> = {}): Promise<Record<string, unknown>> => (
    fieldsOf(await (await relay.request(path, { method: 'POST', body, headers })).json())
  )

  test('is English unless the request names Chinese, and the ID of a failure is the same in both', async () => {
    const english = 'no such target "nobody": write group:<id> or private:<id>, or a name from the list of targets'
    const chinese = '没有目标 "nobody"：请填写 group:<群号> 或 private:<QQ 号>，或目标列表中的名称'
    for (const [query, headers, msg] of [
      ['', {}, english],
      ['', { 'accept-language': '*' }, english],
      ['', { 'accept-language': 'de-DE, fr;q=0.5' }, english],
      ['', { 'accept-language': 'zh-CN,zh;q=0.9,en;q=0.8' }, chinese],
      ['?lang=zh-CN', {}, chinese],
      ['?lang=en-US', { 'accept-language': 'zh' }, english],
    ] as const) {
      const answer = await post(`/webhook${query}`, '{"to":"nobody","msg":"x"}', headers)
      assert.deepEqual([answer.msg, fieldsOf(answer.error).id], [msg, 'no-such-target'], `${query} ${JSON.stringify(headers)}`)
    }
    assert.equal((await post('/webhook?lang=zh', '{"to":"group:123456","msg":"x"}')).msg, 'ok')
    assert.match(String((await post('/webhook?lang=zh', '{"to":')).msg), /^invalid json：/)
  })

  test('holds for what is kept of a message, for other forms of answers, and for what was said of a call', async () => {
    relay.simulator.mute('656', true)
    const failed = await post('/webhook?lang=zh', '{"group_id":"656","msg":"x"}')
    assert.match(String(failed.msg), /机器人在该群被禁言/)
    const id = String(fieldsOf(failed.error).delivery_id)
    const read = async (lang: string): Promise<string> => JSON.stringify(await (await relay.request(`/deliveries/${id}?lang=${lang}`)).json())
    assert.match(await read('zh'), /机器人在该群被禁言/)
    assert.match(await read('en'), /the bot is muted in this group/)
    assert.doesNotMatch(await read('en'), /[\u4e00-\u9fff]/)
    assert.match(String((await post('/onebot/send_group_msg?lang=zh', '{"group_id":656,"message":""}', { 'content-type': 'application/json' })).wording), /不能为空/)
    const slack = await relay.request('/hooks/slack/nobody?lang=zh-CN', { method: 'POST', body: '{"text":"x"}' })
    assert.match(await slack.text(), /^没有目标 "nobody"/)
    await relay.request('/hooks/github/group:656', { method: 'POST', body: '{"zen":"x"}', headers: { 'x-github-event': 'ping' } })
    const statusz = await (await relay.request('/statusz?lang=zh')).text()
    assert.match(statusz, /ping 事件不发送消息/)
    const bound = await fetch(`${relay.url}/webhook?lang=zh`, { method: 'POST', body: '{"group_id":"1","msg":"x"}', headers: { 'x-api-key': 'a-key-of-grafana' } })
    assert.match(await bound.text(), /只能通过 \/hooks\/grafana 发送/)
  })
})
