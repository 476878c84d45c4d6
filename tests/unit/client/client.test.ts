import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { addressFor, callersOf } from '../../../client/callers'
import { curlOf, keyLines } from '../../../client/curl'
import { chinese, english } from '../../../client/texts/all'

/** What a shell makes of a command in the place of curl. */
function wordsOf(command: string): string[] {
  const script = command.replace(/^curl/, 'printf \'%s\\0\'')
  return execFileSync('sh', ['-c', script], { env: { ...process.env, KEY: 'k' } }).toString().split('\0').slice(0, -1)
}

test('a command for curl says what is asked for, whatever quotes are in it', () => {
  const body = '{"msg":"it\'s $HOME `x` \\\\ \\"y\\"\\n"}'
  assert.deepEqual(wordsOf(curlOf('POST', 'http://127.0.0.1:8081/webhook', { body, type: 'application/json' })), [
    '-H', 'Authorization: Bearer k', '-H', 'Content-Type: application/json', '-d', body, 'http://127.0.0.1:8081/webhook',
  ])
  assert.deepEqual(wordsOf(curlOf('DELETE', 'http://h/deliveries/1')), ['-H', 'Authorization: Bearer k', '-X', 'DELETE', 'http://h/deliveries/1'])
  assert.deepEqual(wordsOf(curlOf('GET', 'http://h/a?b=1&c')).slice(2), ['http://h/a?b=1&c'])
})

test('the lines for a new key are YAML that says what was chosen', () => {
  const entry = { name: 'a: "b"', targets: ['ops', 'group:*'], allow: ['send', 'mention-all'], expires: '2030-06-01' }
  assert.deepEqual(load(keyLines({ ...entry, proof: ['key', 'sha256:00'] })), [{ ...entry, key: 'sha256:00' }])
  const bare = { name: 'ci', targets: [], allow: ['hooks'], expires: '' }
  assert.deepEqual(load(keyLines({ ...bare, proof: ['secret', '${{ env.CI_SECRET }}'] })), [{ name: 'ci', secret: '${{ env.CI_SECRET }}', allow: ['hooks'] }])
})

test('the address of a caller has target and key where they belong', () => {
  const callers = callersOf(['github', 'deploys'])
  for (const [name, target, address] of [
    ['github', 'group:1', 'https://relay.example.com/r/hooks/github/group:1'],
    ['dingtalk', 'group:1', 'https://relay.example.com/r/hooks/dingtalk/group:1?access_token=a-key'],
    ['apprise', 'group:1', 'jsons://relay:a-key@relay.example.com/r/hooks/apprise/group:1'],
    ['curl', 'group:1', 'curl -H "Authorization: Bearer a-key" -d "Hello" "https://relay.example.com/r/send/group:1"'],
    ['deploys', '', 'https://relay.example.com/r/hooks/deploys/<target>?key=a-key'],
  ] as const) {
    const caller = callers.find(each => each.name === name)
    assert(caller)
    assert.equal(addressFor(caller, 'https://relay.example.com/r', target, 'a-key'), address)
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
