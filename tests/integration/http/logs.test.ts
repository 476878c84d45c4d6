import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, test } from 'node:test'
import { otherBot, OtherBot } from '../../support/other-bot'
import { read, useRelay } from '../../support/relay'
import { multipart } from './support'

let start = 0

const marker = 'MARKER-7f3a'
const text = JSON.stringify({ group_id: '123456', msg: marker })

const relay = useRelay({
  config: { chatApiTimeout: 0.3, chatApiMaxRetries: 0 },
  setup(app) {
    app.plugin(OtherBot, {})
  },
})
beforeEach(() => {
  start = relay.logs.length
})

/** What was logged since the test began, without what the adapter writes for its own developers. */
function logged(): string {
  return relay.logs.slice(start).filter(line => !line.startsWith('onebot debug ')).join('\n')
}

function webhook(body: string) {
  return relay.request('/webhook', { method: 'POST', body }).then(read)
}

describe('at the start', () => {
  test('the settings that differ from their defaults are logged in one line, with where they come from', async () => {
    process.env.COMMAND_LENGTH = '5'
    process.env.CHAT_API_TIMEOUT = 'soon'
    try {
      await relay.reload({ maxUploadSize: 1234, allowedExtensions: ['png'] })
    } finally {
      delete process.env.COMMAND_LENGTH
      delete process.env.CHAT_API_TIMEOUT
    }
    const lines = logged()
    for (const line of [
      'message-relay warn the variable CHAT_API_TIMEOUT is malformed, it must be a number of seconds from 0.001 to 2147483: the default is used',
      'maxUploadSize = "1234 B" (koishi.yml), ',
      'allowedExtensions = ["png"] (koishi.yml), chatSettleTime = 0.001 (koishi.yml), commandLength = 5 (COMMAND_LENGTH); all others have their defaults',
      'message-relay info the API key is configured',
      'message-relay info bots: onebot:10000 online, other:me online',
    ]) assert(lines.includes(line), line)
    assert.equal(lines.match(/^message-relay info settings: /gm)?.length, 1)
    assert(!lines.includes('chatApiTimeout ='))
  })

  test('the file of a generated key goes with a key of the settings', async () => {
    const file = join(relay.uploadDir, '../data/api-key')
    await relay.reload({ apiKey: '' })
    assert.match(await readFile(file, 'utf8'), /^[0-9a-f-]{36}\n$/)
    await relay.reload()
    await assert.rejects(readFile(file), { code: 'ENOENT' })
  })

  test('no secret is logged: neither the key nor what addresses hold', async () => {
    await relay.reload({
      apiKey: 'k-secret', commandCallbackUrl: 'http://user:p-secret@127.0.0.1:1/c-secret/?token=t-secret#f-secret', selfUrl: 'http://u:s-secret@127.0.0.1:2/x/',
    })
    assert(!logged().includes('secret'), logged())
    assert(logged().includes('commandCallbackUrl = "http://127.0.0.1:1" (koishi.yml)'))
    assert(logged().includes('selfUrl = "http://127.0.0.1:2/x" (koishi.yml)'))
  })

  test('a generated key is in a file for its owner, stays with a reload, and is in no line', async () => {
    const dataDir = join(relay.uploadDir, '..', 'keys')
    const file = join(dataDir, 'api-key')
    const keys: string[] = []
    for (let times = 0; times < 2; times++) {
      await relay.reload({ apiKey: '', dataDir })
      const text = await readFile(file, 'utf8')
      assert.match(text, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$/)
      assert.equal((await stat(file)).mode & 0o777, 0o600)
      keys.push(text.trim())
      const { status } = await read(await fetch(`${relay.url}/webhook`, { headers: { 'x-api-key': text.trim() } }))
      assert.equal(status, 405)
    }
    assert.equal(keys[0], keys[1])
    assert(logged().includes(`the API key was generated: it is in the file ${file}`))
    for (const key of keys) assert(!logged().includes(key))
    await relay.reload()
  })
})

test('an adapter that gives up is logged with its reason, and once however often it dials', async () => {
  const bot = otherBot(relay)
  for (let dials = 0; dials < 3; dials++) {
    bot.offline(new Error('wrong token'))
    await Promise.resolve()
    bot.status = Universal.Status.CONNECT
    await Promise.resolve()
  }
  bot.online()
  await Promise.resolve()
  const lines = logged().split('\n').map(line => line.replace(/\d+ s/, 'N s'))
  assert.deepEqual(lines.filter(line => line.includes('bot other:me')), [
    'message-relay info bot other:me offline: the bot is not connected (wrong token) after N s online',
    'message-relay info bot other:me connecting: the bot is connecting (wrong token)',
    'message-relay info bot other:me online after N s connecting',
  ])
})

describe('each request', () => {
  test('tells of a batch how many items were sent, how the others ended, and why the first of them did', async () => {
    await webhook(JSON.stringify({
      user_id: '10001', messages: [{ msg: 'a' }, { type: 'image' }, { type: 'file', url: '0b7f8b8e-4c1d-4e3a-9d2f-0123456789ab/x.txt' }, { type: 'pigeon' }],
    }))
    assert.match(logged(), / POST \/webhook private:10001 200 1 of 4 sent, the others 400 404: url is required for type image \d/)
  })

  test('that failed for the platform is a warning with the reason', async () => {
    relay.simulator.fault({ fault: { kind: 'muted' } })
    await webhook('{"group_id":"1","msg":"x"}')
    assert.match(logged(), /message-relay warn .* group:1 502 refused: .*禁言/)
  })
})

describe('nothing of a message is in the log', () => {
  const cases: [string, () => Promise<unknown>][] = [
    ['that was sent', () => webhook(text)],
    ['that was refused', () => {
      relay.simulator.fault({ fault: { kind: 'refuse' } })
      return webhook(text)
    }],
    ['whose target is muted', async () => {
      relay.simulator.fault({ fault: { kind: 'muted' } })
      const body = JSON.stringify({ group_id: '2', msg: marker })
      const statuses = [(await webhook(body)).status, (await webhook(body)).status]
      assert.deepEqual(statuses, [502, 503])
    }],
    ['that was not answered', () => {
      relay.simulator.fault({ fault: { kind: 'silent' } })
      return webhook(text)
    }],
    ['that is no JSON', () => webhook(`{"msg":"${marker}`)],
    ['whose fields are wrong', () => webhook(JSON.stringify({ group_id: '123456', type: marker, msg: marker, url: marker }))],
    ['whose target is none', () => webhook(JSON.stringify({ group_id: 'x', msg: marker }))],
    ['that is a batch', () => webhook(JSON.stringify({ group_id: '123456', messages: [{ msg: marker }, { type: marker }, { type: 'image', url: `${marker}.png` }, { type: 'image', url: `http://127.0.0.1:9/${marker}` }] }))],
    ['that came without the key', async () => {
      // What is refused has a line a minute, and another test has had it.
      await relay.reload()
      const headers = { 'x-api-key': marker, 'user-agent': marker }
      return read(await fetch(`${relay.url}/webhook?${marker}`, { method: 'POST', body: text, headers }))
    }],
    ['that is a file', () => relay.request('/upload', {
      method: 'POST', body: multipart([[`${marker}.txt`, marker]]), headers: { 'content-type': 'multipart/form-data; boundary=limit' },
    }).then(read)],
  ]
  for (const [what, send] of cases) {
    test(what, async () => {
      await send()
      assert.match(logged(), /POST \/(?:webhook|upload)/)
      assert(!logged().includes(marker), logged())
    })
  }

  test('that the adapter repeats in what it throws', async () => {
    // As the OneBot adapter's own encoder does.
    const failure = Object.assign(new Error(`Error with request send_msg, args: {"message":"${marker}"}`), { name: 'SenderError' })
    otherBot(relay).failures = [() => Promise.reject(failure)]
    const { status } = await webhook(JSON.stringify({ platform: 'other', group_id: '1', msg: marker }))
    assert.equal(status, 504)
    assert.match(logged(), /504 unanswered: the adapter threw SenderError /)
    assert(!logged().includes(marker), logged())
  })
})

describe('foreign text', () => {
  const evil = 'a\r\nmessage-relay info forged\u001b[2J\u009b%s%o%d%c\u2028\u202e'

  test('in an ID is refused, or made harmless', async () => {
    assert.equal((await webhook(JSON.stringify({ group_id: evil, msg: 'x' }))).status, 400)
    await webhook(JSON.stringify({ group_id: '12%s%o%j\u2028\u202e\u2066', msg: 'x' }))
    assert.match(logged(), /group:12%s%o%j\ufffd\ufffd\ufffd 400/)
    assertHarmless()
  })

  test('in the words of the platform is one line', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse', wording: evil } })
    const { status } = await webhook('{"group_id":"123456","msg":"x"}')
    assert.equal(status, 502)
    assert.match(logged(), /502 refused: .*%s%o%d%c/)
    assertHarmless()
  })

  test('in a path, a query or a header is left out', async () => {
    await read(await relay.request(`/webhook?${encodeURIComponent(evil)}`, { headers: { 'user-agent': '%s%o' } }))
    await read(await relay.request(`/media/${encodeURIComponent(evil)}/${encodeURIComponent(evil)}`))
    assert(!logged().includes('forged'))
    assertHarmless()
  })

  function assertHarmless(): void {
    for (const line of relay.logs.slice(start)) assert.doesNotMatch(line, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    assert(!relay.logs.some(line => line.startsWith('message-relay info forged')))
  }
})

// The last one: the platform does not come back, or the message would be found.
test('nothing of a message whose connection broke is in the log', async () => {
  const { length } = relay.simulator.ledger
  relay.simulator.fault({ fault: { kind: 'lost-answer' } })
  const reply = webhook(text)
  await relay.simulator.until(({ ledger }) => ledger.length > length)
  await relay.simulator.goOffline()
  assert.equal((await reply).status, 504)
  assert(!logged().includes(marker), logged())
})
