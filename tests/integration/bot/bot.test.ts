import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { Simulator } from '../../../simulator'
import { freePort } from '../../support/process'
import { read, type Reply } from '../../support/relay'
import { until } from '../../support/until'
import { Checkout, isTaken, type StartedBot } from './support'

let checkout: Checkout
/** What is in the repository before the first start of a bot. */
let contents: Record<string, string>
let simulator: Simulator
/** What is no OneBot 11, and be it the first that a bot hears. */
const firstFrames = ['5', 'null', '"x"', '{"echo":"__proto__"}', '{"post_type":"message"}']

before(async () => {
  checkout = await Checkout.create()
  contents = await checkout.contents()
  simulator = await Simulator.start({ selfId: '20000', token: 'token-of-the-platform', firstFrames })
})
afterEach(async () => {
  await checkout.endAll()
  simulator.clear()
  simulator.clearFaults()
})
after(async () => {
  await checkout.remove()
  await simulator.close()
})

/** What makes a bot connect to the simulator of this file. */
function platform(): Record<string, string> {
  return { ONEBOT_ENDPOINT: simulator.endpoint, ONEBOT_SELF_ID: '20000', ONEBOT_TOKEN: 'token-of-the-platform' }
}

async function send(bot: StartedBot, key: string, msg = 'hello'): Promise<Reply> {
  return read(await fetch(`${bot.url}/webhook`, { method: 'POST', headers: { 'x-api-key': key }, body: JSON.stringify({ group_id: '123456', msg }) }))
}

test('without ONEBOT_ENDPOINT the simulator is the platform, which the log says loudly, and a message arrives on its page', async () => {
  const port = await freePort()
  const bot = await checkout.start({ ONEBOT_ENDPOINT: ' ', ONEBOT_SELF_ID: '', SIMULATOR_PORT: String(port) })
  await bot.ready()
  assert.match(bot.log, /={70}\n.*SIMULATOR: no real chat platform is connected/)
  const [, page = ''] = await bot.line(new RegExp(`(http://127\\.0\\.0\\.1:${port}/simulator/)`))
  const answer = await send(bot, await bot.key(), 'hello from the bot')
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('keep-alive'), 'timeout=130', 'idle connections outlive those of proxies')
  const state = await (await fetch(new URL('api/state', page))).text()
  assert(state.includes('hello from the bot'))
  assert(!bot.log.includes('hello from the bot'))
  assert(!bot.log.includes(await bot.key()))

  const second = await checkout.start({ SIMULATOR_PORT: String(port) })
  await second.line(new RegExp(`port ${port} is taken: the simulator takes \\d+; set SIMULATOR_PORT to choose`))
  await second.ready()
})

test('commands of the chat console work in a group of the simulator without a prefix', async () => {
  const bot = await checkout.start({ SIMULATOR_PORT: String(await freePort()), CHAT_COMMANDS: 'true', CHAT_OPERATORS: 'onebot:10001' })
  await bot.ready()
  const [page = ''] = await bot.line(/http:\/\/127\.0\.0\.1:\d+\/simulator\//)
  const body = JSON.stringify({ type: 'group', chat: '123456', user: '10001', text: 'relay.targets' })
  await fetch(new URL('api/say', page), { method: 'POST', body, headers: { 'content-type': 'application/json' } })
  await until('it answers', async () => (await (await fetch(new URL('api/state', page))).text()).includes('onebot:group:123456'))
})

test('a folder that the relay cannot use is told in one line, and the bot goes on: that of uploads', async () => {
  const bot = await checkout.start({ UPLOAD_DIR: '/dev/null/uploads' })
  await bot.ready()
  const errors = bot.lines.filter(line => line.includes('[E]'))
  assert.equal(errors.length, 1, bot.log)
  assert.match(errors[0] ?? '', /bot cannot write to the upload folder \/dev\/null\/uploads \(ENOTDIR\): .* set UPLOAD_DIR/)
})

test('the default of a port is used where it is blank, or malformed with a warning, and it is listened everywhere where the host is blank', async () => {
  const bot = await checkout.start({ WEBHOOK_PORT: '', WEBHOOK_HOST: '', SIMULATOR_PORT: '70000' })
  // Where another program has that port, the bot says so, and that tells just as well where it wanted to listen.
  await bot.line(/server listening at http:\/\/0\.0\.0\.0:8081|cannot listen on 0\.0\.0\.0:8081 /)
  await bot.line(/:8090\/simulator\/|port 8090 is taken/)
  assert.deepEqual(bot.log.match(/the variable \S+ is malformed: the default is used/g), ['the variable SIMULATOR_PORT is malformed: the default is used'])
})

test('a start that cannot go on ends with one line', async () => {
  const reverse = { ONEBOT_REVERSE_PATH: '/onebot', ONEBOT_SELF_ID: '20000' }
  const noAddress = 'ONEBOT_ENDPOINT is not the address of a WebSocket: write it as ws://127.0.0.1:3001'
  const cases: readonly (readonly [env: Record<string, string>, said: string])[] = [
    [{ WEBHOOK_HOST: '203.0.113.1', WEBHOOK_PORT: '8081' }, 'cannot listen on 203.0.113.1:8081 (EADDRNOTAVAIL): set WEBHOOK_HOST or WEBHOOK_PORT'],
    [{ ONEBOT_ENDPOINT: '127.0.0.1:3001', ONEBOT_SELF_ID: '20000' }, noAddress],
    [{ ONEBOT_ENDPOINT: 'napcat:3001', ONEBOT_SELF_ID: '20000' }, noAddress],
    [{ ...reverse, ONEBOT_TOKEN: ' ' }, 'beside ONEBOT_REVERSE_PATH, set ONEBOT_TOKEN'],
    [{ DATA_DIR: '/dev/null/data' }, 'cannot write to the data folder /dev/null/data (ENOTDIR): set DATA_DIR'],
  ]
  await Promise.all(cases.map(async ([env, said]) => {
    const bot = await checkout.start(env)
    assert.equal(await bot.exit(), 1)
    const errors = bot.lines.filter(line => line.includes('[E]'))
    assert(errors.length === 1 && errors[0]?.includes(`[E] bot ${said}`), bot.log)
    assert(!bot.log.includes('    at '))
  }))
})

describe('with ONEBOT_ENDPOINT', () => {
  test('the bot connects there with its account and token, and bears frames that are no OneBot 11', async () => {
    const bot = await checkout.start({ ...platform(), WEBHOOK_API_KEY: 'configured' })
    await bot.ready()
    for (const frame of firstFrames) simulator.transmit(frame)
    assert.equal((await send(bot, 'configured')).status, 200)
    assert.equal(simulator.ledger.at(-1)?.text, 'hello')
    assert.equal(bot.lines.filter(line => line.includes('not OneBot 11')).length, 1, bot.log)
    assert(!bot.log.includes('    at '), bot.log)
    assert(!bot.log.includes('SIMULATOR'))
    assert(bot.log.includes('the API key is configured'))
    assert.match(bot.log, /bot settings of the bot: .*WEBHOOK_PORT = "\d+"/)
    assert.match(bot.log, /ONEBOT_ENDPOINT = "ws:\/\/[\w.:]+".*, ONEBOT_SELF_ID = .*, ONEBOT_TOKEN; all others have/)
    assert(!/configured[^\n]*configured|token-of/.test(bot.log))
    await assert.rejects(stat(join(bot.folder, 'data/api-key')), { code: 'ENOENT' })
  })

  test('but no ONEBOT_SELF_ID the log says what is missing, and the bot goes on without a platform', async () => {
    const bot = await checkout.start({ ONEBOT_ENDPOINT: simulator.endpoint, WEBHOOK_API_KEY: 'k' })
    await bot.listening()
    assert.match(bot.log, /\[E\] bot no platform is connected: beside ONEBOT_ENDPOINT, set ONEBOT_SELF_ID/)
    assert(!bot.log.includes('    at '))
    assert(!bot.log.includes('SIMULATOR'))
    assert.equal((await send(bot, 'k')).status, 503)
  })
})

test('relative folders, also those of the file .env, are relative to where npm was run', async () => {
  const folder = await checkout.folder()
  const file = join(checkout.repository, '.env')
  await writeFile(file, 'DATA_DIR=some/data\nONEBOT_ENDPOINT=\n')
  try {
    const bot = await checkout.start({ INIT_CWD: folder, UPLOAD_DIR: './some/uploads' })
    await bot.ready()
    const key = await bot.key(join(folder, 'some/data'))
    const form = new FormData()
    form.append('file', new Blob(['content']), 'a.txt')
    const { status } = await read(await fetch(`${bot.url}/upload`, { method: 'POST', headers: { 'x-api-key': key }, body: form }))
    assert.equal(status, 200)
    assert.equal((await readdir(join(folder, 'some/uploads'))).length, 1)
    assert.deepEqual(await readdir(bot.folder), [])
  } finally {
    await writeFile(file, '')
  }
})

test('a file .env that cannot be read ends the start with one line', async () => {
  const file = join(checkout.repository, '.env')
  await rm(file, { force: true })
  try {
    await writeFile(file, '\ufeffWEBHOOK_API_KEY=k\r\n', 'utf16le')
    const first = await checkout.start()
    assert.equal(await first.exit(), 1)
    assert.match(first.log, /^.*\[E\] bot the file \.env is UTF-16: save it as UTF-8$/)
    // A folder in the place of the file: what not even root can read.
    await rm(file)
    await mkdir(file)
    const bot = await checkout.start()
    assert.equal(await bot.exit(), 1)
    assert.match(bot.log, /^.*\[E\] bot cannot read the file \.env \(EISDIR\): let the user that runs the bot read it, or remove it$/)
  } finally {
    await rm(file, { recursive: true })
  }
})

test('a second process on one port, or on one data folder, ends with one line, and one that was killed is replaced at once', async () => {
  const folder = await checkout.folder()
  const first = await checkout.start({}, { cwd: folder })
  await first.ready()
  const key = await first.key()
  for (const [env, said] of [
    [{ WEBHOOK_PORT: first.port }, new RegExp(`cannot listen on 127\\.0\\.0\\.1:${first.port} \\(EADDRINUSE\\): another program has the port: end it, or set WEBHOOK_PORT, and DATA_DIR`)],
    [{}, /\[E\] bot process \d+ on \S+ works the data folder \S+data: end it, or set DATA_DIR to another folder$/],
  ] as const) {
    const second = await checkout.start(env, { cwd: folder })
    assert.equal(await second.exit(), 1)
    const errors = second.lines.filter(line => line.includes('[E]'))
    assert.equal(errors.length, 1, second.log)
    assert.match(errors[0] ?? '', said)
    assert(!second.log.includes('    at '))
  }
  assert.equal(await first.key(), key)
  assert.equal((await send(first, key)).status, 200)
  await first.kill()
  const next = await checkout.start({}, { cwd: folder })
  await next.ready()
})

describe('a signal', () => {
  test('sent twice ends it within five seconds, and what the platform does not answer is a 504', async () => {
    const bot = await checkout.start({ ...platform(), WEBHOOK_API_KEY: 'k', CHAT_API_TIMEOUT: '30' })
    await bot.ready()
    simulator.fault({ fault: { kind: 'silent' } })
    const answer = send(bot, 'k')
    await simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    bot.child.kill('SIGTERM')
    const duration = await bot.end('SIGTERM')
    const { status, body } = await answer
    assert.equal(status, 504)
    assert.match(body.msg, /may have arrived/)
    assert(duration > 3_500 && duration < 5_000, `it took ${duration} ms`)
    assert.equal(await bot.exit(), 0)
  })

  test('during the start ends it, too', async () => {
    for (const moment of [/Koishi\//, /message-relay settings:/]) {
      const bot = await checkout.start()
      await bot.line(moment)
      assert(await bot.end('SIGTERM') < 5_000)
      assert.equal(await isTaken(bot.port), false)
    }
  })
})

test('npm start works from any folder, makes a key each time, changes no file of the repository, and passes signals on', async () => {
  const folder = await checkout.folder()
  const keys = new Set<string>()
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    const bot = await checkout.start({ ...platform(), CHAT_API_TIMEOUT: '30' }, { byNpm: signal === 'SIGTERM', cwd: folder })
    await bot.ready()
    const file = join(folder, 'data/api-key')
    assert.deepEqual([(await stat(file)).mode & 0o777, (await stat(join(folder, 'data'))).mode & 0o777], [0o600, 0o700])
    assert(bot.log.includes(file))
    const key = await bot.key()
    keys.add(key)
    simulator.clear()
    simulator.fault({ fault: { kind: 'late', ms: 500 } })
    const answer = send(bot, key)
    await simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    assert(await bot.end(signal) < 4_000)
    assert.equal((await answer).status, 200)
    assert.equal(await isTaken(bot.port), false)
    assert.deepEqual(await readdir(folder), ['data'])
  }
  assert.equal(keys.size, 3)
  assert.deepEqual((await readdir(join(folder, 'data'))).filter(name => name.endsWith('.tmp')), [])
  assert.deepEqual(await checkout.contents(), contents)
})

describe('uploads', () => {
  /** Uploads one file of so many bytes without ever holding it whole; returns the status. */
  function upload(bot: StartedBot, key: string, size: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const chunk = Buffer.alloc(64 * 1024)
      const client = request(`${bot.url}/upload`, {
        method: 'POST', headers: { 'x-api-key': key, 'content-type': 'multipart/form-data; boundary=limit' },
      }, response => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      })
      client.on('error', reject)
      client.write('--limit\r\nContent-Disposition: form-data; name="f"; filename="a.bin"\r\n\r\n')
      let left = size
      const more = (): void => {
        while (left > 0) {
          const part = chunk.subarray(0, Math.min(left, chunk.length))
          left -= part.length
          if (!client.write(part)) {
            client.once('drain', more)
            return
          }
        }
        client.end('\r\n--limit--\r\n')
      }
      more()
    })
  }

  test('leave nothing in the temporary folder of the system, and those of 25 clients at once, 8 MB each, take little memory', async () => {
    const bot = await checkout.start({ WEBHOOK_API_KEY: 'k' })
    await bot.ready()
    assert.equal(await upload(bot, 'wrong', 100_000), 401)
    assert.equal(await upload(bot, 'k', 100_000), 200)
    assert.deepEqual(await readdir(bot.temporary), [])
    const peak = async (): Promise<number> =>
      Number(/VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${bot.child.pid ?? 0}/status`, 'utf8').catch(() => 'VmHWM: 0'))?.[1]) / 1024
    const before = await peak()
    const statuses = await Promise.all(Array.from({ length: 25 }, () => upload(bot, 'k', 8_000_000)))
    assert(statuses.every(status => status === 200), statuses.join())
    const grown = await peak() - before
    assert(grown < 100, `${grown} MiB more than before, for 200 MB of uploads`)
  })
})

describe('with ONEBOT_REVERSE_PATH', () => {
  const token = 'token-of-the-platform'
  const env = { ONEBOT_REVERSE_PATH: 'onebot', ONEBOT_SELF_ID: '20000', ONEBOT_TOKEN: token, WEBHOOK_API_KEY: 'k' }
  const oneBot = { 'X-Self-ID': '20000', 'X-Client-Role': 'Universal' }

  test('a OneBot dials, if it gives the token, whether the path begins with a slash or not', async t => {
    const bot = await checkout.start(env)
    await bot.listening()
    assert(!bot.log.includes('SIMULATOR'))
    const url = `ws://127.0.0.1:${bot.port}`
    for (const [path, headers] of [
      ['/onebot', {}], ['/onebot', { Authorization: 'Bearer wrong' }], ['/ONEBOT/?access_token=wrong', {}], ['/onebot', { Authorization: token }],
    ] as const) {
      const socket = new WebSocket(url + path, { headers: { ...oneBot, ...headers } })
      const failed: unknown = await new Promise(resolve => {
        socket.on('error', resolve)
        socket.on('open', resolve)
      })
      assert.match(String(failed), /401/, JSON.stringify([path, headers]))
    }
    assert.equal(bot.log.split('a OneBot implementation was turned away: its access token is not the one in ONEBOT_TOKEN').length, 2)
    const dialling = await Simulator.start({ selfId: '20000', reverse: { url: `${url}/onebot`, token } })
    t.after(() => dialling.close())
    await bot.ready()
    assert.equal((await send(bot, 'k')).status, 200)
    assert.equal(dialling.ledger.length, 1)
    await dialling.goOffline()
    await bot.line(/bot onebot:20000 offline/)
    const socket = new WebSocket(`${url}/onebot?access_token=${token}`, { headers: oneBot })
    t.after(() => socket.terminate())
    await once(socket, 'open')
    assert(!bot.log.includes(token))
  })
})
