import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { curlOf } from '../../../client/curl'
import { sourcesOf } from '../../../client/sources'
import { chinese, english } from '../../../client/texts/all'
import { explainIn, frames, sentences, translateTo } from '../../../client/texts/reasons'

/** What a shell makes of a command in the place of curl. */
function wordsOf(command: string): string[] {
  const script = command.replace(/^curl/, 'printf \'%s\\0\'')
  return execFileSync('sh', ['-c', script], { env: { ...process.env, KEY: 'k' } }).toString().split('\0').slice(0, -1)
}

test('a command for curl says what is asked for, whatever quotes are in it', () => {
  const body = '{"msg":"it\'s $HOME `x` \\\\ \\"y\\"\\n"}'
  assert.deepEqual(wordsOf(curlOf('POST', 'http://127.0.0.1:8081/webhook', body)), [
    '-H', 'Authorization: Bearer k', '-d', body, 'http://127.0.0.1:8081/webhook',
  ])
  assert.deepEqual(wordsOf(curlOf('DELETE', 'http://h/deliveries/1')), ['-H', 'Authorization: Bearer k', '-X', 'DELETE', 'http://h/deliveries/1'])
  assert.deepEqual(wordsOf(curlOf('GET', 'http://h/a?b=1&c')).slice(2), ['http://h/a?b=1&c'])
})

test('a source is set up with the address, the target and the key, each where it belongs', () => {
  const sources = sourcesOf(['github', 'deploys'])
  const parts = { url: 'https://relay.example.com/r', target: 'group:1', key: 'a-key', query: '', words: english.integrations.words }
  for (const [name, ...values] of [
    ['github', 'https://relay.example.com/r/hooks/github/group:1', 'application/json', 'a-key'],
    ['dingtalk', 'https://relay.example.com/r/hooks/dingtalk/group:1?access_token=a-key'],
    ['sentry', 'https://relay.example.com/r/hooks/sentry/group:1?key=a-key'],
    ['apprise', 'jsons://relay:a-key@relay.example.com/r/hooks/apprise/group:1'],
    ['deploys', 'https://relay.example.com/r/hooks/deploys/group:1?key=a-key'],
  ] as const) {
    assert.deepEqual(sources.find(each => each.name === name)?.setup(parts).fields.map(([, value]) => value), values)
  }
  for (const { name, setup } of sources) {
    const { fields, snippet = '' } = setup(parts)
    const all = [...fields.map(([, value]) => value), snippet].join('\n')
    assert(all.includes('a-key') && all.includes('relay.example.com/r'), name)
    assert.doesNotMatch(all, /<(?:key|secret|target|url)>|undefined/, name)
  }
})

test('what is pasted into Alertmanager and GitHub Actions is YAML, into a shell a script, and it writes in the language of the page', () => {
  for (const { integrations: { words } } of [english, chinese]) {
    const parts = { url: 'https://relay.example.com', target: 'group:1', key: 'a-key', query: '', words }
    const snippetOf = (name: string): string => sourcesOf([]).find(each => each.name === name)?.setup(parts).snippet ?? ''
    for (const name of ['alertmanager', 'github-actions', 'gitlab-ci']) assert(load(snippetOf(name)), name)
    for (const name of ['curl', 'shell', 'onebot']) execFileSync('sh', ['-n', '-c', snippetOf(name)])
    for (const name of ['curl', 'shell', 'github-actions', 'gitlab-ci', 'jenkins', 'onebot']) {
      assert.equal(/\p{Script=Han}/u.test(snippetOf(name)), words === chinese.integrations.words, name)
    }
  }
})

/** All texts by their paths, those of functions with the number of their parameters. */
function textsIn(value: unknown, path = ''): [path: string, text: string][] {
  if (typeof value === 'function') return [[`${path}(${value.length})`, 'a function']]
  if (typeof value === 'object' && value !== null) return Object.entries(value).flatMap(([name, inner]) => textsIn(inner, `${path}.${name}`))
  return [[path, String(value)]]
}

test('the texts of the page are the same in both languages, none of them empty, and the English ones hold nothing Chinese', () => {
  const [all, others] = [textsIn(english), textsIn(chinese)]
  assert.deepEqual(others.map(([path]) => path), all.map(([path]) => path))
  for (const [path, text] of [...all, ...others]) assert.notEqual(text.trim(), '', path)
  for (const [path, text] of all) assert.doesNotMatch(text, /\p{Script=Han}/u, path)
})

test('a reason is told in the language of the page, and the words of the platform as they are', () => {
  const muted = 'the bot is muted in this group'
  const reasons: [reason: string, chinese: string, raw: string][] = [
    [`${muted}: nothing was sent, try again later`, '机器人在该群被禁言', ''],
    [`the platform refused the message: ${muted} (platform: "EventChecker: 120 (a)")`, '机器人在该群被禁言', 'EventChecker: 120 (a)'],
    ['the platform refused the message: 权限不足: x', '平台拒绝了这条消息', '权限不足: x'],
    ['the account is logged out (platform: "KickedOffLine: 下线通知"): nothing was sent, try again later', '账号已掉线', 'KickedOffLine: 下线通知'],
    ['no bot is online: the platform does not answer: try again later', '没有机器人在线：平台没有应答', ''],
    ['the bot is not connected (connect ECONNREFUSED)', '机器人没有连接到平台', 'connect ECONNREFUSED'],
    ['the message may have arrived: the connection was lost', '消息可能已送达：连接已断开', ''],
    ['this delivery is sent: only an undelivered one can be retried', '只有未送达的投递可以重试', ''],
    ['the platform may still be carrying it out: try again in 35 s', '平台可能仍在发送：请 35 秒后重试', ''],
    ['nothing was sent', '没有发送', ''],
    ['ping events produce no message', 'ping 事件不发送消息', ''],
    ['its action "closed" produces no message', 'action 为“closed”的事件不发送消息', ''],
    ['平台的原话: nothing was sent', '平台的原话: nothing was sent', ''],
    ['group:abc: a QQ group number has 1 to 20 digits, and does not begin with 0', 'group:abc：QQ 群号和 QQ 号是 1 到 20 位数字，不以 0 开头', ''],
    ['name must be one line of text, of at most 64 bytes', '名称应为一行文本，最长 64 字节（每个汉字 3 字节）', ''],
    ['oncall has several ways, each with a bot of its own: leave out platform and self_id', '“oncall”有多条途径，各由自己的机器人发送：请不要再选择机器人', ''],
    ['the template cannot be written (EACCES): make the data folder writable, and free some space', '模板无法写入：请让数据目录可写，并腾出空间', 'EACCES'],
    ['files cannot be sent by the adapter for qq: send a link to it as text', '该平台的适配器不能发送这种内容：请把链接作为文本发送', ''],
    ['the target names one bot, and platform or self_id another bot: leave out platform and self_id', '目标的地址中已有另一个机器人：请不要再选择机器人', ''],
  ]
  for (const [reason, cause, raw] of reasons) {
    assert.deepEqual(explainIn('zh-CN', reason), { cause, raw })
    assert.equal(translateTo('en-US', reason), reason)
  }
  const refused = 'OneBot refused the access token: give the bot and the OneBot implementation the same one'
  assert.match(translateTo('zh-CN', `the bot is connecting (${refused})`), /^机器人正在连接（OneBot 拒绝了 access token：[^a-z]*OneBot 实现使用同一个）$/)
  assert.deepEqual(explainIn('en-US', `${muted} (platform: "120"): nothing was sent`), { cause: 'The bot is muted in this group', raw: '120' })
})

test('each sentence that the page knows is one of the relay', () => {
  const root = resolve(__dirname, '../../..')
  const code = [...readdirSync(resolve(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts')).map(name => `src/${name}`), 'client/api.ts'].map(path => readFileSync(resolve(root, path), 'utf8')).join('\n')
  for (const sentence of [...Object.keys(sentences), ...Object.keys(frames)]) {
    // The fields of keys have a table of rules.
    const pattern = sentence.replace(/^(?:(?:targets?|from|rate|name|\{\}) must be |\{\}: )/, '').split('{}').map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.+?')
    assert.match(code, new RegExp(pattern), sentence)
  }
})
