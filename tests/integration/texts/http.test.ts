import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import type { Language } from '../../../src/texts/language'
import type { TextId } from '../../../src/texts/table'
import { http } from '../../../src/texts/table/http'
import { record, records } from '../../docs/support/json'
import { editFile } from '../../support/data-file'
import { listen, serve } from '../../support/listen'
import { freePort } from '../../support/process'
import { relayFor, useRelay, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { boundary, multipart, type Part } from '../../support/uploads'
import { ConsoleClient, startWithConsole } from '../console/support'
import { relayWith } from '../deliveries/support'
import { Wire } from '../http/support'
import { Texts } from './support'

const texts = new Texts(http, {
  'only the log says them': [
    'by-master-key', 'by-key', 'done-by', 'entry-made', 'entry-changed', 'entry-removed', 'template-saved', 'key-replaced', 'rota-given',
    'beat-rotated', 'beat-paused', 'beat-resumed', 'incident-is', 'files-stored', 'retried-log', 'deliveries-succeeded', 'deliveries-dry',
    'items-sent', 'items-failed', 'fields-without-meaning', 'removed-uploads', 'cleanup-failed',
  ],
  'only the log says them, of a callback': ['invalid-compression', 'relay-stopping'],
  'their client has gone': ['upload-cut'],
  'the console only asks a server that listens, which answers': ['no-server', 'no-readable-answer'],
})

type Row = readonly [ids: readonly TextId[], path: string, init?: RequestInit]

/** Adds a test for each request. */
function ask(relay: Pick<TestRelay, 'request'>, rows: readonly Row[]): void {
  for (const [ids, path, init] of rows) test(`${ids.join(', ')}: ${init?.method ?? 'GET'} ${path}`, () => texts.ask(relay, ids, path, init))
}

const json = { 'content-type': 'application/json' }
const post = (body: unknown, headers: Record<string, string> = {}, method = 'POST'): RequestInit => (
  { method, body: typeof body === 'string' || body instanceof Uint8Array || body instanceof FormData ? body : JSON.stringify(body), headers }
)
const typed = (type: string, body: string | Buffer = 'x', method = 'POST'): RequestInit => post(body, { 'content-type': type }, method)
const form = (...parts: Part[]): RequestInit => typed(`multipart/form-data; boundary=${boundary}`, multipart(...parts))
const field = (name: string, value: string): RequestInit => {
  const body = new FormData()
  body.append(name, value)
  return post(body)
}
const notText = Buffer.from([0xff, 0xfe, 0xfd])

const relay = useRelay({
  config: {
    maxBodySize: 100_000, maxUploadSize: 1_000, allowedExtensions: ['png', 'txt'], chatApiMaxRetries: 0, recordContent: 'full',
    targets: { ops: { to: 'group:1', ack: { from: 'warning', escalate: [{ after: '5m', mention: 'all' }] } } },
    keys: [{ name: 'github', secret: 'the-secret-of-github', targets: ['ops'], allow: ['hooks'] }],
  },
})

ask(relay, [
  [['form-for-json'], '/webhook', typed('application/x-www-form-urlencoded', 'a=b')],
  [['json-fault', 'json-control', 'encode-text'], '/webhook', post('{"msg":"a\nb"}')],
  [['json-fault', 'json-escape', 'encode-text'], '/webhook', post('{"msg":"say "hi""}')],
  [['json-fault', 'json-quotes', 'save-as-file'], '/webhook', post('{msg: x}')],
  [['json-fault', 'json-end', 'close-brackets'], '/webhook', post('{')],
  [['json-fault', 'json-other', 'encode-texts'], '/webhook', post('{"msg":"x",}')],
  [['body-has', 'more-levels'], '/webhook', post('['.repeat(65))],
  [['body-has', 'more-values'], '/webhook', post(`[${'0,'.repeat(20_000)}0]`)],
  [['json-not-utf8'], '/webhook', post(notText)],
  [['no-compression'], '/webhook', post('{}', { 'content-encoding': 'gzip' })],
  [['body-too-large', 'max-body-size'], '/webhook', post('x'.repeat(100_001))],
  [['idempotency-key-rule'], '/webhook', post({ group_id: 1, msg: 'x' }, { 'idempotency-key': 'a b' })],
  [['meaningless-fields'], '/webhook', post({ group_id: 1, msg: 'x', mesage: 'y' }, { prefer: 'handling=strict' })],
  [['some-failed'], '/webhook?fail=any', post({ group_id: 1, messages: [{ msg: 'x' }, { type: 'voice' }] })],
])

test('with-flaw: of a key', () => texts.ask({ request: (path, init) => fetch(relay.url + path, init) }, ['with-flaw'], '/keys', { headers: { 'x-api-key': 'Bearer x' } }))

ask(relay, [
  [['send-without-target'], '/send/', post('x')],
  [['text-charset', 'failure-or', 'as-file'], '/send/ops', typed('text/plain', notText)],
  [['text-charset', 'failure-or', 'or-with-slash'], '/send/ops', typed('text/plain', notText, 'PUT')],
  [['unknown-charset'], '/send/ops', typed('text/plain; charset=klingon')],
  [['body-too-large', 'with-slash'], '/send/ops', typed('text/plain', 'x'.repeat(100_001), 'PUT')],
  [['sent-as-text'], '/send/ops', typed('text/plain', 'x', 'PUT')],
  [['json-sent-as-text'], '/send/ops', typed('text/plain', '{"msg":"x"}')],
  [['empty-text'], '/send/ops', typed('text/plain', ' ')],
  [['empty-form'], '/send/ops', field('message', 'x')],
  [['too-much-text'], '/send/ops', field('msg', 'x'.repeat(100_001))],
  [['empty-body'], '/send/ops', typed('image/png', '')],
])

ask(relay, [
  [['send-as-form'], '/upload', post('{}')],
  [['no-boundary'], '/upload', typed('multipart/form-data')],
  [['malformed-form'], '/upload', typed(`multipart/form-data; boundary=${boundary}`, `--${boundary}\r\nContent-Disposition: form-data; name=a; filename=a.txt\r\n\r\nx`)],
  [['no-file'], '/upload', field('name', 'x')],
  [['too-many-form-parts'], '/upload', form(...Array.from({ length: 1_001 }, () => ({ headers: ['Content-Disposition: form-data; name=a'], content: '' })))],
  [['long-part-headers'], '/upload', form({ headers: [`X-Long: ${'x'.repeat(200_000)}`] })],
  [['no-transfer-encoding'], '/upload', form({ file: 'a.txt', headers: ['Content-Transfer-Encoding: base64'] })],
  [['extension-refused'], '/upload', form({ file: 'a.exe' })],
  [['upload-too-large'], '/upload', form({ file: 'a.txt', content: 'x'.repeat(1_001) })],
  [['media-link-invalid'], '/media/a/b'],
])

ask(relay, [
  [['address-charset'], '/deliveries?text=%ff'],
  [['number-rule'], '/deliveries?limit=0'],
  [['number-rule'], '/deliveries/counts?days=91'],
  [['number-rule'], '/deliveries/counts?hours=169'],
  [['offset-rule'], '/deliveries/counts?days=1&offset=841'],
  [['some-of'], '/deliveries?state=lost'],
  [['target-filter-rule'], '/deliveries?target=nobody'],
  [['time-rule'], '/deliveries?since=yesterday'],
  [['delivery-id'], '/deliveries?before=last'],
  [['one-of'], '/deliveries/retry?state=sent', { method: 'POST' }],
  [['no-filter'], '/deliveries/retry?state=failed&source=github', { method: 'POST' }],
  [['bot-rule'], '/contacts?bot=10000'],
  [['no-such-queue'], '/queues/x', { method: 'DELETE' }],
  [['only-grace'], '/keys/x/rotate', post({ after: '1d' })],
  [['some-of'], '/incidents?state=lost'],
  [['name-from-list'], '/incidents?target=group:1'],
  [['no-such-action'], '/incidents/x/dance', { method: 'POST' }],
  [['action-no-field'], '/incidents/x/take', post({ until: '1h' })],
  [['until-rule'], '/incidents/x/silence', post({ until: 'tomorrow' })],
  [['silence-bounds'], '/incidents/x/silence', post({ until: '8d' })],
])

const segments = (...message: unknown[]): RequestInit => post({ group_id: 1, message }, json)
ask(relay, [
  [['no-onebot-action'], '/onebot/dance'],
  [['required'], '/onebot/send_group_msg?message=x'],
  [['required'], '/onebot/delete_msg'],
  [['required'], '/onebot/send_group_msg', segments({ type: 'at', data: {} })],
  [['required'], '/onebot/send_group_msg', segments({ type: 'reply', data: {} })],
  [['required'], '/onebot/send_group_msg', segments({ type: 'image', data: {} })],
  [['wrong-access-token'], '/onebot/get_status', { headers: { 'x-api-key': 'another', 'authorization': 'another' } }],
  [['too-many-segments'], '/onebot/send_group_msg', segments(...Array.from({ length: 1_001 }, () => ({ type: 'text', data: { text: 'x' } })))],
  [['message-empty'], '/onebot/send_group_msg', segments()],
  [['message-type'], '/onebot/send_group_msg', post({ group_id: 1, message: 1 }, json)],
  [['segment-type'], '/onebot/send_group_msg', segments('x')],
  [['text-of-segment'], '/onebot/send_group_msg', segments({ type: 'text', data: {} })],
  [['unknown-segment'], '/onebot/send_group_msg', segments({ type: 'dice', data: {} })],
  [['onebot-params-type'], '/onebot/send_group_msg', typed('text/plain')],
  [['too-many-fields'], '/onebot/send_group_msg', typed('application/x-www-form-urlencoded', 'a&'.repeat(1_000))],
  [['form-charset'], '/onebot/send_group_msg', typed('application/x-www-form-urlencoded', 'message=%ff')],
])

test('line-rule: of an incident', async () => {
  await relay.send({ to: 'ops', msg: 'x', severity: 'critical', thread: 'disk' })
  const [incident] = records(record(record(await (await relay.request('/incidents')).json()).data).incidents)
  await texts.ask(relay, ['line-rule'], `/incidents/${String(incident?.id)}/take`, post({ by: 'a\nb' }))
})

test('no-kept-file: of a text', async () => {
  const { data } = await relay.send({ to: 'ops', msg: 'x' })
  await texts.ask(relay, ['no-kept-file'], `/deliveries/${String(data.delivery_id)}/items/0`)
})

/** Sends half a request and leaves; what is noted of it has no other reader than the status. */
async function leave(head: readonly string[], body = ''): Promise<void> {
  const wire = await Wire.open(relay.url)
  wire.send([...head, 'Host: relay'], body)
  wire.socket.end()
}

async function statusWith({ request }: TestRelay, text: string, lang: Language): Promise<string> {
  let status = ''
  await until('it is noted', async () => (status = await (await request(`/statusz?lang=${lang}`)).text()).includes(text))
  return status
}

test('body-cut: of a sender that signs', () => texts.meet(['body-cut'], async lang => {
  await leave(['POST /hooks/github/ops HTTP/1.1', 'X-Hub-Signature-256: sha256=00', 'Content-Length: 9'], '{')
  return statusWith(relay, 'hooks/github', lang)
}))

test('download-cut: of a platform', async t => {
  const sender = await relayFor(t)
  await sender.reload({ mediaTransport: 'url', selfUrl: sender.url })
  const type = { 'content-type': 'image/png' }
  assert.equal((await sender.request('/send/group:1', { method: 'POST', body: Buffer.alloc(8_000_000), headers: type })).status, 200)
  const link = /\/media\/[^"]*/.exec(JSON.stringify(sender.simulator.calls))?.[0] ?? ''
  const wire = await Wire.open(sender.url)
  wire.socket.pause()
  wire.send([`GET ${link} HTTP/1.1`, 'Host: relay'])
  await until('some of it has come', () => wire.socket.readableLength > 0)
  wire.socket.destroy()
  await texts.meet(['download-cut'], lang => statusWith(sender, 'media', lang))
})

test('alert-may-be-over: of an alert that failed', async t => {
  const failing = await relayFor(t, { config: { chatApiMaxRetries: 0 } })
  failing.simulator.fault({ fault: { kind: 'refuse', wording: '群聊不存在' } })
  assert.equal((await failing.send({ group_id: 1, msg: 'x' })).status, 502)
  failing.unload()
  await editFile(failing.dataDir, database => database.run('UPDATE deliveries SET door = \'alert\''))
  await failing.reload()
  await texts.ask(failing, ['alert-may-be-over'], '/deliveries/retry?state=failed', { method: 'POST' })
})

test('change-there, not-ready, stands-by-for-other: of a relay that stands by', async t => {
  const [first, second] = [await relayFor(t), await relayFor(t)]
  await second.reload({ dataDir: first.dataDir })
  await until('it stands by', async () => record(record(await (await second.request('/statusz')).json()).data).standby_for !== undefined)
  await texts.ask(second, ['change-there'], '/targets/ops', post('group:1', {}, 'PUT'))
  await texts.ask(second, ['not-ready', 'stands-by-for-other'], '/readyz')
})

test('upload-read-by-plugin: by a catch-all route before it', async t => {
  const behind = await relayFor(t, { setup: app => app.inject(['server'], inner => void inner.server.all('/(.*)', (_, next) => next())) })
  await texts.ask(behind, ['upload-read-by-plugin'], '/upload', form({ file: 'a.txt' }))
})

test('why an HTTP address is not reached', async t => {
  /** A server that answers the first bytes of a request like this. */
  const answering = async (answer: (socket: Socket) => void): Promise<number> => {
    const server = createServer(socket => socket.on('error', () => undefined).once('data', () => answer(socket)))
    t.after(() => server.close())
    return listen(server)
  }
  const broken = await answering(socket => socket.end('What?\r\n\r\n'))
  const lost = await answering(socket => socket.destroy())
  const silent = await serve(t, () => undefined)
  /** Errors that only a machine without this network meets. */
  const codes = new Map([
    ['no-host', 'ENOTFOUND'], ['no-route', 'EHOSTUNREACH'], ['no-connection', 'UND_ERR_CONNECT_TIMEOUT'], ['no-head', 'UND_ERR_HEADERS_TIMEOUT'], ['other', 'EOTHER'],
  ])
  const reasons: readonly (readonly [id: keyof typeof http, url: string])[] = [
    ['connection-refused', `http://127.0.0.1:${await freePort()}`],
    ['connection-closed-early', `http://127.0.0.1:${lost}`],
    ['invalid-http', `http://127.0.0.1:${broken}`],
    ['no-tls', silent.replace('http:', 'https:')],
    ['bad-port', 'http://127.0.0.1:1'],
    ['no-answer-within', silent],
    ['host-not-found', 'http://no-host/'],
    ['host-not-reached', 'http://no-route/'],
    ['no-connection-in-time', 'http://no-connection/'],
    ['no-complete-answer', 'http://no-head/'],
    ['exchange-failed', 'http://other/'],
  ]
  const targets = Object.fromEntries(reasons.map(([id, url]) => [id, { first: [url] }]))
  const posting = await relayWith(t, { config: { chatApiMaxRetries: 0, chatApiTimeout: 1, targets } })
  posting.app.on('http/fetch-init', url => {
    const code = codes.get(url.hostname)
    if (code !== undefined) throw Object.assign(new Error(code), { code })
  })
  await Promise.all(reasons.map(async ([id]) => {
    const delivery = await posting.accept({ to: id, msg: 'x' })
    const [english = ''] = http[id][0].split('{')
    await until('its record says why', async () => JSON.stringify(await posting.show(delivery)).includes(english))
    await texts.ask(posting, [id], `/deliveries/${delivery}`)
  }))
})

test('what the page of the console gets', async t => {
  const served = await startWithConsole()
  const client = await ConsoleClient.connect(served.url)
  t.after(async () => {
    client.close()
    await served.stop()
  })
  const request = async (lang: Language, path: string, more = {}): Promise<string> => (
    JSON.stringify(await client.request('GET', path, { headers: { 'accept-language': lang, ...more } }))
  )
  await texts.meet(['not-from-page'], lang => request(lang, '/deliveries', { cookie: 'x' }))
  await texts.meet(['no-page-path'], lang => request(lang, '/status'))
})

test('stopping-try-later: of a bot that ends', async t => {
  const ending = await relayFor(t)
  await ending.app.parallel('exit', 'SIGTERM')
  await texts.ask(ending, ['stopping-try-later'], '/webhook', post({}, { 'idempotency-key': 'a' }))
})

texts.complete()
