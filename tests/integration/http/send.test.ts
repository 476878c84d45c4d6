import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { apiKey, read, startRelay, useRelay, type Reply } from '../../support/relay'
import { until } from '../../support/until'
import { relayWith } from '../deliveries/support'
import { failureOf, idsOf, sha256 } from '../webhook/support'
import { assertFailure, Wire } from './support'

const group = '123456'
const user = '10001'
const bytes = Buffer.from(Array.from({ length: 3000 }, (_, index) => index % 256))

const keys = [
  { name: 'narrow', key: 'the-secret-of-narrow', targets: [`group:${group}`] },
  { name: 'slow', key: 'the-secret-of-slow', rate: 1 },
]
const targets = { ops: `group:${group}`, both: [`group:${group}`, `private:${user}`], lounge: { to: 'group:3', platform: 'onebot' } }

const relay = useRelay({
  config: { keys, targets, maxBodySize: 20_000, maxUploadSize: 10_000, allowedExtensions: 'txt,log,png,mp4,pdf,bin,jpg', chatApiMaxRetries: 0 },
})

interface Request {
  method?: string
  body?: string | Buffer | FormData
  /** The Content-Type; none unless given, but for a form. */
  type?: string
  headers?: Record<string, string>
}

async function send(path: string, { method = 'POST', body = 'hello', type, headers = {} }: Request = {}): Promise<Reply> {
  return read(await relay.request(`/send/${path}`, {
    method,
    // Text would be given a type of its own.
    body: typeof body === 'string' ? Buffer.from(body) : body,
    headers: { ...headers, ...type !== undefined && { 'content-type': type } },
  }))
}

/** What was delivered, each message in short: its segments in their order, a file with its name, media by the digest of their bytes. */
function seen(): string[] {
  return relay.simulator.ledger.map(({ target, kind, segments, media }) => {
    const rest = [...media]
    const parts = kind === 'file' ? [] : segments.map(({ type, data }) => type === 'text' ? String(data.text) : `[${type} ${rest.shift()?.sha256}]`)
    const files = kind === 'file' ? media.map(({ name, sha256: digest }) => `[file ${name} ${digest}]`) : []
    return `${target.type} ${target.id}: ${[...parts, ...files].join('')}`
  })
}

/** The files in the upload folder, temporary ones as well. */
async function stored(): Promise<string[]> {
  const entries = await readdir(relay.uploadDir, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries.map(({ name }) => name)
}

/** A form with a text, and a part with an empty file name, as browsers send a file input in which nothing was chosen. */
function nameless(content: string): Request {
  const head = (more: string): string => `--limit\r\nContent-Disposition: form-data; name=${more}\r\n\r\n`
  const body = `${head('"msg"')}a\r\n${head('"file"; filename=""\r\nContent-Type: application/octet-stream')}${content}\r\n--limit--\r\n`
  return { body, type: 'multipart/form-data; boundary=limit' }
}

type Part = [name: string, content: string | Buffer, file?: string, type?: string]

/** One part more than a form may have. */
function many(part: Part): Part[] {
  return Array.from({ length: 1001 }, () => part)
}

function form(...parts: Part[]): FormData {
  const made = new FormData()
  for (const [name, content, file, type] of parts) {
    if (file === undefined) made.append(name, String(content))
    else made.append(name, new Blob([new Uint8Array(Buffer.from(content))], { ...type !== undefined && { type } }), file)
  }
  return made
}

const to = `group ${group}: `
const digest = sha256(bytes)
const picture = `${to}[image ${digest}]`
const video = `${to}[video ${digest}]`
const file = (name: string, content: string | Buffer = bytes): string => `${to}[file ${name} ${sha256(content)}]`

describe('what a body is', () => {
  const cases: [what: string, path: string, request: Request, seen: string[]][] = [
    ['none is text', 'ops', { body: 'Build 42 failed' }, [`${to}Build 42 failed`]],
    ['text/* is text, letter for letter', 'ops', { body: ' a\r\n<img src="x">[CQ:at,qq=all]&amp;\n', type: 'text/plain' }, [`${to} a\r\n<img src="x">[CQ:at,qq=all]&amp;\n`]],
    ['what curl -d says is text, raw', 'ops', { body: 'a=1&b=%41+c', type: 'application/x-www-form-urlencoded' }, [`${to}a=1&b=%41+c`]],
    ['text/html is text', 'ops', { body: '<b>x</b>', type: 'text/html' }, [`${to}<b>x</b>`]],
    ['text in the charset that is named', 'ops', { body: Buffer.from('b9b9bda8caa7b0dc', 'hex'), type: 'text/plain; charset=GBK' }, [`${to}构建失败`]],
    ['text of curl -d in a charset', 'ops', { body: Buffer.from('a4a4a4e5', 'hex'), type: 'application/x-www-form-urlencoded; charset="big5"' }, [`${to}中文`]],
    ['text in UTF-16', 'ops', { body: Buffer.from('\ufeff构建', 'utf16le'), type: 'text/plain; charset=utf-16' }, [`${to}构建`]],
    ['text that was cut within characters', 'ops', { body: Buffer.from('构建失败').subarray(1, -1) }, [`${to}建失`]],
    ['text with a byte order mark', 'ops', { body: '\ufeff构建', type: 'text/plain; charset=UTF-8' }, [`${to}构建`]],
    ['image/* is a picture', 'ops', { body: bytes, type: 'image/png' }, [picture]],
    ['video/* is a video', 'ops', { body: bytes, type: 'Video/MP4; codecs="avc1"' }, [video]],
    ['any other is a file, with a name from its type', 'ops', { body: bytes, type: 'application/pdf' }, [file('file.pdf')]],
    ['a file with a name from the query', 'ops?filename=%E6%8A%A5%E5%91%8A.bin', { body: bytes, type: 'application/octet-stream' }, [file('报告.bin')]],
    ['a file with a name from Content-Disposition', 'ops?filename=b.bin', {
      body: bytes, type: 'application/octet-stream', headers: { 'content-disposition': 'attachment; filename*=UTF-8\'\'%E5%8F%91.bin' },
    }, [file('发.bin')]],
    ['a file with a name in another charset', 'ops', {
      body: bytes, type: 'application/octet-stream', headers: { 'content-disposition': 'attachment; filename*=GBK\'\'%B1%A8%B8%E6.bin' },
    }, [file('报告.bin')]],
    ['a name in the query in its charset', 'ops?filename=%B1%A8%B8%E6.bin&charset=gbk', { body: bytes, type: 'application/octet-stream' }, [file('报告.bin')]],
    // curl -T on Chinese Windows.
    ['a name in the path in its charset', 'ops/%B1%A8%B8%E6.bin?charset=gbk', { method: 'PUT', body: bytes }, [file('报告.bin')]],
    ['a name in the path with a percent sign', 'ops/100%25%20a.bin', { method: 'PUT', body: bytes }, [file('100 a.bin')]],
    ['a file with a name that leads elsewhere', 'ops?filename=..%2F..%2Fa.bin', { body: bytes, type: 'application/zip' }, [file('a.bin')]],
    ['JSON is that of /webhook', 'ops', { body: '{"msg":"a","expires_in":60}', type: 'application/json; charset=utf-8' }, [`${to}a`]],
    ['JSON with a raw line break in a string', 'ops', { body: '{"msg":"a\nb"}', type: 'application/json' }, [`${to}a\nb`]],
    ['JSON with several items', 'ops', {
      body: JSON.stringify({ messages: [{ msg: 'a' }, { type: 'image', url: `base64://${bytes.toString('base64')}` }] }), type: 'application/json',
    }, [`${to}a[image ${digest}]`]],
    ['a form is a batch of its parts in their order', 'ops', {
      body: form(
        ['msg', 'Nightly'], ['file', bytes, 'chart.png', 'image/png'], ['text', 'below'], ['any', bytes, 'a.pdf', 'application/pdf'],
        ['v', bytes, 'v.mp4', 'video/mp4'],
      ),
    }, [`${to}Nightly[image ${digest}]below`, `${to}[video ${digest}]`, file('a.pdf')]],
    ['a part of a form is what its extension says, where its type says nothing', 'ops', {
      body: form(['a', bytes, 'a.JPG'], ['b', bytes, 'b.mp4', 'application/octet-stream'], ['c', bytes, 'png.bin'], ['d', bytes, 'd.png', 'text/plain']),
    }, [picture, video, file('png.bin'), file('d.png')]],
    ['an empty part without a name is no file', 'ops', nameless(''), [`${to}a`]],
    ['a name in the path makes a file, whatever the type', 'ops/build.log', { method: 'PUT', body: 'all is well', type: 'image/png' }, [file('build.log', 'all is well')]],
    ['a name in the path makes a picture', 'ops/chart.PNG', { method: 'PUT', body: bytes }, [picture]],
    ['a name in the path makes a video', 'ops/a.mp4', { method: 'PUT', body: bytes, type: 'application/json' }, [video]],
    ['a name in the path with blanks and Chinese', 'ops/build%20%E6%97%A5%E5%BF%97.txt', { method: 'PUT', body: bytes }, [file('build 日志.txt')]],
    ['a name in the path with a slash', 'ops/logs%2F..%2Fa.txt', { method: 'PUT', body: bytes }, [file('a.txt')]],
    ['no name in the path is as without it', 'ops/', { method: 'PUT', body: 'text' }, [`${to}text`]],
    ['PUT is as POST', 'ops', { method: 'PUT', body: bytes, type: 'image/jpeg' }, [picture]],
    ['?type=file wins over a type', 'ops?type=file', { body: 'all', type: 'text/plain' }, [file('file.txt', 'all')]],
    ['?type=text wins over a type', 'ops?type=text', { body: '{"msg":1}', type: 'application/json' }, [`${to}{"msg":1}`]],
    ['?type=image wins over a type', 'ops?type=image&filename=a.png', { body: bytes, type: 'application/octet-stream' }, [picture]],
    ['?type=video wins over a name', 'ops/a.bin?type=video', { method: 'PUT', body: bytes }, [video]],
    ['?type=audio makes a voice message', 'ops/a.pdf?type=audio', { method: 'PUT', body: bytes }, [`${to}[record ${digest}]`]],
    ['?type=text wins over a name', 'ops/a.exe?type=text', { method: 'PUT', body: 'b' }, [`${to}b`]],
    ['?type=file is for the files of a form', 'ops?type=file', { body: form(['msg', 'a'], ['f', bytes, 'a.png', 'image/png']) }, [`${to}a`, file('a.png')]],
    ['?type=text is for the files of a form', 'ops?type=text', { body: form(['f', 'a\n', 'a.exe', 'image/png'], ['msg', 'b']) }, [`${to}a\nb`]],
  ]
  for (const [what, path, request, expected] of cases) {
    test(what, async () => {
      const { status, headers, body } = await send(path, request)
      assert.equal(status, 200, body.msg)
      assert.equal(headers.get('relay-outcome'), 'sent')
      assert.deepEqual(seen(), expected)
    })
  }

  test('decides about the answer: a text is a single message, a form a batch', async () => {
    assert.equal(idsOf(await send('ops', { body: 'a' })).length, 1)
    const { headers, body } = await send('ops', { body: form(['msg', 'a']) })
    const [entry] = relay.simulator.ledger.slice(1)
    const results = [{ index: 0, success: true, message_ids: [String(entry?.messageId)] }]
    assert.deepEqual(body.data, { total: 1, success: 1, failed: 0, results, delivery_id: headers.get('x-request-id') })
  })

  test('names the parts of a form that mean nothing, and refuses them where that is asked for', async () => {
    const request = { body: form(['msg', 'a'], ['message', 'b']) }
    const { data } = await send('ops', request)
    assert.deepEqual(data.ignored, ['message'])
    const refused = await send('ops', { ...request, headers: { prefer: 'handling=strict' } })
    assert.equal(failureOf(refused, 400), 'these fields have no meaning here, leave them out: message')
    assert.equal(refused.headers.get('preference-applied'), 'handling=strict')
    assert.equal(relay.simulator.ledger.length, 1)
  })

  test('of a form may be wrong in a part', async () => {
    const part = new Blob([Buffer.from([0xff])], { type: 'text/plain' })
    const made = form(['msg', ' '], ['msg', 'a'], ['text', ''])
    made.append('file', part, 'a.txt')
    const { status, body } = await send('ops?type=text', { body: made })
    assert.equal(status, 200)
    assert.match(JSON.stringify(body.data), /"failed":2.*nothing to send.*"success":true.*the text is not utf-8/)
    assert.deepEqual(seen(), [`${to}a`])
    assert.match(failureOf(await send('ops', { body: form(['msg', '']) }), 400), /nothing to send/)
  })

  test('of a form may be text in a charset of its own', async () => {
    const part = ['--limit', 'Content-Disposition: form-data; name="msg"', 'Content-Type: text/plain; charset=gbk']
    const made = [...part, '', '\xb9\xb9\xbd\xa8', '--limit--', ''].join('\r\n')
    await send('ops', { body: Buffer.from(made, 'latin1'), type: 'multipart/form-data; boundary=limit' })
    assert.deepEqual(seen(), [`${to}构建`])
  })
})

describe('a text that may be meant as something else is sent, and its answer has a hint:', () => {
  const json = JSON.stringify({ group_id: '123456', message: 'hi' }, null, 2)
  const form = 'application/x-www-form-urlencoded'
  const cases: [what: string, path: string, request: Request & { body: string }, hint: RegExp | undefined][] = [
    ['JSON, as curl -d sends it', 'ops', { body: json, type: form }, /^this was sent as text: .*"Content-Type: application\/json"$/],
    ['JSON without a type, for a list', 'ops,ops', { body: ` ${json}\n` }, /^this was sent as text/],
    ['JSON, in a dry run', 'ops?dry_run=1', { body: json, type: 'text/plain' }, /^this was sent as text/],
    ['a file of curl -T without a slash', 'ops', { method: 'PUT', body: 'a log' }, /: end the address with a slash, .* arrives as a file$/],
    ['no hint for JSON that is wanted as text', 'ops?type=text', { body: json }, undefined],
    ['no hint for braces', 'ops', { body: '{a} and {b}' }, undefined],
  ]
  for (const [what, path, request, hint] of cases) {
    test(what, async () => {
      const { status, body: { data } } = await send(path, request)
      assert.equal(status, 200)
      const told: unknown = Reflect.get(data ?? {}, 'hint')
      if (hint) assert.match(String(told), hint)
      else assert.equal(told, undefined)
      if (!path.includes('dry')) assert.deepEqual(seen(), [to + request.body])
    })
  }
})

describe('a long text', () => {
  const line = `${'x'.repeat(299)}\n`
  const long = line.repeat(20)

  test('does so in a form, and as curl -d sends it', async () => {
    await send('ops', { body: form(['msg', long], ['file', bytes, 'a.bin']) })
    await send('ops', { body: long, type: 'application/x-www-form-urlencoded' })
    assert.deepEqual(seen().map(text => text.slice(0, to.length + 5)), [`${to}xxxxx`, `${to}[file`, `${to}[file`, `${to}xxxxx`, `${to}[file`])
  })

  test('of 4,500 characters goes as it is, and so does JSON', async () => {
    await send('ops', { body: '字'.repeat(4500) })
    await send('ops', { body: JSON.stringify({ msg: long }), type: 'application/json' })
    idsOf(await relay.send({ group_id: group, msg: long }))
    assert.deepEqual(seen(), [`${to}${'字'.repeat(4500)}`, `${to}${long}`, `${to}${long}`])
  })
})

describe('the path', () => {
  const cases: [path: string, seen: string[]][] = [
    [`group:${group}`, [`${to}hello`]],
    [`private:${user}`, [`private ${user}: hello`]],
    [`onebot:group:${group}`, [`${to}hello`]],
    [`group%3A${group}`, [`${to}hello`]],
    [`private:${user},group:${group}`, [`private ${user}: hello`, `${to}hello`]],
    [`private:${user}%2Cgroup:${group}/`, [`private ${user}: hello`, `${to}hello`]],
    [`ops,group:${group}`, [`${to}hello`]],
    ['both', [`${to}hello`, `private ${user}: hello`]],
  ]
  for (const [path, expected] of cases) {
    test(`${path} leads there`, async () => {
      const { status, body } = await send(path)
      assert.equal(status, 200, body.msg)
      assert.deepEqual(seen().sort(), expected.sort())
      assert.equal(JSON.stringify(body.data).includes('"deliveries"'), /,|%2C|both/.test(path))
    })
  }

  const wrong: [path: string, status: number, msg: RegExp][] = [
    ['nobody', 404, /^no such target/],
    ['ops,', 404, /^no such target/],
    [',', 404, /^no such target/],
    ['group:', 404, /^no such target/],
    ['%ff', 404, /^no such target/],
    ['group:abc', 400, /./],
    [Array.from({ length: 101 }, (_, index) => `group:${index + 1}`).join(), 400, /more than 100 targets/],
  ]
  for (const [path, status, msg] of wrong) {
    test(`${path.slice(0, 20)} is a ${status}`, async () => {
      const before = await stored()
      assert.match(failureOf(await send(path, { body: bytes, type: 'image/png' }), status), msg)
      assert.deepEqual(await stored(), before)
      assert.deepEqual(seen(), [])
    })
  }

  test('has a list of targets, of which each is answered by itself', async () => {
    const { status, body } = await send('ops,group:abc', { body: bytes, type: 'image/png' })
    assert.equal(status, 200)
    const { data } = body
    const text = JSON.stringify(data)
    assert.match(text, /^\{"total":2,"success":1,"failed":1,"deliveries":\[\{"target":"group:123456",.*"success":true/)
    assert(text.includes('{"target":"group:abc","success":false,"code":400,'))
    assert.deepEqual(seen(), [picture])
    const failed = await read(await relay.request('/send/ops,group:abc?fail=any', { method: 'POST', body: 'a' }))
    assert.equal(failed.status, 502)
    assert.equal(failed.body.msg, '1 of 2 failed')
  })

  test('has a list of targets that all are wrong, and nothing of the body stays', async () => {
    const before = await stored()
    const { body } = await send('group:abc,group:def', { body: bytes, type: 'image/png' })
    assert.match(JSON.stringify(body.data), /"failed":2/)
    assert.deepEqual(await stored(), before)
  })

  test('wants another method with a name', async () => {
    const { status, headers } = await send('ops/a.log')
    assert.deepEqual([status, headers.get('allow')], [405, 'PUT'])
    assert.equal((await read(await relay.request('/send/ops'))).headers.get('allow'), 'POST, PUT')
  })
})

test('the bot is chosen in JSON', async () => {
  const body = JSON.stringify({ msg: 'a', platform: 'discord' })
  failureOf(await send('ops', { body, type: 'application/json' }), 503)
  assert.match(failureOf(await send('lounge', { body, type: 'application/json' }), 400), /another bot/)
  assert.equal((await send('ops', { body: '{"msg":"a","self_id":"10000"}', type: 'application/json' })).status, 200)
})

describe('a request is refused, and nothing of it stays:', () => {
  const cases: [what: string, path: string, request: Request, status: number, msg: RegExp][] = [
    ['an empty body', 'ops', { body: '' }, 400, /nothing to send: the text is empty/],
    ['a blank text', 'ops', { body: ' \n\t' }, 400, /nothing to send: the text is empty/],
    ['an empty picture', 'ops', { body: '', type: 'image/png' }, 400, /the body is empty/],
    ['an empty file', 'ops/a.log', { method: 'PUT', body: '' }, 400, /the body is empty/],
    ['empty JSON', 'ops', { body: '', type: 'application/json' }, 400, /invalid json/],
    ['a name in the query in a charset that nobody names', 'ops?filename=%B1%A8.bin', { body: bytes, type: 'application/zip' }, 400, /charset=gbk/],
    ['a name in the path in a charset that nobody names', 'ops/%B1%A8.bin', { method: 'PUT', body: bytes }, 400, /charset=gbk/],
    ['bytes without a name, where only some kinds are allowed', 'ops', nameless('bytes'), 415, /only: txt, log, png/],
    ['a form with the text in another part', 'ops', { body: form(['message', 'a'], ['file', '@a.log']) }, 400, /no part is named msg or text, and none is a file: found "message", "file" instead$/],
    ['a form without a boundary', 'ops', { body: 'x', type: 'multipart/form-data' }, 400, /boundary/],
    ['a form that ends early', 'ops', { body: '--l\r\nContent-Disposition: form-data; name="a"; filename="a.txt"\r\n\r\nabc', type: 'multipart/form-data; boundary=l' }, 400, /last boundary/],
    ['a target in JSON', 'ops', { body: '{"msg":"a","to":"ops"}', type: 'application/json' }, 400, /the target is in the path/],
    ['a file without a slash', 'ops', { method: 'PUT', body: bytes }, 400, /^the text is not utf-8: .*, or end the address with a slash, so that curl -T adds the name/],
    ['a large file without a slash', 'ops', { method: 'PUT', body: 'x'.repeat(20_001) }, 413, /larger than 19.5 KB: end the address with a slash/],
    ...['', '/'].flatMap(left => ['POST', 'PUT'].map((method): [string, string, Request, number, RegExp] => (
      [`no target in /send${left} by ${method}`, `..${left === '' ? '/send' : '/send/'}`, { method }, 404, /^the address ends without a target: it is \/send\/<target>/]))),
    ['bytes that are no UTF-8', 'ops', { body: bytes }, 400, /^the text is not utf-8: name its charset in the Content-Type, or send it as a file .*as a picture with \?type=image/],
    ['a charset that nobody knows', 'ops', { type: 'text/plain; charset=klingon' }, 400, /^unknown charset in the Content-Type/],
    ['a type that there is not', 'ops?type=voice', { body: bytes, type: 'image/png' }, 400, /^type must be text, image, video, audio or file$/],
    ['a time that is none', 'ops?expires_in=soon', { body: bytes, type: 'image/png' }, 400, /^expires_in must be a number of seconds/],
    ['a dry run of maybe', 'ops?dry_run=maybe', { body: bytes, type: 'image/png' }, 400, /^dry_run must be 1 or 0$/],
    ['another fail than any', 'ops?fail=all', { body: bytes, type: 'image/png' }, 400, /^fail must be any$/],
    ['an Idempotency-Key that is none', 'ops', { headers: { 'idempotency-key': 'a b' } }, 400, /^Idempotency-Key must be/],
    ['a compressed text', 'ops', { headers: { 'content-encoding': 'gzip' } }, 415, /without a Content-Encoding/],
    ['a text that is too large', 'ops', { body: 'x'.repeat(20_001) }, 413, /larger than 19.5 KB/],
    ['a picture that is too large', 'ops', { body: Buffer.alloc(10_001), type: 'image/png' }, 413, /larger than 9.7 KB/],
    ['a file of a form that is too large', 'ops', { body: form(['msg', 'a'], ['f', bytes, 'a.bin'], ['g', Buffer.alloc(10_001), 'b.bin']) }, 413, /larger than 9.7 KB/],
    ['text of a form that is too large', 'ops', { body: form(['f', bytes, 'a.bin'], ['msg', 'x'.repeat(15_000)], ['text', 'x'.repeat(15_000)]) }, 413, /more than 19.5 KB of text/],
    ['a file of another kind', 'ops/a.exe', { method: 'PUT', body: bytes }, 415, /only: txt, log, png/],
    ['more files than 1000', 'ops', { body: form(...many(['f', 'a', 'a.txt'])) }, 413, /more than 1000 parts/],
    ['more texts and files than 1000 together', 'ops', { body: form(...many(['f', 'a', 'a.txt']).slice(501), ...many(['msg', 'a']).slice(500)) }, 413, /more than 1000 parts/],
  ]
  for (const [what, path, request, status, msg] of cases) {
    test(what, async () => {
      const before = await stored()
      assert.match(failureOf(await send(path, request), status), msg)
      assert.deepEqual(await stored(), before)
      assert.deepEqual(seen(), [])
    })
  }

  test('an empty file, before it is sent', async () => {
    const { status, body } = await send('ops', { body: form(['f', '', 'a.bin'], ['msg', 'a']) })
    assert.equal(status, 200)
    assert.match(JSON.stringify(body.data), /"success":false[^}]*QQ takes no empty file/)
    assert.deepEqual(seen(), [`${to}a`])
  })

  test('by a key that may not send there, before anything of the body is read', async () => {
    const before = await stored()
    for (const path of [`private:${user}`, `ops,private:${user}`, 'both', `private:${user}/a.log`]) {
      const wire = await Wire.open(relay.url)
      wire.send([`PUT /send/${path} HTTP/1.1`, 'Host: relay', 'X-API-Key: the-secret-of-narrow', 'Content-Length: 5000', 'Content-Type: image/png'])
      assertFailure(await wire.answer(), 403, `this key may not send to ${path.includes('both') ? 'both' : `private:${user}`}`)
    }
    const wire = await Wire.open(relay.url)
    wire.send(['PUT /send/nobody HTTP/1.1', 'Host: relay', 'X-API-Key: the-secret-of-narrow', 'Content-Length: 5000', 'Content-Type: image/png'])
    assertFailure(await wire.answer(), 404)
    assert.deepEqual(await stored(), before)
    const allowed = await fetch(`${relay.url}/send/ops`, { method: 'POST', body: 'a', headers: { authorization: 'Bearer the-secret-of-narrow' } })
    assert.equal(allowed.status, 200)
  })

  test('past the rate of its key', async () => {
    const ask = () => fetch(`${relay.url}/send/ops/a.bin`, { method: 'PUT', body: new Uint8Array(bytes), headers: { 'x-api-key': 'the-secret-of-slow' } })
    assert.equal((await ask()).status, 200)
    const before = await stored()
    const { status, headers } = await ask()
    assert.equal(status, 429)
    assert(Number(headers.get('retry-after')) > 0)
    assert.deepEqual(await stored(), before)
  })
})

describe('on the wire', () => {
  const head = (path: string, ...lines: string[]): string[] => [`PUT /send/${path} HTTP/1.1`, 'Host: relay', `X-API-Key: ${apiKey}`, ...lines]
  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

  test('a body may come in chunks, and after 100 Continue', async () => {
    const wire = await Wire.open(relay.url)
    for (const [path, expected] of [['ops', `${to}abcdef`], ['ops/a.log', file('a.log', 'abcdef')]] as const) {
      relay.simulator.clear()
      wire.send(head(path, 'Transfer-Encoding: chunked'), chunk('abc') + chunk('def') + '0\r\n\r\n')
      assert.equal((await wire.answer()).status, 200)
      assert.deepEqual(seen(), [expected])
    }
    const polite = await Wire.open(relay.url)
    polite.send(head('ops/b.log', 'Content-Length: 3', 'Expect: 100-continue'))
    await polite.continued()
    polite.socket.write('abc')
    assert.equal((await polite.answer()).status, 200)
  })

  test('a form whose long texts would make more than 1,000 items with their files is refused', async t => {
    const roomy = await startRelay()
    t.after(() => roomy.stop())
    const parts = Array.from({ length: 501 }, (): Part => ['msg', 'a'.repeat(4501)])
    const { status, body: { msg } } = await read(await roomy.request(`/send/group:${group}`, { method: 'POST', body: form(...parts) }))
    assert.deepEqual([status, msg], [400, 'its long texts would make more than 1000 items: send fewer'])
    assert.deepEqual((await readdir(roomy.uploadDir, { recursive: true })).filter(name => name.endsWith('.txt')), [])
    assert.equal(roomy.simulator.ledger.length, 0)
  })

  test('a client that goes away leaves nothing behind', async () => {
    const before = await stored()
    for (const path of ['ops/a.log', 'ops']) {
      for (const type of ['image/png', 'multipart/form-data; boundary=limit']) {
        const lines = relay.logs.length
        const wire = await Wire.open(relay.url)
        const part = '--limit\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\nabc'
        wire.send(head(path, 'Content-Length: 5000', `Content-Type: ${type}`), part)
        await until('the first bytes are there', async () => (await stored()).length > before.length)
        wire.socket.destroy()
        await until('it is given up', () => relay.logs.slice(lines).some(line => line.includes(' 400 bad-request')))
        assert.deepEqual(await stored(), before)
      }
    }
    assert.deepEqual(seen(), [])
  })

  test('a body of unknown length that is too large is refused, and the connection goes on', async () => {
    const before = await stored()
    const wire = await Wire.open(relay.url)
    for (const [path, size] of [['ops', 30_000], ['ops/a.log', 15_000]] as const) {
      wire.send(head(path, 'Transfer-Encoding: chunked'), chunk('x'.repeat(size)) + '0\r\n\r\n')
      assertFailure(await wire.answer(), 413)
    }
    wire.send(head('ops', 'Content-Length: 1'), 'a')
    assert.equal((await wire.answer()).status, 200)
    assert.deepEqual(await stored(), before)
  })
})

describe('how it is carried out', () => {
  test('an Idempotency-Key holds for bytes by their content, and for each target', async () => {
    const headers = { 'idempotency-key': 'send-1' }
    const ask = (path: string, body: Buffer): Promise<Reply> => send(path, { method: 'PUT', body, headers })
    const first = await ask('ops/a.bin', bytes)
    const second = await ask('ops/a.bin', bytes)
    assert.deepEqual([first.status, second.status, second.headers.get('idempotent-replayed')], [200, 200, 'true'])
    failureOf(await ask('ops/a.bin', Buffer.from('other')), 422)
    failureOf(await ask('ops/b.bin', bytes), 422)
    assert.deepEqual(seen(), [file('a.bin')])
    relay.simulator.clear()
    relay.simulator.fault({ target: user, fault: { kind: 'refuse' } })
    const list = { body: 'a', headers: { 'idempotency-key': 'send-2' } }
    assert.match(JSON.stringify((await send('both', list)).body.data), /"success":1,"failed":1/)
    relay.simulator.clearFaults()
    assert.match(JSON.stringify((await send('both', list)).body.data), /"success":2,"failed":0.*"replayed":true/)
    assert.deepEqual(seen(), [`${to}a`, `private ${user}: a`])
  })

  test('a dry run shows what would be sent, and leaves nothing', async () => {
    const before = await stored()
    const shown = async (path: string, request: Request): Promise<string> => {
      const { status, body } = await send(path, request)
      assert.equal(status, 200, body.msg)
      return JSON.stringify(body.data)
    }
    const target = `"target":"group:${group}","bot":"onebot:10000"`
    const media = `"size":${bytes.length},"sha256":"${digest}"`
    assert.equal(await shown('ops/a.bin?dry_run=1', { method: 'PUT', body: bytes, headers: { 'idempotency-key': 'dry' } }),
      `{"dry_run":true,"success":true,${target},"messages":[[{"type":"file","name":"a.bin",${media}}]]}`)
    assert.equal(await shown('ops?dry_run=true', { body: form(['msg', 'a'], ['f', bytes, 'a.png']) }),
      `{"dry_run":true,"success":true,${target},"messages":[[{"type":"text","msg":"a"},{"type":"image","name":"a.png",${media}}]]}`)
    assert.match(await shown('ops?dry_run=1', { body: 'long\n'.repeat(1000) }), /"name":"message.txt","size":5000,/)
    assert.match(await shown('both?dry_run=1', { body: bytes, type: 'image/png' }), /^\{"dry_run":true,"total":2,"success":2,"failed":0,"deliveries":/)
    assert.deepEqual(await stored(), before)
    assert.deepEqual(seen(), [])
    // The key is still free.
    idsOf(await send('ops', { body: 'a', headers: { 'idempotency-key': 'dry' } }))
  })

  test('what is to be sent later is sent later, with what was stored for it', async t => {
    const later = await relayWith(t)
    const { status, headers } = await later.request(`/send/group:${group}/a.bin?expires_in=60`, {
      method: 'PUT', body: bytes, headers: { prefer: 'respond-async' },
    })
    assert.equal(status, 202)
    const { expires_at: end, created_at: start } = await later.reaches(headers.get('x-request-id') ?? '', 'sent')
    assert.equal(Date.parse(String(end)) - Date.parse(String(start)), 60_000)
    assert.deepEqual(later.simulator.ledger.flatMap(({ media }) => media.map(each => [each.name, each.sha256])), [['a.bin', digest]])
  })
})
