import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { afterEach, describe, test } from 'node:test'
import type { MediaForm } from '../../../simulator/types'
import { fieldsOf } from '../../../src/lib/shape'
import { apiKey, read, relayFor, useRelay, type TestRelay } from '../../support/relay'
import { batchOf, failureOf, group, idsOf, linkServer, only, sends, sha256, upload, user } from './support'

const types = ['image', 'video', 'file'] as const
const bytes = randomBytes(100_000)

const relay = useRelay({ config: { chatApiMaxRetries: 0 } })
afterEach(() => relay.reload())

/** How the one call that was made refers to its medium. */
function reference({ simulator }: TestRelay): string {
  const { params } = only(simulator.calls.filter(({ action }) => /^(?:send|upload)_/.test(action)))
  const { file } = typeof params.file === 'string' ? params : fieldsOf(fieldsOf(only([params.message].flat())).data)
  assert(typeof file === 'string')
  return file
}

describe('an uploaded file', () => {
  const transports = {
    path: { image: 'file', video: 'file', file: 'path' },
    base64: { image: 'base64', video: 'base64', file: 'base64' },
    url: { image: 'http', video: 'http', file: 'http' },
  } as const satisfies Record<string, Record<typeof types[number], MediaForm>>

  /** With what has a meaning in an address, a header or a CQ code. */
  const name = '周报 it\'s “final” (1)  & c=d+e;[CQ]😀.tar.png'

  for (const mediaTransport of ['path', 'base64', 'url'] as const) {
    for (const sharedDisk of [true, false]) {
      test(`travels by ${mediaTransport} to a platform ${sharedDisk ? 'on the same' : 'on another'} disk`, async t => {
        const own = await relayFor(t, { simulator: { sharedDisk }, config: { chatApiMaxRetries: 0, mediaTransport } })
        await own.reload({ chatApiMaxRetries: 0, mediaTransport, selfUrl: own.url })
        const id = await upload(own, name, bytes)
        for (const target of [{ group_id: group }, { user_id: user }]) {
          for (const type of types) {
            own.simulator.clear()
            const reply = await own.send({ ...target, type, url: id })
            if (mediaTransport === 'path' && !sharedDisk) {
              const msg = failureOf(reply, 502)
              assert(!msg.includes(own.uploadDir) && !msg.includes('/tmp') && !msg.includes('uploads'), msg)
              assert.equal(own.simulator.ledger.length, 0)
              continue
            }
            assert.equal(idsOf(reply).length, type === 'file' ? 0 : 1)
            const medium = only(only(own.simulator.ledger).media)
            assert.equal(medium.type, type)
            assert.equal(medium.size, bytes.length)
            assert.equal(medium.sha256, sha256(bytes))
            assert.equal(medium.source, transports[mediaTransport][type])
            if (type === 'file') assert.equal(medium.name, name)
          }
        }
      })
    }
  }

  test('is sent twice when two ask for it, with bytes that differ from those of another of its name', async () => {
    const [first, second] = [await upload(relay, 'same.png', 'one'), await upload(relay, 'same.png', 'two')]
    const data = batchOf(await relay.send({ group_id: group, messages: [first, second, first].map(url => ({ type: 'image', url })) }))
    assert.equal(data.success, 3)
    assert.deepEqual(only(relay.simulator.ledger).media.map(medium => medium.sha256), ['one', 'two', 'one'].map(sha256))
  })

  test('that is empty is refused before the call, which QQ would refuse', async () => {
    const id = await upload(relay, 'empty.txt', '')
    for (const type of types) {
      const answer = await relay.send({ group_id: group, type, url: id })
      assert.match(failureOf(answer, 502), /could not read or upload the file .*"QQ takes no empty file"\)$/)
    }
    assert.equal(sends(relay).length, 0)
  })
})

describe('a link', () => {
  for (const type of types) {
    test(`of type ${type} is passed on byte for byte`, async t => {
      const { url, visits } = await linkServer(t, bytes)
      const link = `${url}/a%2Fb/%E6%8A%A5%e5%91%8a//x.png?q=1&q=2&sig=a%2Bb+c%20d==&e=&中=文#part`
      idsOf(await relay.send({ group_id: group, type, url: link }))
      assert.equal(reference(relay), link)
      assert.equal(only(only(relay.simulator.ledger).media).sha256, sha256(bytes))
      assert.equal(only(visits), '/a%2Fb/%E6%8A%A5%e5%91%8a//x.png?q=1&q=2&sig=a%2Bb+c%20d==&e=&%E4%B8%AD=%E6%96%87')
    })
  }

  test('is not fetched by the relay itself', async t => {
    const { url, visits } = await linkServer(t, bytes)
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    failureOf(await relay.send({ group_id: group, type: 'file', url: `${url}/x.bin` }), 502)
    assert.equal(visits.length, 0)
  })

  const names: Record<string, string> = {
    '/dir/report.pdf?x=/y.txt#/z.txt': 'report.pdf',
    '/%E6%8A%A5%E5%91%8A%20final.pdf': '报告 final.pdf',
    '/报告.pdf': '报告.pdf',
    '/a+b.zip': 'a+b.zip',
    '': 'file',
    '?x=y': 'file',
    '/dir/': 'file',
    '/x%2Fetc%2Fpasswd': 'passwd',
    '/bad%E4%zz.txt': 'badE4zz.txt',
    '/%00%0A%E2%80%AEx.exe': 'x.exe',
  }
  for (const [path, name] of Object.entries(names)) {
    test(`to a file at ${path || 'the root'} is shown as ${name}`, async t => {
      const { url } = await linkServer(t, bytes)
      assert.deepEqual(idsOf(await relay.send({ group_id: group, type: 'file', url: url + path })), [])
      const entry = only(relay.simulator.ledger)
      assert.equal(entry.kind, 'file')
      assert.deepEqual([only(entry.media).name, only(entry.media).sha256], [name, sha256(bytes)])
    })
  }
})

describe('data in the request', () => {
  const standard = bytes.toString('base64')
  const forms: Record<string, string> = {
    'base64://': `base64://${standard}`,
    'base64:// without padding': `base64://${standard.replace(/=+$/, '')}`,
    'DATA: in capitals, with parameters': `DATA:IMAGE/PNG;charset=utf-8;name=x;BASE64,${standard}`,
  }
  for (const [what, url] of Object.entries(forms)) {
    test(`as ${what} arrives as base64, a file under the name "file", or that which it is given`, async () => {
      for (const type of types) {
        relay.simulator.clear()
        idsOf(await relay.send({ group_id: group, type, url }))
        const medium = only(only(relay.simulator.ledger).media)
        assert.deepEqual([medium.sha256, medium.source], [sha256(bytes), 'base64'])
        if (type === 'file') assert.equal(medium.name, 'file')
      }
      relay.simulator.clear()
      idsOf(await relay.send({ group_id: group, type: 'file', url, name: 'a/周报.pdf' }))
      assert.equal(only(only(relay.simulator.ledger).media).name, '周报.pdf')
    })
  }

  test('of several megabytes arrives', async () => {
    const large = randomBytes(7 * 1024 * 1024)
    idsOf(await relay.send({ group_id: group, type: 'image', url: `base64://${large.toString('base64')}` }))
    assert.equal(only(only(relay.simulator.ledger).media).sha256, sha256(large))
  })
})

describe('implementations of OneBot:', () => {
  for (const [profile, isByPathOnly] of [['napcat', false], ['llbot', false], ['lagrange', true], ['gocqhttp', true]] as const) {
    test(`${profile} takes uploads by path, links in images and videos, and files ${isByPathOnly ? 'only by path' : 'by link and as base64'}`, async t => {
      const own = await relayFor(t, { simulator: { profile }, config: { chatApiMaxRetries: 0 } })
      const { url } = await linkServer(t, bytes)
      const id = await upload(own, '报告 1.png', bytes)
      for (const type of types) idsOf(await own.send({ group_id: group, type, url: id }))
      idsOf(await own.send({ user_id: user, type: 'file', url: id }))
      idsOf(await own.send({ group_id: group, type: 'image', url: `${url}/x.png` }))
      idsOf(await own.send({ group_id: group, type: 'video', url: `${url}/x.mp4` }))
      idsOf(await own.send({ group_id: group, type: 'image', url: `data:image/png;base64,${bytes.toString('base64')}` }))
      assert.equal(own.simulator.ledger.length, 7)
      for (const { media } of own.simulator.ledger) assert.equal(only(media).sha256, sha256(bytes))
      for (const { kind, media } of own.simulator.ledger) if (kind === 'file') assert.equal(only(media).name, '报告 1.png')
      own.simulator.clear()
      const data = `base64://${bytes.toString('base64')}`
      if (isByPathOnly) failureOf(await own.send({ group_id: group, type: 'file', url: data }), 502)
      else {
        for (const link of [`${url}/x.zip`, data]) {
          for (const target of [{ group_id: group }, { user_id: user }]) idsOf(await own.send({ ...target, type: 'file', url: link }))
        }
      }
      assert.deepEqual(own.simulator.ledger.map(({ media }) => `${only(media).name} ${String(only(media).sha256)}`), isByPathOnly
        ? []
        : [
            'x.zip', 'x.zip', 'file', 'file',
          ].map(name => `${name} ${sha256(bytes)}`))
    })
  }
})

// What becomes of the link when it is opened is in tests/integration/http/media.test.ts.
describe('the signed link to an uploaded file', () => {
  /** Sends a file by link and gives that link. */
  async function sendLink(): Promise<string> {
    await relay.reload({ mediaTransport: 'url', selfUrl: relay.url, chatApiMaxRetries: 0 })
    await relay.send({ group_id: group, type: 'file', url: await upload(relay, '报告 1.png', bytes) })
    return reference(relay)
  }

  async function isRefused(link: string): Promise<void> {
    const reply = await read(await fetch(link))
    failureOf(reply, 401)
    assert.equal(reply.headers.get('www-authenticate'), 'Bearer')
  }

  test('holds neither the key nor a path of this machine', async () => {
    const link = await sendLink()
    assert.equal(new URL(link).origin, relay.url)
    assert(!link.includes(apiKey) && !link.includes(relay.uploadDir))
  })

  test('is refused once the key is another, and good again with the old one', async () => {
    const link = await sendLink()
    await relay.reload({ apiKey: 'another-key' })
    await isRefused(link)
    await relay.reload()
    assert.equal((await fetch(link)).status, 200)
  })

  test('holds the route prefix, and for want of a setting the address of the server', async t => {
    const { config } = relay.app.server
    config.selfUrl = relay.url
    t.after(() => {
      delete config.selfUrl
    })
    await relay.reload({ mediaTransport: 'url', path: '/relay' })
    const id = await upload({ ...relay, request: (path, init) => relay.request(`/relay${path}`, init) }, 'x.png', bytes)
    const body = JSON.stringify({ group_id: group, type: 'image', url: id })
    idsOf(await read(await relay.request('/relay/webhook', { method: 'POST', body })))
    assert(reference(relay).startsWith(`${relay.url}/relay/media/`))
    assert.equal(only(only(relay.simulator.ledger).media).sha256, sha256(bytes))
  })
})
