import assert from 'node:assert/strict'
import { SQLite3Error } from 'node-sqlite3-wasm'
import fs from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { languages, type Language } from '../../../src/texts/language'
import { core } from '../../../src/texts/table/core'
import type { TextId } from '../../../src/texts/table'
import type { Call } from '../../../simulator'
import { editFile, failFiles } from '../../support/data-file'
import { temporaryFolder } from '../../support/folder'
import { OtherBot, otherBot } from '../../support/other-bot'
import { relayFor, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { later, relayWith, releaseHeld, takeOffline, useStored, type StoredRelay } from '../deliveries/support'
import { upload } from '../webhook/support'
import { Texts } from './support'

const texts = new Texts(core, {
  log: [
    'active-now', 'caller-gone', 'cannot-begin', 'cannot-store', 'deferred-ended', 'deferred-ended-in-digest', 'deferred-ended-one',
    'delivery-waits', 'kept-in-memory', 'old-records-stay', 'queue-held', 'queue-not-held', 'record-damaged', 'restriction-begun',
    'restriction-over', 'stands-by', 'with-code', 'written-again',
  ],
  // Each needs a fault within a moment of a write, a copy or a reload, or a fallback for it.
  unproven: [
    'backup-failed', 'disk-loses-data', 'disk-unconfirmed', 'folder-lost', 'log-not-moved', 'lost-data-file', 'not-opened-yet',
    'nothing-sent', 'nothing-sent-this-time', 'retry-members', 'row-damaged', 'under-way-again',
  ],
  // tests/integration/chat/why.test.ts asks for it in both languages.
  chat: ['ordered-for-later'],
})

const hello = { group_id: '1', msg: 'hello' }
const post = (body: object, headers: Record<string, string> = {}, method = 'POST'): RequestInit => ({ method, body: JSON.stringify(body), headers })
const queue = (group: string): string => `/queues/${encodeURIComponent(`onebot:10000/group:${group}`)}`
const busy = (relay: StoredRelay, count: number): Promise<void> => (
  until(`${count} wait`, async () => JSON.stringify((await relay.ask('/queues')).data).includes(`"waiting":${count}`))
)

/** The answers to a request in both languages at the same time. */
async function both({ request }: Pick<TestRelay, 'request'>, path: string, init: RequestInit): Promise<(lang: Language) => string> {
  const answers = new Map(await Promise.all(languages.map(async lang => (
    [lang, await (await request(`${path}?lang=${lang}`, init)).text()] as const
  ))))
  return lang => answers.get(lang) ?? ''
}

describe('what is asked of a relay that works', () => {
  const targets = {
    night: { to: 'group:1', quiet: { from: '00:00', to: '23:59', zone: 'UTC' } },
    hourly: { to: 'group:2', digest: 60 },
  }
  const relay = useStored({ config: { chatApiMaxRetries: 0, chatApiTimeout: 1, maxUploadSize: 40_000_000, mediaTransport: 'base64', targets } })

  test('the bot', async () => {
    await texts.ask(relay, ['no-such-bot'], '/webhook', post({ ...hello, platform: 'none' }))
    await texts.ask(relay, ['http-by-name-only'], '/webhook', post({ ...hello, platform: 'http' }))
  })

  test('what is for later', async () => {
    await texts.ask(relay, ['quiet-hours-until'], '/webhook', post({ to: 'night', msg: 'x' }))
    await relay.post({ to: 'hourly', msg: 'x' })
    await texts.ask(relay, ['waits-for-digest'], '/webhook', post({ to: 'hourly', msg: 'x' }))
    await relay.ask(queue('1'), 'DELETE')
    await relay.ask(queue('2'), 'DELETE')
  })

  test('calls', async () => {
    const recall = async (): Promise<RequestInit> => {
      const { message_ids: [id] = [] } = (await relay.post(hello)).data as { message_ids?: string[] }
      return post({ message_id: Number(id) })
    }
    await texts.ask(relay, ['no-such-message'], '/onebot/delete_msg', post({ message_id: 12345 }))
    for (const [id, fault] of [
      ['platform-refused-it', { kind: 'refuse' }],
      ['platform-did-not-answer', { kind: 'silent' }],
    ] as const) {
      relay.simulator.fault({ action: 'delete_msg', fault, times: 2 })
      await texts.ask(relay, [id], '/onebot/delete_msg', await recall())
    }
    const online = await takeOffline(relay)
    await online()
    await texts.meet(['nothing-done-try-later'], async lang => {
      const init = await recall()
      await takeOffline(relay)
      const answer = await (await relay.request(`/onebot/delete_msg?lang=${lang}`, init)).text()
      await online()
      return answer
    })
  })

  test('withdrawing', async () => {
    const sent = (await relay.post({ group_id: '4', msg: 'x' })).headers.get('x-request-id') ?? ''
    await texts.ask(relay, ['withdraw-only-queued'], `/deliveries/${sent}`, { method: 'DELETE' })
    await texts.ask(relay, ['retry-only-undelivered'], `/deliveries/${sent}/retry`, { method: 'POST' })
    await texts.ask(relay, ['content-not-recorded'], `/deliveries/${sent}/items`)
    relay.simulator.fault({ target: '4', fault: { kind: 'late', ms: 900 } })
    const first = relay.post({ group_id: '4', msg: 'x' })
    await until('the first is leaving', () => relay.simulator.calls.some(({ params }) => params.group_id === 4 || params.group_id === '4'))
    const waiting = relay.post({ group_id: '4', msg: 'y' })
    await until('it waits', async () => (await relay.list('?state=queued')).length === 1)
    const [{ id } = assert.fail()] = await relay.list('?state=queued')
    await texts.ask(relay, ['withdraw-awaited'], `/deliveries/${id}`, { method: 'DELETE' })
    await Promise.all([first, waiting])
  })

  test('a lost connection', async () => {
    relay.simulator.fault({ action: /history/, times: Infinity, fault: { kind: 'silent' } })
    relay.simulator.fault({ target: '6', fault: { kind: 'close', when: 'delivered' } })
    const { headers } = await relay.post({ group_id: '6', msg: 'x' })
    await texts.ask(relay, ['connection-lost'], `/deliveries/${headers.get('x-request-id') ?? ''}`)
    await until('the bot is back', async () => (await relay.ask('/readyz')).status === 200)
  })

  test('no answer', async () => {
    relay.simulator.fault({ action: /history/, times: Infinity, fault: { kind: 'silent' } })
    relay.simulator.fault({ target: '7', fault: { kind: 'silent' } })
    const { headers } = await relay.post({ group_id: '7', msg: 'x' })
    await texts.ask(relay, ['no-answer-in-time'], `/deliveries/${headers.get('x-request-id') ?? ''}`)
  })

  test('held back', async () => {
    const off = relay.app.on('before-send', () => delay(2_500))
    await texts.ask(relay, ['held-back'], '/webhook', post({ group_id: '8', msg: 'x' }))
    off()
  })

  test('large things', async () => {
    await texts.ask(relay, ['text-too-long', 'long-text-as-file'], '/webhook', post({ group_id: '9', msg: 'a'.repeat(51 * 4500) }))
    const url = await upload(relay, 'a.bin', 'a'.repeat(37 * 1024 * 1024))
    await texts.ask(relay, ['too-large-for-base64'], '/webhook', post({ group_id: '9', type: 'file', url }))
    const form = new FormData()
    for (let index = 0; index < 501; index++) form.append('msg', 'a'.repeat(4501))
    await texts.ask(relay, ['too-many-parts'], '/send/group:9', { method: 'POST', body: form })
  })

  test('a backup beside another', async () => {
    await texts.meet(['other-backup'], async lang => {
      const answers = await Promise.all([1, 2, 3].map(() => relay.request(`/backup?lang=${lang}`)))
      return (await Promise.all(answers.map(answer => answer.text()))).join('\n')
    })
  })
})

describe('what ended', () => {
  test('by hand', async t => {
    const relay = await relayWith(t)
    relay.simulator.fault({ target: '5', fault: { kind: 'hold' } })
    const first = relay.post({ group_id: '5', msg: 'x' })
    await until('the first is leaving', () => relay.simulator.calls.length > 0)
    const answers = both(relay, '/webhook', post({ group_id: '5', msg: 'y' }))
    await busy(relay, 2)
    await relay.ask(queue('5'), 'DELETE')
    await texts.meet(['dropped-by-operator'], await answers)
    const waited = both(relay, '/webhook', post({ group_id: '5', msg: 'y' }, { prefer: 'respond-async, wait=30' }))
    await busy(relay, 2)
    for (const { id } of await relay.list('?state=queued')) await relay.ask(`/deliveries/${id}`, 'DELETE')
    await texts.meet(['withdrawn-waiting'], await waited)
    await releaseHeld(relay)
    await first
  })

  test('without its content', async t => {
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0, recordContent: 'none' } })
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    const id = (await relay.post(hello)).headers.get('x-request-id') ?? ''
    await texts.ask(relay, ['content-not-kept'], `/deliveries/${id}/retry`, { method: 'POST' })
  })

  test('and may still be carried out', async t => {
    const config = { chatApiMaxRetries: 0, chatApiTimeout: 0.3, chatSettleTime: 60 }
    const relay = await relayWith(t, { config, simulator: { history: false } })
    relay.simulator.fault({ fault: { kind: 'silent' } })
    const id = (await relay.post(hello)).headers.get('x-request-id') ?? ''
    await texts.ask(relay, ['still-carried-out'], `/deliveries/${id}/retry`, { method: 'POST' })
  })

  test('after a try, and is withdrawn', async t => {
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0 } })
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    const id = (await relay.post(hello)).headers.get('x-request-id') ?? ''
    await takeOffline(relay)
    assert.equal((await relay.ask(`/deliveries/${id}/retry`, 'POST')).status, 202)
    await relay.ask(`/deliveries/${id}`, 'DELETE')
    await texts.ask(relay, ['withdrawn-this-time'], `/deliveries/${id}`)
  })

  test('in part', async t => {
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0, longText: 'divide' } })
    const match = ({ params }: Call): boolean => JSON.stringify(params).includes('bad')
    relay.simulator.fault({ match, times: Infinity, fault: { kind: 'refuse' } })
    await texts.ask(relay, ['other-parts-sent'], '/webhook', post({ group_id: '1', msg: `${'a'.repeat(6000)}bad` }))
    const [{ id } = assert.fail()] = await relay.list()
    await takeOffline(relay)
    assert.equal((await relay.ask(`/deliveries/${id}/retry`, 'POST')).status, 202)
    await texts.ask(relay, ['withdraw-partly-sent'], `/deliveries/${id}`, { method: 'DELETE' })
  })

  test('and came again with its key', async t => {
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0 } })
    const key = { 'idempotency-key': 'a' }
    await takeOffline(relay)
    const id = (await relay.post(hello, key)).headers.get('x-request-id') ?? ''
    assert.equal((await relay.post(hello, { ...key, ...later })).status, 202)
    await texts.ask(relay, ['same-key-again'], `/deliveries/${id}/retry`, { method: 'POST' })
  })

  test('and paused its target', async t => {
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0, chatPauseAfter: 1 } })
    relay.simulator.fault({ fault: { kind: 'refuse', wording: '群聊不存在' } })
    await relay.post(hello)
    await texts.ask(relay, ['paused-because'], '/webhook', post(hello))
  })

  test('in a digest', async t => {
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0, chatApiTimeout: 2 }, simulator: { history: false } })
    const online = await takeOffline(relay)
    const hook = post({ text: 'line' }, { 'content-type': 'application/json' })
    for (let index = 0; index < 20; index++) await relay.request('/hooks/message/group:123456', hook)
    const [{ id } = assert.fail()] = await relay.list('?state=queued')
    relay.simulator.fault({ fault: { kind: 'silent' } })
    await until('its queue is offline', async () => JSON.stringify(await relay.ask('/queues')).includes('"offline"'))
    await online()
    await until('it is leaving', () => relay.simulator.calls.some(({ action }) => action === 'send_group_msg'))
    await texts.ask(relay, ['withdraw-in-digest'], `/deliveries/${id}`, { method: 'DELETE' })
    await relay.reaches(id, 'unanswered')
    await texts.ask(relay, ['retry-digest'], `/deliveries/${id}/retry`, { method: 'POST' })
  })

  test('at the end of its chat', async t => {
    const targets = { 'on-call': { first: ['group:1', 'group:2'], after: 1 } }
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0, chatApiTimeout: 5, targets } })
    relay.simulator.fault({ target: '1', fault: { kind: 'late', ms: 4000 } })
    const first = relay.post(hello)
    await until('the first is leaving', () => relay.simulator.calls.some(({ action }) => action === 'send_group_msg'))
    const id = await relay.accept({ to: 'on-call', msg: 'x' })
    await relay.reaches(id, 'sent')
    await texts.ask(relay, ['waited-too-long'], `/deliveries/${id}`)
    await first
  })

  test('with its process', async t => {
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0 } })
    await takeOffline(relay)
    const ids = [await relay.queue('a'), await relay.queue('b'), await relay.queue('c')] as const
    relay.unload()
    await editFile(relay.dataDir, database => {
      database.run('UPDATE deliveries SET record = json_set(record, \'$.deferred\', json(\'false\')) WHERE id = ?', ids[0])
      database.run('UPDATE deliveries SET items = NULL WHERE id = ?', ids[1])
      database.run('UPDATE deliveries SET state = \'sending\' WHERE id = ?', ids[2])
    })
    await relay.reload()
    await texts.ask(relay, ['ended-before-sent'], `/deliveries/${ids[0]}`)
    await relay.simulator.goOnline()
    await relay.reaches(ids[1], 'failed')
    await texts.ask(relay, ['content-gone'], `/deliveries/${ids[1]}`)
    await texts.ask(relay, ['ended-before-answer'], `/deliveries/${ids[2]}`)
  })

  test('before its channel was known', async t => {
    const relay = await relayFor(t, { config: { chatApiMaxRetries: 0, chatApiTimeout: 0.5 }, setup: app => void app.plugin(OtherBot, {}) })
    otherBot(relay).createDirectChannel = () => new Promise(() => undefined)
    await texts.ask(relay, ['no-channel-in-time'], '/webhook', post({ platform: 'other', user_id: '1', msg: 'x' }))
  })

  test('without any bot', async t => {
    const relay = await relayWith(t)
    await takeOffline(relay)
    await texts.ask(relay, ['no-bot-online'], '/readyz')
  })

  test('too large to be kept', async t => {
    const relay = await relayWith(t, { config: { maxBodySize: 100_000_000 } })
    const large = { group_id: '1', messages: [1, 2, 3].map(() => ({ type: 'file', url: `base64://${'a'.repeat(23_000_000)}` })) }
    await texts.ask(relay, ['content-too-large'], '/webhook', post(large, { 'idempotency-key': 'large' }))
  })
})

describe('the data file', () => {
  const ready = (relay: Pick<TestRelay, 'request'>, ids: TextId[]): Promise<void> => texts.ask(relay, ids, '/readyz')
  const unready = (relay: Pick<TestRelay, 'request'>): Promise<void> => until('it is not ready', async () => (await relay.request('/readyz')).status === 503)

  const places: [id: TextId, spoil: (dataDir: string) => void][] = [
    ['folder-is-file', dataDir => {
      fs.rmdirSync(dataDir)
      fs.writeFileSync(dataDir, 'a file')
    }],
    ['file-is-folder', dataDir => fs.mkdirSync(join(dataDir, 'relay.db'))],
    ['data-file-foreign', dataDir => fs.writeFileSync(join(dataDir, 'relay.db'), 'this is no SQLite file\n'.repeat(1000))],
  ]
  for (const [id, spoil] of places) {
    test(id, async t => {
      const dataDir = temporaryFolder()
      spoil(dataDir)
      const relay = await relayFor(t, { config: { dataDir } })
      await unready(relay)
      await ready(relay, [id])
    })
  }

  const codes: [id: TextId, code: string][] = [
    ['folder-not-writable', 'EACCES'], ['folder-read-only', 'EROFS'], ['disk-full-free-some', 'ENOSPC'],
    ['too-many-open-files', 'EMFILE'], ['folder-unusable', 'EIO'],
  ]
  for (const [id, code] of codes) {
    test(id, async t => {
      const relay = await relayFor(t)
      relay.unload()
      await until('the file was given up', () => !fs.existsSync(join(relay.dataDir, 'relay.lock')))
      t.mock.method(fs, 'mkdirSync', () => {
        throw Object.assign(new Error('no'), { code })
      })
      await relay.reload()
      await unready(relay)
      await ready(relay, [id])
    })
  }

  const holders: [id: TextId, lock: string][] = [['other-process', 'x'], ['process-on', '1\n\nanother-machine 1']]
  for (const [id, lock] of holders) {
    test(id, async t => {
      const dataDir = temporaryFolder()
      fs.writeFileSync(join(dataDir, 'relay.lock'), lock)
      const relay = await relayFor(t, { config: { dataDir } })
      await until('it stands by', async () => (await (await relay.request('/statusz')).text()).includes('standby_for'))
      await texts.ask(relay, [id], '/statusz')
    })
  }

  test('other-relay-here', async t => {
    const [first, second] = [await relayFor(t), await relayFor(t)]
    await second.reload({ dataDir: first.dataDir })
    await until('it stands by', async () => (await (await second.request('/statusz')).text()).includes('standby_for'))
    await texts.ask(second, ['other-relay-here'], '/statusz')
  })

  const edits: [id: TextId, edit: Parameters<typeof editFile>[1]][] = [
    ['data-file-newer', database => database.exec('PRAGMA user_version = 9999')],
  ]
  for (const [id, edit] of edits) {
    test(id, async t => {
      const relay = await relayWith(t)
      await takeOffline(relay)
      await relay.queue('x')
      relay.unload()
      await editFile(relay.dataDir, edit)
      await relay.reload()
      await unready(relay)
      await ready(relay, [id])
    })
  }

  test('data-file-unusable', async t => {
    const relay = await relayFor(t)
    const restore = failFiles('run')
    await texts.ask(relay, ['data-file-unusable'], '/webhook', post(hello, later))
    restore()
  })

  test('lock-unreadable', async t => {
    const relay = await relayFor(t)
    assert.equal((await relay.send(hello, later)).status, 202)
    const lock = join(relay.dataDir, 'relay.lock')
    fs.rmSync(lock)
    fs.mkdirSync(lock)
    // The relay trusts the lock for a while.
    await until('it looks at its lock', async () => (await relay.send(hello, later)).status === 503)
    await texts.ask(relay, ['lock-unreadable'], '/webhook', post(hello, later))
    fs.rmdirSync(lock)
  })

  test('no-room-for-backup', async t => {
    const relay = await relayFor(t)
    assert.equal((await relay.send(hello, later)).status, 202)
    t.mock.method(fs, 'statfsSync', () => ({ bavail: 0, bsize: 4096 }))
    await texts.ask(relay, ['no-room-for-backup'], '/backup')
  })

  test('disk-full', async t => {
    const relay = await relayFor(t)
    relay.unload()
    await until('the file was given up', () => !fs.existsSync(join(relay.dataDir, 'relay.lock')))
    fs.rmSync(relay.dataDir, { recursive: true })
    t.mock.method(fs, 'statfsSync', () => ({ bavail: 0, bsize: 4096 }))
    await relay.reload()
    await unready(relay)
    await ready(relay, ['disk-full'])
  })

  const crashes: [id: TextId, error: Error][] = [
    ['data-file-damaged', new SQLite3Error('database disk image is malformed')],
    ['store-crashed', Object.assign(new Error('unreachable'), { name: 'RuntimeError' })],
  ]
  for (const [id, error] of crashes) {
    test(id, async t => {
      const relay = await relayFor(t)
      assert.equal((await relay.send(hello, later)).status, 202)
      t.after(failFiles('all', error))
      await relay.request('/deliveries')
      await unready(relay)
      await ready(relay, [id])
    })
  }
})

texts.complete()
