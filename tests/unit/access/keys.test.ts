import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { parseKeys } from '../../../src/access/keys'
import { scopes } from '../../../src/access/scopes'
import { parseNames } from '../../../src/message/names'

const apiKey = 'the-master-key-of-all'
const { names } = parseNames({ ops: 'group:1' })
const secret = 'MARKER-0123456789'
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const parse = (...entries: unknown[]) => parseKeys(entries, apiKey, names)

describe('a list of keys', () => {
  const right: [string, object][] = [
    ['no more than a name and a secret', {}],
    ['a digest', { key: `sha256:${sha256(secret)}` }],
    ['a digest in upper case', { key: `SHA256:${sha256(secret).toUpperCase()}` }],
    ['lists', { targets: ['group:*', 'private:1', 'discord:group:3', 'ops', '*'], allow: [...scopes], from: ['10.0.0.0/8', '::1', '2001:db8::/32'] }],
    ['lists with commas, as on the config page', { targets: 'group:*, ops', allow: 'send,read', from: '127.0.0.1, ::1' }],
    ['a date', { expires: '2099-12-31' }],
    ['a date-time', { expires: '2099-12-31T23:59:00+08:00' }],
    ['a rate', { rate: 60 }],
    ['a rate as text, as from a variable', { rate: '60' }],
    ['what is blank', { targets: '', allow: null, expires: ' ', rate: undefined, from: '', secret: '' }],
    ['a name that is shared', { name: 'other' }],
    ['a name in any script', { name: '部署 – ops №1' }],
  ]
  for (const [what, fields] of right) {
    test(`takes an entry with ${what}`, () => {
      const { keys, warnings } = parse({ name: 'other', key: 'another-secret-of-16' }, { name: 'ci', key: secret, ...fields })
      assert.deepEqual(warnings, [])
      assert.deepEqual(keys.map(({ digest }) => digest.toString('hex')), [sha256('another-secret-of-16'), sha256(secret)])
    })
  }

  const wrong: [object | string | number | null, RegExp][] = [
    ['text', /is no object/], [7, /is no object/], [null, /is no object/], [[], /is no object/],
    [{ key: secret }, /has no name/], [{ name: '', key: secret }, /has no name/], [{ name: 7, key: secret }, /name must be/],
    [{ name: ' console', key: secret }, /"console" is the name of the page in the console/],
    [{ name: 'a\nb', key: secret }, /name must be/], [{ name: 'a\u202eb', key: secret }, /name must be/], [{ name: 'a'.repeat(65), key: secret }, /name must be/], [{ name: '群'.repeat(22), key: secret }, /name must be/],
    [{ name: 'ci' }, /has no key/], [{ name: 'ci', key: '' }, /has no key/], [{ name: 'ci', key: secret.slice(0, 15) }, /key must be/],
    [{ name: 'ci', key: ` ${secret.slice(0, 15)} ` }, /key must be/], [{ name: 'ci', key: 1234567890123456 }, /key must be/],
    [{ name: 'ci', key: 'sha256:MARKER' }, /key must be/], [{ name: 'ci', key: `sha256:${sha256('')}0` }, /key must be/],
    [{ name: 'ci', secret: 'MARKER' }, /secret must be/], [{ name: 'ci', key: secret, secret }, /equals another/],
    [{ name: 'ci', key: apiKey }, /equals another/], [{ name: 'ci', key: `sha256:${sha256(apiKey)}` }, /equals another/],
    [{ name: 'ci', secret: apiKey }, /equals another/],
    [{ name: 'ci', key: secret, targets: ['group'] }, /targets must be/], [{ name: 'ci', key: secret, targets: ['nobody'] }, /targets must be/],
    [{ name: 'ci', key: secret, targets: [] }, /targets must be/], [{ name: 'ci', key: secret, targets: ',' }, /targets must be/],
    [{ name: 'ci', key: secret, targets: ['ops', 7] }, /targets must be/], [{ name: 'ci', key: secret, targets: { ops: true } }, /targets must be/],
    [{ name: 'ci', key: secret, allow: ['all'] }, /allow must be/], [{ name: 'ci', key: secret, allow: [] }, /allow must be/],
    [{ name: 'ci', key: secret, allow: 'send;read' }, /allow must be/], [{ name: 'ci', key: secret, allow: true }, /allow must be/],
    [{ name: 'ci', key: secret, expires: 'soon' }, /expires must be/], [{ name: 'ci', key: secret, expires: '2026-02-30' }, /expires must be/],
    [{ name: 'ci', key: secret, expires: 2099 }, /expires must be/], [{ name: 'ci', key: secret, expires: {} }, /expires must be .* in quotes/], [{ name: 'ci', key: secret, rate: 0 }, /rate must be/],
    [{ name: 'ci', key: secret, rate: -1 }, /rate must be/], [{ name: 'ci', key: secret, rate: 1.5 }, /rate must be/],
    [{ name: 'ci', key: secret, rate: 'fast' }, /rate must be/], [{ name: 'ci', key: secret, from: ['localhost'] }, /from must be/],
    [{ name: 'ci', key: secret, from: ['10.0.0.0/33'] }, /from must be/], [{ name: 'ci', key: secret, from: [] }, /from must be/],
    [{ name: 'ci', key: secret, target: 'group:1' }, /no field "target"/],
  ]
  for (const [entry, reason] of wrong) {
    test(`refuses ${JSON.stringify(entry)} alone, and says why but not the secret`, () => {
      const { keys, warnings } = parse({ name: 'before', key: 'the-secret-of-before' }, entry, { name: 'after', key: 'the-secret-of-after' })
      assert.deepEqual(keys.map(({ caller }) => caller.name), ['before', 'after'])
      assert.equal(warnings.length, 1)
      assert.match(warnings[0] ?? '', /^keys: entry 2(?: \(".*"\))? is refused: /)
      assert.match(warnings[0] ?? '', reason)
      assert(!/MARKER|the-master-key|the-secret|[0-9a-f]{64}/.test(warnings.join()), warnings.join())
    })
  }

  test('keeps the first of two that are equal, and what is refused blocks nobody', () => {
    const { keys, warnings } = parse({ name: 'a', key: secret, rate: 0 }, { name: 'b', key: secret }, { name: 'c', key: secret })
    assert.deepEqual(keys.map(({ caller }) => caller.name), ['b'])
    assert.equal(warnings.length, 2)
    assert.match(warnings[1] ?? '', /entry 3 \("c"\) is refused/)
  })

  test('never takes for a key what only checks signatures', () => {
    const { keys, warnings } = parse({ name: 'sentry', secret, allow: ['hooks'] }, {
      name: 'both', key: 'the-key-of-another', secret: 'its-secret-of-16-or-more', allow: ['hooks'],
    })
    const [signer, both] = keys
    assert.notEqual(signer?.digest.toString('hex'), sha256(secret))
    assert.deepEqual(signer?.secrets, [secret])
    assert.equal(both?.digest.toString('hex'), sha256('the-key-of-another'))
    assert.deepEqual(both.secrets, ['the-key-of-another', 'its-secret-of-16-or-more'])
    assert.deepEqual(warnings, [])
  })

  test('allows hooks to what only checks signatures, and says where a secret checks none', () => {
    const { keys, warnings } = parse({ name: 'sentry', secret }, { name: 'both', key: 'the-key-of-another', secret: 'its-secret-of-16-or-more' })
    assert.deepEqual(keys.map(({ caller }) => caller.may('hooks')), [true, false])
    assert.deepEqual(warnings, ['keys: entry 2 ("both"): its secret checks nothing, for the key is not allowed hooks'])
  })

  test('says of a digest that it checks no signatures, where the key is allowed hooks', () => {
    const { keys, warnings } = parse({ name: 'ci', key: `sha256:${sha256(secret)}`, allow: ['hooks'] })
    assert.equal(keys.length, 1)
    assert.match(warnings.join(), /^keys: entry 1 \("ci"\): with a digest no signature can be checked/)
  })
})
