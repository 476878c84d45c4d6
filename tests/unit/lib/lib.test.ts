import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test } from 'node:test'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { InFlight, onAbort } from '../../../src/lib/async'
import { equalsSecret } from '../../../src/lib/crypto'
import { excessOfJson } from '../../../src/lib/json'
import { languageOf } from '../../../src/texts/language'
import { Limiter, OverloadError, type Limits } from '../../../src/commands/limiter'
import { describeError, describePlace, printable } from '../../../src/lib/log'
import { isSigningSecret, signatureHeaders } from '../../../src/lib/webhook-signature'
import { matchesGlob } from '../../../src/lib/words'
import { Random } from '../../faults/random'

test('onAbort calls everybody back once, and nobody who has gone, also meanwhile; it has one listener on the signal', () => {
  const controller = new AbortController()
  const called: string[] = []
  onAbort(controller.signal, () => {
    called.push('one')
    leaveLater()
  })
  const leave = onAbort(controller.signal, () => called.push('gone'))
  onAbort(controller.signal, () => called.push('two'))
  const leaveLater = onAbort(controller.signal, () => called.push('gone meanwhile'))
  assert.equal(getEventListeners(controller.signal, 'abort').length, 1)
  leave()
  leave()
  controller.abort()
  assert.deepEqual(called, ['one', 'two'])
})

test('a secret equals itself, as text or as bytes, and nothing else of any length', () => {
  assert.ok(equalsSecret('ключ', 'ключ'))
  assert.ok(equalsSecret(Buffer.from('ключ'), 'ключ'))
  for (const other of ['', 'клюЧ', 'ключ ', 'клю', 'к'.repeat(1000), Buffer.from('ключ', 'latin1')]) assert.ok(!equalsSecret(other, 'ключ'))
})

test('what is under way is waited for by everybody who asks, no longer than they ask, and nothing new begins', async () => {
  const inFlight = new InFlight()
  const [leave, leaveLast] = [inFlight.enter(), inFlight.enter()]
  await inFlight.drain(20)
  assert.throws(() => inFlight.enter(), { code: 'stopping' })
  let drained = 0
  const drains = [inFlight.drain(60_000), inFlight.drain(60_000)].map(drain => drain.then(() => drained++))
  leave()
  leave()
  await setImmediate()
  assert.equal(drained, 0)
  leaveLast()
  await Promise.all(drains)
  await inFlight.drain(60_000)
})

test('the language of a bot is the first of its locales that is one of ours, or Chinese', () => {
  for (const [locales, language] of [
    [['zh-CN', 'en-US'], 'zh-CN'], [['en-US', 'zh-CN'], 'en-US'], [['zh-TW'], 'zh-CN'], [['en'], 'en-US'], [['de-DE', 'en-GB'], 'en-US'],
    [['', 'en-US'], 'en-US'], [['de-DE'], 'zh-CN'], [['english'], 'zh-CN'], [[], 'zh-CN'],
  ] as const) assert.equal(languageOf(locales), language, locales.join())
})

describe('the bounds of JSON', () => {
  const nested = (levels: number): string => `${'[{"a":'.repeat(levels / 2)}1${'}]'.repeat(levels / 2)}`

  /** An object of so many values, itself included. */
  function wide(values: number): string {
    const fields = ['"\\\\"', '{}', '[]', '-1.5e+3', 'true', 'null', '[2]', '"[,]:{}\\""']
    let left = values - 1
    const parts: string[] = []
    for (let index = 0; left > 0; index++) {
      const field = left === 1 ? '0' : fields[index % fields.length] ?? ''
      parts.push(`"\\":${index}" :\n${field}`)
      left -= field === '[2]' ? 2 : 1
    }
    return `{${parts.join(' ,\t')}}`
  }

  test('count levels and values of a text', () => {
    const cases: [text: string, excess: string | undefined][] = [
      ['1', undefined], ['{}', undefined], [nested(64), undefined], [`[${nested(64)}]`, 'more than 64 levels'],
      [`{"messages":[${'['.repeat(5_000)}${']'.repeat(5_000)}]}`, 'more than 64 levels'],
      [JSON.stringify(Array<number>(19_999).fill(0)), undefined], [JSON.stringify(Array<number>(20_000).fill(0)), 'more than 20000 values'],
      [JSON.stringify({ msg: '[{'.repeat(100_000), more: '\\"'.repeat(50_000) }), undefined],
      ...[19_998, 19_999, 20_000].map((values): [string, undefined] => [wide(values), undefined]),
      ...[20_001, 20_002].map((values): [string, string] => [wide(values), 'more than 20000 values']),
    ]
    for (const [text, excess] of cases) assert.equal(excessOfJson(Buffer.from(text))?.toString(), excess, text.slice(0, 30))
    // Of equal names the text has all, an object only one.
    assert.equal(excessOfJson(Buffer.from(`{${'"a":0,'.repeat(20_000)}"a":0}`))?.toString(), 'more than 20000 values')
  })

  test('count what is no JSON as far as a parser would read it', () => {
    for (const text of ['', '"', '"\\', '{"a', ']]]]', ':::', '[1 2', 'NaN', '\ufeff{}']) assert.equal(excessOfJson(Buffer.from(text)), undefined)
    assert.equal(excessOfJson(Buffer.from('['.repeat(65)))?.toString(), 'more than 64 levels')
    assert.equal(excessOfJson(Buffer.from(`[${'0,'.repeat(20_000)}:::::`))?.toString(), 'more than 20000 values')
  })
})

describe('a limiter', () => {
  /** A limiter, and work for it that ends when told to. */
  function stage(limits: Partial<Limits> = {}) {
    const limiter = new Limiter({ concurrency: 1, capacity: 2, patience: 60_000, ...limits })
    const begun: string[] = []
    const ends = new Map<string, () => void>()
    const run = (name: string): Promise<string> => limiter.run(() => new Promise(resolve => {
      begun.push(name)
      ends.set(name, () => resolve(name))
    }))
    return { limiter, begun, run, end: (name: string) => ends.get(name)?.() }
  }

  test('lets so much be under way, so much wait in order, and turns the rest away', async () => {
    const { begun, run, end } = stage({ concurrency: 2 })
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(run)
    await assert.rejects(run('e'), OverloadError)
    assert.deepEqual(begun, ['a', 'b'])
    end('b')
    assert.equal(await b, 'b')
    await setImmediate()
    const f = run('f')
    for (const name of ['a', 'c']) end(name)
    assert.deepEqual(await Promise.all([a, c]), ['a', 'c'])
    await setImmediate()
    assert.deepEqual(begun, ['a', 'b', 'c', 'd', 'f'])
    for (const name of ['d', 'f']) end(name)
    assert.deepEqual(await Promise.all([d, f]), ['d', 'f'])
  })

  test('gives the place of work that fails to the next', async () => {
    const { limiter, run, end } = stage()
    const failing = limiter.run(() => Promise.reject(new Error('failed')))
    const next = run('next')
    await assert.rejects(failing, /failed/)
    end('next')
    assert.equal(await next, 'next')
  })

  test('turns away what has waited too long when its turn comes, and gives its place to the next', async () => {
    const { begun, run, end } = stage({ patience: 20 })
    const first = run('first')
    const late = run('late')
    await setTimeout(30)
    const next = run('next')
    end('first')
    await assert.rejects(late, OverloadError)
    await first
    end('next')
    await next
    assert.deepEqual(begun, ['first', 'next'])
  })
})

describe('the log', () => {
  const error = new TypeError('secret\n    at forged (place)')

  test('keeps foreign text to one line and to its direction', () => {
    assert.equal(printable('发票 é 😀 %s'), '发票 é 😀 %s')
    for (const character of ['\n', '\r', '\u001b', '\u009b', '\u0000', '\u2028', '\u2029', '\u202e', '\u200b', '\ud800']) {
      assert.equal(printable(`a${character}b`), 'a\ufffdb')
    }
  })

  test('has the text of an unexpected error in one line, cut, and its stack below', () => {
    const [first, second] = describeError(error).split('\n')
    assert.equal(first, 'TypeError: secret\ufffd    at forged (place)')
    assert.match(second ?? '', /^ {4}at .*lib\.test\.ts/)
    assert.equal(describeError(new Error('x'.repeat(500))).split('\n', 1)[0]?.length, 200)
    assert.equal(describeError('secret'), 'string')
  })

  test('knows an error by class and place alone where its text must not be shown', () => {
    assert.match(describePlace(error), /^"TypeError" at ".*lib\.test\.ts.*"$/)
    assert.equal(describePlace(Object.assign(new Error('x'), { stack: '' })), '"Error" at "unknown"')
    assert.equal(describePlace(undefined), 'undefined')
  })
})

describe('a webhook signature', () => {
  /** The vector that the libraries of the specification share. */
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const vector = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', time: 1614265330_000, body: '{"test": 2432232314}' }

  test('is that of the specification\'s own vector, and counts whole seconds that are over', () => {
    const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    for (const time of [vector.time, vector.time + 999]) {
      assert.deepEqual(signatureHeaders(secret, { ...vector, time }), { 'webhook-timestamp': '1614265330', 'webhook-signature': signature })
    }
  })

  for (const key of [secret, 'a passphrase', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', '密钥 é']) {
    test(`with the secret ${key} is verified by the specification's library`, () => {
      const body = '{"content":"你好 😀 \\u0000"}'
      const webhook = key === secret ? new Webhook(key) : new Webhook(Buffer.from(key), { format: 'raw' })
      const headers = { 'webhook-id': vector.id, ...signatureHeaders(key, { id: vector.id, time: Date.now(), body }) }
      assert.deepEqual(webhook.verify(body, headers), JSON.parse(body))
      assert.throws(() => webhook.verify(`${body} `, headers), /No matching signature/)
      assert.throws(() => webhook.verify(body, { ...headers, 'webhook-id': 'another' }), /No matching signature/)
      assert.throws(() => new Webhook('whsec_AAAA').verify(body, headers), /No matching signature/)
    })
  }

  test('has a secret of base64 with its prefix, or of any other text', () => {
    for (const each of [secret, 'whsec_YQ==', 'whsec_+/+/', 'whsec', 'any text', '0', 'WHSEC_!', 'é']) assert(isSigningSecret(each), each)
    for (const each of ['', 'whsec_', 'whsec_YQ', 'whsec_YR==', 'whsec_-_-_', 'whsec_ YQ==', 'whsec_YQ==\n', 'whsec_no base64']) assert(!isSigningSecret(each), each)
  })
})

describe('a pattern', () => {
  /** The same by definition: a star takes nothing, or one character and is still there. */
  function matchesByDefinition(pattern: string, text: string): boolean {
    if (pattern === '') return text === ''
    if (pattern.startsWith('*')) {
      return matchesByDefinition(pattern.slice(1), text) || (text !== '' && matchesByDefinition(pattern, text.slice(1)))
    }
    return text !== '' && text.startsWith(pattern.charAt(0)) && matchesByDefinition(pattern.slice(1), text.slice(1))
  }

  test('fits what it fits by definition, whatever both are', () => {
    const random = new Random(10)
    let matched = 0
    for (let count = 0; count < 20_000; count++) {
      const pattern = Array.from({ length: random.between(0, 6) }, () => random.pick(['a', 'b', '*', ':'])).join('')
      const text = Array.from({ length: random.between(0, 7) }, () => random.pick(['a', 'b', ':'])).join('')
      const expected = matchesByDefinition(pattern, text)
      assert.equal(matchesGlob(pattern, text), expected, `${pattern} ${text}`)
      if (expected) matched++
    }
    assert(matched > 1000 && matched < 19_000)
    for (const [pattern, text] of [['abc', 'ABC'], ['.*', 'ab'], ['[ab]', 'a'], ['a?', 'ab']] as const) assert(!matchesGlob(pattern, text), pattern)
    for (const [pattern, text] of [['release/*', 'release/1/2'], ['群*', '群一']] as const) assert(matchesGlob(pattern, text), pattern)
  })

  test('takes no time to speak of, however many stars it has', () => {
    const start = performance.now()
    assert(!matchesGlob('*a'.repeat(500) + 'b', 'a'.repeat(100_000)))
    assert(performance.now() - start < 1000)
  })
})
