import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { describe, test } from 'node:test'
import { classifyThrown, cleanWording } from '../../../src/platform/failure'
import { SendError } from '../../../src/platform/port'
import { Random } from '../../faults/random'
import { listen } from '../../support/listen'

/** The failure of a system call. */
function failed(syscall: string, code: string): Error {
  return Object.assign(new Error(`${syscall} ${code} 192.0.2.1:443`), { code, syscall })
}

/** As the library `socks` names it, by its class only. */
class SocksClientError extends Error {}

/** The failure of a `fetch` as Koishi's `http` throws it. */
function wrapped(code: string | undefined, cause: Error = Object.assign(new Error('socket hang up'), { code })): Error {
  return new Error('fetch http://127.0.0.1:3000/send_group_msg failed', { cause: new TypeError('fetch failed', { cause }) })
}

describe('what an adapter throws', () => {
  const cases: [string, unknown, SendError['outcome']][] = [
    ['a time-out', Object.assign(new Error('Timeout with request send_group_msg'), { name: 'TimeoutError' }), 'unanswered'],
    ['no connection', new TypeError('this.bot.internal._request is not a function'), 'unsent'],
    ['a refused connection', Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } }), 'unsent'],
    ['a lost connection', Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }), 'unanswered'],
    ['a refused connection, as Koishi tells it', wrapped('ECONNREFUSED'), 'unsent'],
    ['a lost connection, as Koishi tells it', wrapped('ECONNRESET'), 'unanswered'],
    // Node has the code of the first address for all.
    ['no connection to any of several addresses', wrapped('ETIMEDOUT', Object.assign(new AggregateError([failed('connect', 'ETIMEDOUT')]), { code: 'ETIMEDOUT' })), 'unsent'],
    ['no connection to a mail server', Object.assign(failed('connect', 'ETIMEDOUT'), { code: 'ESOCKET' }), 'unsent'],
    ['a proxy that refuses', wrapped('UND_ERR_ABORTED', new Error('Proxy response (502) !== 200 when HTTP Tunneling')), 'unsent'],
    ['a SOCKS proxy that refuses', wrapped(undefined, new SocksClientError('Socks5 proxy rejected connection - HostUnreachable')), 'unsent'],
    ['a host that was out of reach during the call', wrapped('EHOSTUNREACH', failed('read', 'EHOSTUNREACH')), 'unanswered'],
    ['a connection that was lost for an unknown reason', wrapped(undefined), 'unanswered'],
    ['an answer that ends early', new TypeError('terminated'), 'unanswered'],
    ['an answer that is no JSON', new SyntaxError('Unexpected end of JSON input'), 'unanswered'],
    ['an answer of 403', Object.assign(new Error('Forbidden'), { response: { status: 403 } }), 'refused'],
    ['an answer of 502', Object.assign(new Error('Bad Gateway'), { response: { status: 502 } }), 'unanswered'],
    ['a reason', new Error('chat not found'), 'refused'],
    ['several failures', Object.assign(new Error(''), { errors: [new TypeError('_request is not a function')] }), 'unsent'],
    ['a text', 'no', 'refused'],
  ]
  for (const [what, error, outcome] of cases) test(`${what}: ${outcome}`, () => assert.equal(classifyThrown(error).outcome, outcome))

  test('a connection that closes before it is encrypted: unsent', async t => {
    const server = createServer(socket => socket.end())
    t.after(() => server.close())
    const error: unknown = await fetch(`https://127.0.0.1:${await listen(server)}`).catch((reason: unknown) => reason)
    assert.equal(classifyThrown(error).outcome, 'unsent')
  })
})

describe('the words of a platform', () => {
  const cases: [string, string | undefined][] = [
    // Between quotation marks, which tell where a path ends.
    ['ENOENT: no such file, open \'/data/uploads/a b/c.png\' (twice)', 'ENOENT: no such file, open \'…\' (twice)'],
    ['rename \'/a b/c\' -> "D:\\c d\\e.png"!', 'rename \'…\' -> "…"!'],
    ['open \'/data/it\'s mine/x y\'; no', 'open \'…\'; no'],
    ['无法打开“/数据/我的 文件/图.png”，请重试', '无法打开“…”，请重试'],
    // Without them, nothing tells.
    ['bad file file:///srv/my files/x y.png', 'bad file …'],
    ['bad file FILE:///srv/x.png here', 'bad file …'],
    ['cannot read C:\\Users\\me and you\\x y.png', 'cannot read …'],
    ['cannot read c:/Users/me and you/x y.png', 'cannot read …'],
    ['cannot read \\\\server\\a share\\x y', 'cannot read …'],
    ['识别URL失败, uri= /app/my uploads/x y.png', '识别URL失败, uri= …'],
    ['打开/app/my uploads/x失败', '打开…'],
    ['no ~/x y', 'no …'],
    ['no ../x y', 'no …'],
    ['one /srv/a b\ntwo', 'one … two'],
    ['open \'/data/uploads/a b', 'open \'…'],
    // Links and data hold no blank.
    ['args: base64://AAAA and data:image/png;base64,AAAA, see https://example.com/a/b now', 'args: … and … see … now'],
    // No paths.
    ['群/好友不存在', '群/好友不存在'],
    ['1/2 and 2026/01/31, and/or', '1/2 and 2026/01/31, and/or'],
    // What cannot be seen or confuses.
    [' a\n b\u0000c\u2028d ', 'a b c d'],
    ['a\u202eb\u2066c\u200bd\ufeffe\u00adf\u3164g\u061ch', 'abcdefgh'],
    ['a\ud800b\udc00c🙊', 'a\ufffdb\ufffdc🙊'],
    ['fi\u200ble:///srv/x y /s\u200drv/z', '…'],
    [' \n\u200b ', undefined],
  ]
  for (const [text, expected] of cases) test(JSON.stringify(text), () => assert.equal(cleanWording(text), expected))

  test('have at most 200 characters, none of them in halves', () => {
    assert.equal(cleanWording('x'.repeat(500))?.length, 200)
    const cut = cleanWording(`${'x'.repeat(198)}🙊${'x'.repeat(50)}`)
    assert.equal(cut, `${'x'.repeat(198)}…`)
  })

  test('never hold more than three characters of an absolute path, whatever stands around it', () => {
    const random = new Random(20_260_101)
    // Words that stand nowhere but in the paths.
    const words = ['Zürich', 'qqqq', '我的资料', 'ßßßß.wwww', 'zzzz-jjjj', 'Kkkk\'s', '(ffff)', 'vvvv,vvvv', '%4aaaa', 'ÿÿÿÿ;', '🙊🙈🙉🙊']
    const segment = (): string => Array.from({ length: random.between(1, 3) }, () => random.pick(words)).join(' ')
    for (let round = 0; round < 20_000; round++) {
      const separator = random.pick(['/', '\\'])
      const root = separator === '/' ? random.pick(['/', 'file:///', 'c:/', 'file://C:/']) : random.pick(['C:\\', 'd:\\', '\\\\', '\\\\?\\C:\\'])
      const path = root + Array.from({ length: random.between(2, 4) }, segment).join(separator)
      const [before, after] = random.pick([
        ['open ', ' failed'], ['open \'', '\' failed'], ['open "', '", again'], ['', ''], ['不存在：', '。'], ['uri=', ''], ['“', '”没有'], ['(', ')'],
        ['ENOENT: \'', '\' -> \'/x\''], ['`', '`'], ['{"file":"', '"}'], ['打开', '失败'], ['a\n', '\nb'],
      ] as const)
      const clean = cleanWording(before + path + after) ?? ''
      for (const word of words) {
        for (let index = 0; index + 4 <= word.length; index++) {
          assert(!clean.includes(word.slice(index, index + 4)), `${JSON.stringify(before + path + after)} became ${JSON.stringify(clean)}`)
        }
      }
    }
  })
})

test('a failed send keeps no stack, whose frames would keep the message in memory', () => {
  assert.equal(new SendError('refused', 'no').stack, 'SendError: no')
})

test('the log has the words of the relay, but not those that an adapter throws', () => {
  const logged = (cause: Error) => new SendError('unanswered', 'lost', { cause }).toRelayError().logText.toString()
  assert.equal(logged(new SendError('unanswered')), 'the message may have arrived: lost')
  assert.equal(logged(new TypeError('secret')), 'the adapter threw TypeError')
})
