import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { classifyThrown, cleanWording } from '../../../src/platform/failure'
import type { SendError } from '../../../src/platform/port'

describe('what an adapter throws', () => {
  const cases: [string, unknown, SendError['outcome']][] = [
    ['a time-out', Object.assign(new Error('Timeout with request send_group_msg'), { name: 'TimeoutError' }), 'unanswered'],
    ['no connection', new TypeError('this.bot.internal._request is not a function'), 'unsent'],
    ['a refused connection', Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } }), 'unsent'],
    ['a lost connection', Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }), 'unanswered'],
    ['an answer of 403', Object.assign(new Error('Forbidden'), { response: { status: 403 } }), 'refused'],
    ['an answer of 502', Object.assign(new Error('Bad Gateway'), { response: { status: 502 } }), 'unanswered'],
    ['a reason', new Error('chat not found'), 'refused'],
    ['several failures', Object.assign(new Error(''), { errors: [new TypeError('_request is not a function')] }), 'unsent'],
    ['a text', 'no', 'refused'],
  ]
  for (const [what, error, outcome] of cases) {
    test(`${what}: ${outcome}`, () => {
      assert.equal(classifyThrown(error).outcome, outcome)
    })
  }
})

describe('the words of a platform', () => {
  test('lose paths, links and data', () => {
    assert.equal(cleanWording('ENOENT: no such file, open \'/data/uploads/a b/c.png\''), 'ENOENT: no such file, open \'…\'')
    assert.equal(cleanWording('bad file file:///srv/x.png here'), 'bad file … here')
    assert.equal(cleanWording('cannot read C:\\Users\\me\\x.png'), 'cannot read …')
    assert.equal(cleanWording('args: base64://AAAA'), 'args: …')
  })

  test('come as one line of at most 200 characters', () => {
    assert.equal(cleanWording(' a\n b\u0000c '), 'a b c')
    assert.equal(cleanWording('x'.repeat(500))?.length, 200)
  })

  test('are absent when nothing is left', () => {
    assert.equal(cleanWording(' \n '), undefined)
  })
})
