import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import { Access } from '../../../src/access/access'
import { parseKeys } from '../../../src/access/keys'

const master = 'the-master-key-of-all'
const { keys } = parseKeys([
  { name: 'ci', key: 'the-key-of-the-ci-job', allow: ['send'] },
  { name: 'hook', key: 'the-key-of-the-hook', allow: ['hooks'] },
  { name: 'sentry', secret: 'the-secret-of-sentry' },
  { name: 'old', secret: 'the-secret-of-old-one', expires: '2001-01-01' },
  { name: 'near', secret: 'the-secret-of-near-one', from: ['10.0.0.0/8'] },
], master, new Map())
const access = new Access(master, keys)
const from = (): string => '127.0.0.1'

/** Who has signed with a secret, and how many secrets were tried. */
function signer(secret: string): { name: string | null, tried: number } {
  const sign = (key: string): string => createHmac('sha256', key).update('body').digest('hex')
  const given = sign(secret)
  let tried = 0
  const { name } = access.verify(each => {
    tried++
    return sign(each) === given
  }, from)
  return { name, tried }
}

describe('a signature', () => {
  test('tells whose it is, after all secrets of keys that are allowed hooks were tried', () => {
    assert.deepEqual(signer('the-secret-of-sentry'), { name: 'sentry', tried: 5 })
    assert.deepEqual(signer('the-key-of-the-hook'), { name: 'hook', tried: 5 })
    assert.deepEqual(signer(master), { name: null, tried: 5 })
  })

  for (const [whose, secret] of [
    ['nobody', 'a-secret-of-nobody-at-all'], ['a key without hooks', 'the-key-of-the-ci-job'], ['one that has expired', 'the-secret-of-old-one'],
    ['one that must not come from there', 'the-secret-of-near-one'],
  ] as const) {
    test(`of ${whose} is refused`, () => {
      assert.throws(() => signer(secret), { code: 'unauthorized', message: /^missing or wrong API key/ })
    })
  }
})
