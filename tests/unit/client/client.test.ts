import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { curlOf } from '../../../client/curl'
import { sourcesOf } from '../../../client/sources'
import { chinese, english } from '../../../client/texts/all'

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
