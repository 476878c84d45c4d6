import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { parseRanges, plainAddress } from '../../../src/access/origin'
import { announceExpiry, describeExpiry, parseExpiry } from '../../../src/access/expiry'
import { parseKeys } from '../../../src/access/keys'
import { scopes } from '../../../src/access/scopes'
import { fits, parsePatterns } from '../../../src/access/target-pattern'
import { parseNames } from '../../../src/message/names'
import { readAddress } from '../../../src/message/target'
import { Random } from '../../faults/random'
import { counting } from './support'

const apiKey = 'the-master-key-of-all'
const { names } = parseNames({ ops: 'group:1', both: ['discord:group:2', 'private:3'] })
const secret = 'MARKER-0123456789'
const day = 24 * 60 * 60 * 1000
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const parse = (...entries: unknown[]) => parseKeys(entries, apiKey, names, counting())

describe('a list of keys', () => {
  test('takes entries with these fields', () => {
    for (const fields of [
      {}, { key: `sha256:${sha256(secret)}` }, { key: `SHA256:${sha256(secret).toUpperCase()}` },
      { targets: ['group:*', 'private:1', 'discord:group:3', 'ops', '*'], allow: [...scopes], from: ['10.0.0.0/8', '::1', '2001:db8::/32'] },
      // With commas, as on the config page.
      { targets: 'group:*, ops', allow: 'send,read', from: '127.0.0.1, ::1' },
      { sources: ['alertmanager', 'my.own_source-1'] }, { sources: 'github, gitlab', allow: 'hooks,read,mention-all' },
      { expires: '2099-12-31' }, { expires: '2099-12-31T23:59:00+08:00' }, { rate: 60 }, { rate: '60' },
      { targets: '', allow: null, expires: ' ', rate: undefined, from: '', secret: '' }, { name: 'other' }, { name: '部署 – ops №1' },
    ]) {
      const { keys, warnings } = parse({ name: 'other', key: 'another-secret-of-16' }, { name: 'ci', key: secret, ...fields })
      assert.deepEqual(warnings, [])
      assert.deepEqual(keys.map(({ digest }) => digest.toString('hex')), [sha256('another-secret-of-16'), sha256(secret)])
    }
  })

  /** What makes an entry wrong that has a name and a key otherwise. */
  const wrong: [object, RegExp][] = [
    [{ name: undefined }, /name is required/], [{ name: '' }, /name is required/], [{ name: 7 }, /name must be/],
    [{ name: ' console' }, /"console" is the name of the page in the console/],
    [{ name: ' plugin:shop' }, /names that begin with "plugin:" are those of plugins/],
    [{ name: 'a\nb' }, /name must be/], [{ name: 'a\u202eb' }, /name must be/], [{ name: 'a'.repeat(65) }, /name must be/],
    [{ name: '群'.repeat(22) }, /name must be/],
    [{ key: undefined }, /has no key/], [{ key: '' }, /has no key/], [{ key: secret.slice(0, 15) }, /key must be/],
    [{ key: ` ${secret.slice(0, 15)} ` }, /key must be/], [{ key: 1234567890123456 }, /key must be/],
    [{ key: 'sha256:MARKER' }, /key must be/], [{ key: `sha256:${sha256('')}0` }, /key must be/],
    [{ key: undefined, secret: 'MARKER' }, /secret must be/], [{ secret }, /equals another/],
    [{ key: apiKey }, /equals another/], [{ key: `sha256:${sha256(apiKey)}` }, /equals another/], [{ key: undefined, secret: apiKey }, /equals another/],
    [{ targets: ['group'] }, /targets must be/], [{ targets: ['nobody'] }, /targets must be/], [{ targets: [] }, /targets must be/],
    [{ targets: ',' }, /targets must be/], [{ targets: ['ops', 7] }, /targets must be/], [{ targets: { ops: true } }, /targets must be/],
    [{ allow: ['all'] }, /allow must be/], [{ allow: [] }, /allow must be/], [{ allow: 'send;read' }, /allow must be/], [{ allow: true }, /allow must be/],
    [{ sources: [] }, /sources must be/], [{ sources: ['hooks/github'] }, /sources must be/], [{ sources: { github: true } }, /sources must be/],
    [{ sources: 'github', allow: ['read'] }, /^[^:]*: [^:]*: with sources, allow must have hooks/],
    ...(['send', 'upload', 'onebot', 'manage'] as const).map((scope): [object, RegExp] => (
      [{ sources: 'github', allow: ['hooks', scope] }, /with sources, allow must have hooks, and may have mention-all and read besides/]
    )),
    [{ expires: 'soon' }, /expires must be/], [{ expires: '2026-02-30' }, /expires must be/], [{ expires: 2099 }, /expires must be/],
    [{ expires: {} }, /expires must be .* in quotes/], [{ rate: 0 }, /rate must be/], [{ rate: -1 }, /rate must be/],
    [{ rate: 1.5 }, /rate must be/], [{ rate: 'fast' }, /rate must be/], [{ from: ['localhost'] }, /from must be/], [{ from: ['10.0.0.0/33'] }, /from must be/],
    [{ from: [] }, /from must be/], [{ target: 'group:1' }, /no field "target"/],
  ]
  for (const [entry, reason] of [
    ...['text', 7, null, []].map(entry => [entry, /is no object/] as const),
    ...wrong.map(([fields, reason]) => [{ name: 'ci', key: secret, ...fields }, reason] as const),
  ]) {
    test(`refuses ${JSON.stringify(entry)} alone, and says why but not the secret`, () => {
      const { keys, warnings } = parse({ name: 'before', key: 'the-secret-of-before' }, entry, { name: 'after', key: 'the-secret-of-after' })
      assert.deepEqual(keys.map(({ caller }) => caller.name), ['before', 'after'])
      assert.equal(warnings.length, 1)
      assert.match(String(warnings[0]), /^keys: entry 2(?: \(".*"\))? is refused: /)
      assert.match(String(warnings[0]), reason)
      assert(!/MARKER|the-master-key|the-secret|[0-9a-f]{64}/.test(warnings.join()), warnings.join())
    })
  }

  test('keeps the first of two that are equal, and what is refused blocks nobody', () => {
    const { keys, warnings } = parse({ name: 'a', key: secret, rate: 0 }, { name: 'b', key: secret }, { name: 'c', key: secret })
    assert.deepEqual(keys.map(({ caller }) => caller.name), ['b'])
    assert.equal(warnings.length, 2)
    assert.match(String(warnings[1]), /entry 3 \("c"\) is refused/)
  })

  test('never takes for a key what only checks signatures, which is allowed hooks', () => {
    const { keys: [signer, both], warnings } = parse({ name: 'sentry', secret }, {
      name: 'both', key: 'the-key-of-another', secret: 'its-secret-of-16-or-more', allow: ['hooks'],
    })
    assert(signer && both)
    assert.notEqual(signer.digest.toString('hex'), sha256(secret))
    assert.deepEqual([signer.secrets, signer.caller.may('hooks')], [[secret], true])
    assert.equal(both.digest.toString('hex'), sha256('the-key-of-another'))
    assert.deepEqual(both.secrets, ['the-key-of-another', 'its-secret-of-16-or-more'])
    assert.deepEqual(warnings, [])
  })

  test('allows hooks where there is a secret, unless it says what is allowed', () => {
    const { keys, warnings } = parse({ name: 'both', key: 'the-key-of-another', secret })
    assert.deepEqual(keys.map(({ caller }) => (['send', 'hooks', 'manage'] as const).map(scope => caller.may(scope))), [[true, true, false]])
    assert.deepEqual(warnings, [])
  })

  test('says where a secret or a digest checks no signatures', () => {
    const { keys, warnings } = parse(
      { name: 'both', key: 'the-key-of-another', secret: 'its-secret-of-16-or-more', allow: ['send'] }, { name: 'ci', key: `sha256:${sha256(secret)}`, allow: ['hooks'] },
    )
    assert.deepEqual(keys.map(({ caller }) => caller.may('hooks')), [false, true])
    assert.equal(String(warnings[0]), 'keys: entry 1 ("both"): its secret checks nothing, for the key is not allowed hooks')
    assert.match(String(warnings[1]), /^keys: entry 2 \("ci"\): with a digest no signature can be checked/)
  })
})

describe('the end of a key', () => {
  test('is that of the day in the time zone of the process, or the moment', () => {
    const zone = process.env.TZ
    try {
      for (const [name, midnight] of [['UTC', '2026-11-21T00:00:00Z'], ['Asia/Shanghai', '2026-11-20T16:00:00Z'], ['America/New_York', '2026-11-21T05:00:00Z']] as const) {
        process.env.TZ = name
        assert.equal(parseExpiry('2026-11-20'), Date.parse(midnight), name)
        assert.equal(parseExpiry('2026-11-20T00:00'), Date.parse(midnight) - day, name)
        assert.equal(parseExpiry('2026-11-20T12:30:15+08:00'), Date.parse('2026-11-20T04:30:15Z'), name)
        assert.equal(parseExpiry('2026-11-20 12:30z'), Date.parse('2026-11-20T12:30:00Z'), name)
      }
      // The day on which the clocks are set back has 25 hours.
      assert.equal(parseExpiry('2026-11-01'), Date.parse('2026-11-02T05:00:00Z'))
    } finally {
      if (zone === undefined) delete process.env.TZ
      else process.env.TZ = zone
    }
  })

  test('is none in anything else', () => {
    for (const value of [
      '', 'soon', '2026', '2026-11', '2026-13-01', '2026-00-10', '2026-11-00', '2026-02-29', '2026-11-31', '20-11-2026', '2026-11-20T', '2026-11-20T25:00',
      '2026-11-20T12:60', '2026-11-20T12:00+99:00', '2026-11-20T12', '2026/11/20', 20261120, null, true, new Date(), {}, ['2026-11-20'],
    ]) assert.equal(parseExpiry(value), undefined, JSON.stringify(value))
  })

  test('is spoken of from a week before, at the start and once a day', () => {
    const now = Date.parse('2026-11-20T00:00:00Z')
    const keys = [-day, day, 6.9 * day, 7.1 * day, Infinity].map((time, index) => ({ expires: now + time, name: `key ${index}` }))
    const [first, second, ...others] = describeExpiry(keys, now)
    assert.equal(others.length, 1)
    assert.match(String(first), /^the key "key 0" expired at 2026-11-19T00:00:00\.000Z: /)
    assert.match(String(second), /^the key "key 1" expires at 2026-11-21T00:00:00\.000Z: /)

    const lines: string[] = []
    const timers: [callback: () => void, interval: number][] = []
    const set = (callback: () => void, interval: number) => {
      timers.push([callback, interval])
      return () => undefined
    }
    announceExpiry({ setTimeout: set, setInterval: set }, () => [{ expires: Date.now() + day, name: 'ci' }], (_, found) => lines.push(...found.map(String)))
    assert.deepEqual(timers.map(([, interval]) => interval), [5_000, day])
    for (const [index, [callback]] of timers.entries()) {
      callback()
      assert.equal(lines.length, index + 1)
    }
  })
})

describe('the addresses of a key', () => {
  test('are compared without what is only a way of writing them', () => {
    assert.equal(plainAddress('::ffff:10.1.2.3'), '10.1.2.3')
    assert.equal(plainAddress('::FFFF:10.1.2.3'), '10.1.2.3')
    assert.equal(plainAddress('fe80::1%eth0'), 'fe80::1')
    assert.equal(plainAddress('2001:db8::1'), '2001:db8::1')
    for (const text of ['', 'unknown', '10.1.2', '10.1.2.3.4', '10.1.2.3, 10.1.2.4', '::ffff:10.1.2']) assert.equal(plainAddress(text), undefined, text)
  })

  test('are in a range or not', () => {
    const cases: [ranges: string[], inside: string[], outside: string[]][] = [
      [['10.0.0.0/8'], ['10.0.0.0', '10.255.255.255'], ['9.255.255.255', '11.0.0.0', '::1', '::a00:1']],
      [['192.0.2.7'], ['192.0.2.7'], ['192.0.2.6', '192.0.2.8']],
      [['0.0.0.0/0'], ['1.2.3.4', '255.255.255.255'], ['::1']],
      [['2001:db8::/32', '::1'], ['2001:db8::1', '2001:db8:ffff::', '::1'], ['2001:db9::', '::2', '127.0.0.1']],
      [['192.0.2.77/24'], ['192.0.2.1'], ['192.0.3.1']],
      [['::ffff:10.0.0.0/104'], ['::ffff:a01:203', '10.1.2.3'], ['11.1.2.3']],
    ]
    for (const [list, inside, outside] of cases) {
      const isIn = parseRanges(list)
      assert(isIn)
      for (const address of inside) assert.equal(isIn(address), true, address)
      for (const address of outside) assert.equal(isIn(address), false, address)
    }
    for (const text of ['', 'localhost', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0', '::/129', 'fe80::1%eth0', '*', '10.0.0.0/255.0.0.0']) {
      assert.equal(parseRanges(['127.0.0.1', text]), undefined, text)
    }
  })
})

describe('the targets of a key', () => {
  test('are targets with stars or without, a star alone, or names', () => {
    assert.deepEqual(parsePatterns('group:1*', names), [{ kind: 'group', id: '1*' }])
    assert.deepEqual(parsePatterns('dis*:private:*', names), [{ platform: 'dis*', kind: 'private', id: '*' }])
    assert.deepEqual(parsePatterns('*', names), [{ kind: 'group', id: '*' }, { kind: 'private', id: '*' }])
    assert.deepEqual(parsePatterns('both', names), [{ platform: 'discord', kind: 'group', id: '2' }, { kind: 'private', id: '3' }])
    for (const text of ['', '**', 'o*', 'Ops', 'group', 'group:', '*:1', 'channel:1', 'a:b:group:1']) assert.equal(parsePatterns(text, names), undefined, text)
  })

  test('fit themselves, and what they fit without its platform they fit on some platform, whatever they are', () => {
    const random = new Random(7)
    const word = (letters: readonly string[]): string => Array.from({ length: random.between(1, 3) }, () => random.pick(letters)).join('')
    const platforms = ['a', 'b', 'ab', 'ba', 'aa', 'bb', 'aab', 'abb']
    let fitted = 0
    for (let count = 0; count < 5_000; count++) {
      const kind = random.pick(['group', 'private'])
      const [pattern] = parsePatterns(`${random.chance(0.5) ? `${random.pick(['a', 'b', 'a*', '*b', '*'])}:` : ''}${kind}:${word(['1', '2', '*'])}`, names) ?? []
      const address = readAddress(`${random.pick(platforms)}:${random.pick(['group', 'private'])}:${word(['1', '2'])}`)
      assert(pattern && address?.platform !== undefined)
      const { target, platform } = address
      assert(fits(pattern, pattern, pattern.platform?.replaceAll('*', 'x')))
      const somewhere = platforms.some(each => fits(pattern, target, each))
      assert.equal(fits(pattern, target, undefined), somewhere)
      if (!fits(pattern, target, platform)) continue
      fitted++
      assert(somewhere && kind === target.kind)
    }
    assert(fitted > 100 && fitted < 4_000, String(fitted))
  })
})
