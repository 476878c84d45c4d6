import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { HookRequest, Source } from '../../../src/hooks/source'
import { sources } from '../../../src/hooks/sources'
import { message } from '../../../src/hooks/sources/message'
import { isEvent, requestOf } from './support'

function textOf(source: Source | undefined, payload: object, more: Partial<HookRequest> = {}): unknown {
  const reading = source?.read({ ...requestOf(payload), ...more })
  assert(reading && isEvent(reading))
  return reading.view.text
}

const address = 'https://example.com/?a=1&b=2'

describe('a text is read in the markup', () => {
  const cases: [sender: string, payload: object, text: string, more?: Partial<HookRequest>][] = [
    // notify/telegram/telegram.go of Alertmanager, health/notifications/alarm-notify.sh.in of netdata, and scripts.
    ['Telegram', { text: '<b>Alert</b> 2 &lt; 3 <a href="https://example.com/?a=1&amp;b=2">link</a>', parse_mode: 'HTML' }, `Alert 2 < 3 link (${address})`],
    ['Telegram', { text: '*bold* 5\\.1 GB \\(ok\\)', parse_mode: 'MarkdownV2' }, 'bold 5.1 GB (ok)'],
    ['Telegram', { text: '*bold* 5\\.1 snake\\_case', parse_mode: 'Markdown' }, 'bold 5\\.1 snake_case'],
    ['Telegram', { message: 'a *b* &lt;', parse_mode: 'none', markdown: true }, 'a *b* &lt;'],
    // hc/integrations/ntfy of Healthchecks, https://docs.ntfy.sh/publish/#markdown-formatting.
    ['ntfy', { topic: 'ops', message: '**Project:** Home\n_Period:_ 1 day', markdown: true }, 'Project: Home\nPeriod: 1 day'],
    ['ntfy', { text: '**a** <i>b</i>' }, 'a b', { headers: { markdown: 'yes' } }],
    ['ntfy', { text: '**a**' }, 'a', { headers: { 'x-markdown': '1' } }],
    ['ntfy', { text: '**a**' }, 'a', { query: new URLSearchParams('md=true') }],
    ['ntfy', { text: '**a**' }, 'a', { query: new URLSearchParams('markdown=yes') }],
    ['ntfy', { text: '**a**' }, 'a', { headers: { 'content-type': 'text/markdown; charset=utf-8' } }],
    ['ntfy', { message: '**a**', markdown: false }, '**a**', { headers: { markdown: 'no' } }],
    // sendNotify.js of 青龙 (pushPlusNotify, wxPusherNotify, pushMeNotify), https://www.pushplus.plus/doc, https://wxpusher.zjiecode.com/docs.
    ['PushPlus', { token: 'x', title: '标题', content: '<p>已用 <b>95%</b></p><br>主机: nas', template: 'html' }, '已用 95%\n主机: nas'],
    ['PushPlus', { content: '# a\n**b**', template: 'markdown' }, 'a\nb'],
    ['PushPlus', { content: '<b>a</b>', template: 'txt' }, '<b>a</b>', { format: 'html' }],
    ['WxPusher', { content: '<h1>a</h1><br/><div>b</div>', contentType: 2, uids: ['x'] }, 'a\nb'],
    ['WxPusher', { content: '**a**', contentType: 3 }, 'a'],
    ['WxPusher', { content: '**a**', contentType: 1 }, '**a**', { format: 'markdown' }],
    ['PushMe', { title: 't', content: '**a**', type: 'markdown' }, 'a'],
    // https://bark.day.app/#/tutorial, https://pushover.net/api#html, https://spec.matrix.org/latest/client-server-api/#mroommessage-msgtypes.
    ['Bark', { title: 't', body: 'a', markdown: '**a** _b_' }, 'a b'],
    ['Pushover', { message: '<b>a</b> &amp; <font color="red">b</font>', html: 1 }, 'a & b'],
    ['Matrix', { msgtype: 'm.text', body: 'a', format: 'org.matrix.custom.html', formatted_body: '<h4>a</h4><p><a href="https://example.com">b</a></p>' }, 'a\nb (https://example.com)'],
    ['Gotify', { message: '**a**', extras: { 'client::display': { contentType: 'text/markdown' } } }, 'a'],
    // The API of Apprise: apprise_api/api/forms.py.
    ['Apprise', { body: '<b>a</b>', format: 'html' }, 'a'],
    ['Server酱', { text: 't', desp: '**a** __b__' }, 'a __b__'],
    ['a script', { text: '**a** __b__ &lt; <b>' }, '**a** __b__ &lt; <b>'],
    ['a script', { text: '**a** _b_' }, 'a b', { format: 'markdown' }],
    ['a script', { text: '**a** <b>b</b>' }, '**a** b', { format: 'html' }],
    ['a script', { message: '**a**', markdown: true }, 'a', { format: 'text' }],
  ]
  for (const [sender, payload, text, more] of cases) {
    test(`that ${sender} declares: ${JSON.stringify({ ...payload, ...more })}`, () => assert.equal(textOf(message, payload, more), text))
  }
})

test('?format= is for the texts of all sources that declare nothing', () => {
  const html = '<b>a</b> *b*'
  for (const [name, payload] of Object.entries({
    'push': { text: html }, 'slack': { text: html }, 'discord': { content: html }, 'uptime-kuma': { msg: html },
    'dingtalk': { msgtype: 'text', text: { content: html } }, 'wecom': { msgtype: 'text', text: { content: html } }, 'feishu': { msg_type: 'text', content: { text: html } },
  })) assert.equal(textOf(sources.find(each => each.name === name), payload, { format: 'html' }), 'a *b*', name)
})

test('the title of a DingTalk message is left out where its text repeats it, not where a word has its letters', () => {
  const read = (title: string, text: string): unknown => {
    const reading = sources.find(({ name }) => name === 'dingtalk')?.read(requestOf({ msgtype: 'markdown', markdown: { title, text } }))
    return reading && isEvent(reading) ? reading.view.title : undefined
  }
  assert.deepEqual([read('磁盘告警', '### 🔥 磁盘告警\nnode-3'), read('t', 'File "/app/__init__.py"')], ['', 't'])
})
