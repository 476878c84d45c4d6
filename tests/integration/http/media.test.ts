import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { read, startRelay, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { assertFailure, multipart, Wire } from './support'

let relay: TestRelay
/** Links by file name, as the platform got them. */
let links: ReadonlyMap<string, URL>
const big = Buffer.alloc(8_000_000, 'media')

before(async () => {
  relay = await startRelay()
  await relay.reload({ mediaTransport: 'url', selfUrl: `${relay.url}/`, path: 'relay' })
  links = new Map(await Promise.all(([['图 1.png', 'png'], ['big.bin', big]] as const).map(async ([name, bytes]) => {
    const link = await linkTo(name, bytes)
    return [name, link] as const
  })))
})
after(() => relay.stop())

/** Uploads a file, sends it as an image and returns the link that the platform was given. */
async function linkTo(name: string, bytes: string | Buffer): Promise<URL> {
  const { data: { path } } = await read(await relay.request('/relay/upload', {
    method: 'POST', body: multipart([[name, bytes]]), headers: { 'content-type': 'multipart/form-data; boundary=limit' },
  }))
  assert(typeof path === 'string')
  await read(await relay.request('/relay/webhook', { method: 'POST', body: JSON.stringify({ group_id: '123456', type: 'image', url: path }) }))
  const sent = JSON.stringify(relay.simulator.calls.map(call => call.params))
  const link = new RegExp(`http[^"]*/relay/media/${path.split('/').map(encodeURIComponent).join('/')}[^"]*`).exec(sent)?.[0]
  assert(link)
  return new URL(link)
}

function linkOf(name: string): URL {
  const link = links.get(name)
  assert(link)
  return new URL(link)
}

describe('a signed link', () => {
  for (const [name, bytes] of [['图 1.png', Buffer.from('png')], ['big.bin', big]] as const) {
    test(`gives the bytes of ${name} without a key`, async () => {
      const response = await fetch(linkOf(name))
      assert.equal(response.status, 200)
      const received = Buffer.from(await response.arrayBuffer())
      assert.equal(createHash('sha256').update(received).digest('hex'), createHash('sha256').update(bytes).digest('hex'))
      assert.equal(response.headers.get('content-length'), String(bytes.length))
      assert.equal(response.headers.get('content-type'), 'application/octet-stream')
      assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
      assert.equal(response.headers.get('content-disposition'), `attachment; filename*=UTF-8''${encodeURIComponent(name)}`)
      assert.match(response.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
    })

    test(`tells of ${name} to HEAD, and the connection goes on`, async () => {
      const { pathname, search } = linkOf(name)
      const wire = await Wire.open(relay.url)
      for (let count = 0; count < 2; count++) {
        wire.send([`HEAD ${pathname}${search} HTTP/1.1`, 'Host: relay'])
        const answer = await wire.answer(false)
        assert.equal(answer.status, 200)
        assert.equal(answer.headers.get('content-length'), String(bytes.length))
      }
    })
  }

  test('is refused when anything of it was changed', async () => {
    const other = linkOf('big.bin')
    const changes: ((link: URL) => void)[] = [
      link => link.searchParams.set('signature', other.searchParams.get('signature') ?? ''),
      link => { link.pathname += '%00' },
      link => { link.pathname = link.pathname.replace('%20', '%2520') },
    ]
    for (const change of changes) {
      const link = linkOf('图 1.png')
      change(link)
      const { status, headers, body } = await read(await fetch(link))
      assert.equal(status, 401, link.href)
      assert.equal(headers.get('www-authenticate'), 'Bearer')
      assert.equal(body.msg, 'this link has expired or was altered')
    }
  })

  test('is for other methods than GET and HEAD no way in', async () => {
    const { status, headers } = await read(await fetch(linkOf('图 1.png'), { method: 'DELETE' }))
    assert.equal(status, 405)
    assert.equal(headers.get('allow'), 'GET, HEAD')
  })

  test('is logged without the file and the signature', () => {
    const lines = relay.logs.filter(line => line.includes('GET /media/:folder/:name'))
    assert(lines.length > 0)
    const { pathname, searchParams } = linkOf('图 1.png')
    const [folder = '-'] = pathname.split('/').slice(-2)
    for (const secret of [folder, searchParams.get('signature') ?? '-']) assert(!relay.logs.some(line => line.includes(secret)))
  })

  test('that its reader leaves in the middle is no internal error, and is over', async () => {
    const { pathname, search } = linkOf('big.bin')
    const wire = await Wire.open(relay.url)
    wire.socket.pause()
    wire.send([`GET ${pathname}${search} HTTP/1.1`, 'Host: relay'])
    await until('some of it has come', () => wire.socket.readableLength > 0)
    wire.socket.destroy()
    // Other refusals of this address have their line in the log already.
    await until('it is noted', async () => {
      const status = await (await relay.request('/relay/statusz')).text()
      return /"door":"media",[^}]*"reason":"the connection ended/.test(status)
    })
  })

  test('to a file that has been removed is a 404', async () => {
    const { pathname } = linkOf('图 1.png')
    await rm(join(relay.uploadDir, decodeURIComponent(pathname.split('/')[3] ?? '')), { recursive: true })
    const { status, body } = await read(await fetch(linkOf('图 1.png')))
    assert.equal(status, 404)
    assert.match(body.msg, /^no such file/)
  })
})

test('whatever stands in the path, a link without a signature gives nothing', async () => {
  const wire = await Wire.open(relay.url)
  for (const path of [
    '..%2f..%2fetc/passwd', '..%5c../x', '%2e%2e/%2e%2e', 'a/%00', 'a/%', 'a/%ZZ', 'a/%c0%ae%c0%ae', 'a/%E0%A4%A', '%2e/%2e', 'a/b?expires[]=1&signature[]=x',
    `a/${'%25'.repeat(3000)}`, 'a/b?%', 'a/b?expires=%&signature=%',
  ]) {
    wire.send([`GET /relay/media/${path} HTTP/1.1`, 'Host: relay'])
    assertFailure(await wire.answer(), 401)
  }
})
