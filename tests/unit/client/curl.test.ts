import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { addressFor, callersOf } from '../../../client/callers'
import { curlOf, keyLines } from '../../../client/curl'

/** What a shell makes of a command in the place of curl. */
function wordsOf(command: string): string[] {
  const script = command.replace(/^curl/, 'printf \'%s\\0\'')
  return execFileSync('sh', ['-c', script], { env: { ...process.env, KEY: 'k' } }).toString().split('\0').slice(0, -1)
}

describe('a command for curl', () => {
  test('says what is asked for, whatever quotes are in it', () => {
    const body = '{"msg":"it\'s $HOME `x` \\\\ \\"y\\"\\n"}'
    assert.deepEqual(wordsOf(curlOf('POST', 'http://127.0.0.1:8081/webhook', { body, type: 'application/json' })), [
      '-H', 'Authorization: Bearer k', '-H', 'Content-Type: application/json', '-d', body, 'http://127.0.0.1:8081/webhook',
    ])
    assert.deepEqual(wordsOf(curlOf('DELETE', 'http://h/deliveries/1')), ['-H', 'Authorization: Bearer k', '-X', 'DELETE', 'http://h/deliveries/1'])
    assert.deepEqual(wordsOf(curlOf('GET', 'http://h/a?b=1&c')).slice(2), ['http://h/a?b=1&c'])
  })
})

describe('the lines for a new key', () => {
  test('are YAML that says what was chosen', () => {
    const entry = { name: 'a: "b"', targets: ['ops', 'group:*'], allow: ['send', 'mention-all'], expires: '2030-06-01' }
    assert.deepEqual(load(keyLines({ ...entry, proof: ['key', 'sha256:00'] })), [{ ...entry, key: 'sha256:00' }])
    const bare = { name: 'ci', targets: [], allow: ['hooks'], expires: '' }
    assert.deepEqual(load(keyLines({ ...bare, proof: ['secret', '${{ env.CI_SECRET }}'] })), [{ name: 'ci', secret: '${{ env.CI_SECRET }}', allow: ['hooks'] }])
  })
})

describe('the address of a caller', () => {
  const callers = callersOf(['github', 'deploys'])
  const address = (name: string, target = 'group:1'): string => {
    const caller = callers.find(each => each.name === name)
    assert(caller)
    return addressFor(caller, 'https://relay.example.com/r', target, 'a-key')
  }

  test('has target and key where they belong', () => {
    assert.equal(address('github'), 'https://relay.example.com/r/hooks/github/group:1')
    assert.equal(address('dingtalk'), 'https://relay.example.com/r/hooks/dingtalk/group:1?access_token=a-key')
    assert.equal(address('apprise'), 'jsons://relay:a-key@relay.example.com/r/hooks/apprise/group:1')
    assert.equal(address('curl'), 'curl -H "Authorization: Bearer a-key" -d "Hello" "https://relay.example.com/r/send/group:1"')
    assert.equal(address('deploys', ''), 'https://relay.example.com/r/hooks/deploys/<target>?key=a-key')
  })
})
