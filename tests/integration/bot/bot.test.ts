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
import { Checkout, isTaken, type StartedBot } from './support'

let checkout: Checkout
/** What is in the repository before the first start of a bot. */
let contents: Record<string, string>
let simulator: Simulator

before(async () => {
  checkout = await Checkout.create()
  contents = await checkout.contents()
  simulator = await Simulator.start({ selfId: '20000', token: 'token-of-the-platform' })
})
afterEach(() => checkout.endAll())
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

describe('without ONEBOT_ENDPOINT', () => {
  test('the simulator is the platform, which the log says loudly, and a message arrives on its page', async () => {
    const bot = await checkout.start({ ONEBOT_ENDPOINT: ' ', ONEBOT_SELF_ID: '' })
    await bot.ready()
    assert.match(bot.log, /={70}\n.*SIMULATOR: no real chat platform is connected/)
    const [, page = ''] = await bot.line(/(http:\/\/127\.0\.0\.1:\d+\/simulator\/)/)
    const answer = await send(bot, await bot.key(), 'hello from the bot')
    assert.equal(answer.status, 200)
    const state = await (await fetch(new URL('api/state', page))).text()
    assert(state.includes('hello from the bot'))
    assert(!bot.log.includes('hello from the bot'))
    assert(!bot.log.includes(await bot.key()))
  })
})

describe('the API key', () => {
  test('is generated at each start, into a file for its owner that the log names', async () => {
    const folder = await checkout.folder()
    const keys: string[] = []
    for (let times = 0; times < 2; times++) {
      const bot = await checkout.start({}, { cwd: folder })
      await bot.ready()
      assert.equal((await stat(join(folder, 'data/api-key'))).mode & 0o777, 0o600)
      assert.equal((await stat(join(folder, 'data'))).mode & 0o777, 0o700)
      assert(bot.log.includes(join(folder, 'data/api-key')))
      keys.push(await bot.key())
      await bot.end('SIGTERM')
    }
    assert.equal(new Set(keys).size, 2)
    const leftovers = (await readdir(join(folder, 'data'))).filter(name => name.endsWith('.tmp'))
    assert.deepEqual(leftovers, [])
  })

  test('that cannot be written is told in one line, and the bot goes on', async () => {
    const folder = await checkout.folder()
    // A folder in the place of the file: what not even root can overwrite.
    await mkdir(join(folder, 'data/api-key/x'), { recursive: true })
    const bot = await checkout.start({}, { cwd: folder })
    await bot.line(/server listening at/)
    const errors = bot.lines.filter(line => line.includes('[E]'))
    assert.equal(errors.length, 1, bot.log)
    assert.match(errors[0] ?? '', /message-relay the relay cannot start.*\/data\/api-key.*set WEBHOOK_API_KEY, or DATA_DIR/)
    assert(!bot.log.includes('    at '))
  })
})

describe('WEBHOOK_PORT', () => {
  for (const port of ['', '70000', '80x']) {
    test(`${port || 'blank'} falls back to 8081`, async () => {
      const bot = await checkout.start({ WEBHOOK_PORT: port })
      // Where another program has that port, the bot says so, and that tells just as well where it wanted to listen.
      const [, told] = await bot.line(/server listening at http:\/\/127\.0\.0\.1:(\d+)|cannot listen on 127\.0\.0\.1:(?=8081 )/)
      assert(told === undefined || told === '8081')
      const isWarned = bot.log.includes('the variable WEBHOOK_PORT is malformed: the default is used')
      assert.equal(isWarned, port !== '')
    })
  }

  test('that is taken ends the start with one line, and leaves the key of the bot that has it', async () => {
    const folder = await checkout.folder()
    const first = await checkout.start({}, { cwd: folder })
    const { port } = first
    await first.ready()
    const key = await first.key()
    const second = await checkout.start({ WEBHOOK_PORT: port }, { cwd: folder })
    assert.equal(await second.exit(), 1)
    const errors = second.lines.filter(line => line.includes('[E]'))
    assert.equal(errors.length, 1, second.log)
    assert.match(errors[0] ?? '', new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port} \\(EADDRINUSE\\): another program has the port: end it, or set WEBHOOK_PORT, and DATA_DIR`))
    assert(!second.log.includes('    at '))
    assert.equal(await first.key(), key)
    assert.equal((await send(first, key)).status, 200)
  })
})

describe('SIMULATOR_PORT', () => {
  test('says where the simulator listens, and which variable chooses where its port is taken', async () => {
    const port = await freePort()
    const first = await checkout.start({ SIMULATOR_PORT: String(port) })
    await first.line(new RegExp(`http://127\\.0\\.0\\.1:${port}/simulator/`))
    const second = await checkout.start({ SIMULATOR_PORT: String(port) })
    await second.line(new RegExp(`port ${port} is taken: the simulator takes \\d+; set SIMULATOR_PORT to choose`))
    await second.ready()
  })

  test('that is malformed falls back to 8090, with a warning', async () => {
    const bot = await checkout.start({ SIMULATOR_PORT: '80x' })
    await bot.line(/:8090\/simulator\/|port 8090 is taken/)
    assert.match(bot.log, /the variable SIMULATOR_PORT is malformed: the default is used/)
  })
})

describe('WEBHOOK_HOST', () => {
  test('says where to listen: everywhere when it is blank', async () => {
    const bot = await checkout.start({ WEBHOOK_HOST: '' })
    await bot.line(/server listening at http:\/\/0\.0\.0\.0:\d+/)
  })

  test('that does not exist ends the start with one line', async () => {
    const bot = await checkout.start({ WEBHOOK_HOST: '203.0.113.1' })
    assert.equal(await bot.exit(), 1)
    assert.match(bot.log, /\[E\] bot cannot listen on 203\.0\.113\.1:\d+ \(EADDRNOTAVAIL\): set WEBHOOK_HOST or WEBHOOK_PORT$/)
  })
})

describe('with ONEBOT_ENDPOINT', () => {
  test('the bot connects there with its account and token, and the simulator is not started', async () => {
    const bot = await checkout.start({ ...platform(), WEBHOOK_API_KEY: 'configured' })
    await bot.ready()
    assert.equal((await send(bot, 'configured')).status, 200)
    assert.equal(simulator.ledger.at(-1)?.text, 'hello')
    assert(!bot.log.includes('SIMULATOR'))
    assert(bot.log.includes('the API key is configured'))
    assert(!/configured[^\n]*configured|token-of/.test(bot.log))
    await assert.rejects(stat(join(bot.folder, 'data/api-key')), { code: 'ENOENT' })
  })

  test('frames that are no OneBot 11 do not end the process, be they the first that it hears', async t => {
    const firstFrames = ['5', 'null', '"x"', '{"echo":"__proto__"}', '{"post_type":"message"}']
    const strange = await Simulator.start({ selfId: '20000', firstFrames })
    t.after(() => strange.close())
    const bot = await checkout.start({ ONEBOT_ENDPOINT: strange.endpoint, ONEBOT_SELF_ID: '20000', WEBHOOK_API_KEY: 'k' })
    await bot.ready()
    for (const frame of firstFrames) strange.transmit(frame)
    assert.equal((await send(bot, 'k')).status, 200)
    assert.equal(bot.lines.filter(line => line.includes('not OneBot 11')).length, 1, bot.log)
    assert(!bot.log.includes('    at '), bot.log)
  })

  test('but no ONEBOT_SELF_ID the log says what is missing, and the bot goes on without a platform', async () => {
    const bot = await checkout.start({ ONEBOT_ENDPOINT: simulator.endpoint, WEBHOOK_API_KEY: 'k' })
    await bot.listening()
    assert.match(bot.log, /\[E\] bot no platform is connected: beside ONEBOT_ENDPOINT, set ONEBOT_SELF_ID/)
    assert(!bot.log.includes('    at '))
    assert(!bot.log.includes('SIMULATOR'))
    assert.equal((await send(bot, 'k')).status, 503)
  })

  for (const endpoint of ['127.0.0.1:3001', 'napcat:3001', 'ws://:3001']) {
    test(`but one that is no address, ${endpoint}, ends the start with one line`, async () => {
      const bot = await checkout.start({ ONEBOT_ENDPOINT: endpoint, ONEBOT_SELF_ID: '20000' })
      assert.equal(await bot.exit(), 1)
      assert.match(bot.log, /^.*\[E\] bot ONEBOT_ENDPOINT is not the address of a WebSocket: write it as ws:\/\/127\.0\.0\.1:3001$/)
    })
  }
})

describe('relative folders', () => {
  test('are relative to where npm was run', async () => {
    const folder = await checkout.folder()
    const bot = await checkout.start({
      INIT_CWD: folder, DATA_DIR: 'some/data', UPLOAD_DIR: './some/uploads',
    })
    await bot.ready()
    const key = await bot.key(join(folder, 'some/data'))
    const form = new FormData()
    form.append('file', new Blob(['content']), 'a.txt')
    const { status } = await read(await fetch(`${bot.url}/upload`, { method: 'POST', headers: { 'x-api-key': key }, body: form }))
    assert.equal(status, 200)
    assert.equal((await readdir(join(folder, 'some/uploads'))).length, 1)
    assert.deepEqual(await readdir(bot.folder), [])
  })

  test('are so too when they come from the file .env', async () => {
    const file = join(checkout.repository, '.env')
    await writeFile(file, 'DATA_DIR=from-file\nONEBOT_ENDPOINT=\n')
    try {
      const bot = await checkout.start()
      await bot.ready()
      assert((await readdir(join(bot.folder, 'from-file'))).includes('api-key'))
      assert.deepEqual(await readdir(bot.folder), ['from-file'])
    } finally {
      await writeFile(file, '')
    }
  })
})

test('a data folder that cannot be made ends the start with one line', async () => {
  const bot = await checkout.start({ DATA_DIR: '/dev/null/data' })
  assert.equal(await bot.exit(), 1)
  assert.match(bot.log, /\[E\] bot cannot write to the data folder \/dev\/null\/data \(ENOTDIR\): set DATA_DIR/)
  assert(!bot.log.includes('    at '))
})

test('an upload folder that cannot be made is told in one line, and the bot goes on', async () => {
  const bot = await checkout.start({ UPLOAD_DIR: '/dev/null/uploads' })
  await bot.ready()
  const errors = bot.lines.filter(line => line.includes('[E]'))
  assert.equal(errors.length, 1, bot.log)
  assert.match(errors[0] ?? '', /bot cannot write to the upload folder \/dev\/null\/uploads \(ENOTDIR\): .* set UPLOAD_DIR/)
})

test('a file .env that cannot be read ends the start with one line', async () => {
  const file = join(checkout.repository, '.env')
  await rm(file, { force: true })
  // A folder in the place of the file: what not even root can read.
  await mkdir(file)
  try {
    const bot = await checkout.start()
    assert.equal(await bot.exit(), 1)
    assert.match(bot.log, /^.*\[E\] bot cannot read the file \.env \(EISDIR\): let the user that runs the bot read it, or remove it$/)
  } finally {
    await rm(file, { recursive: true })
  }
})

test('a second process on one data folder ends with one line that names the first, and one that was killed is replaced at once', async () => {
  const folder = await checkout.folder()
  const first = await checkout.start({}, { cwd: folder })
  await first.ready()
  const second = await checkout.start({}, { cwd: folder })
  assert.equal(await second.exit(), 1)
  const [error = '', ...others] = second.lines.filter(line => line.includes('[E]'))
  assert.match(error, /\[E\] bot process \d+ on \S+ works the data folder \S+data: end it, or set DATA_DIR to another folder$/)
  assert.deepEqual(others, [])
  assert(!second.log.includes('    at '))
  await first.kill()
  const third = await checkout.start({}, { cwd: folder })
  await third.ready()
})

describe('a signal', () => {
  const message = JSON.stringify({ group_id: '123456', msg: 'in flight' })

  /** Starts a bot that has a request under way which the platform answers after so long, or never. */
  async function busy(ms?: number): Promise<{ bot: StartedBot, answer: Promise<Reply> }> {
    simulator.clearFaults()
    simulator.clear()
    const bot = await checkout.start({ ...platform(), WEBHOOK_API_KEY: 'k', CHAT_API_TIMEOUT: '30' })
    await bot.ready()
    simulator.fault({ fault: ms === undefined ? { kind: 'silent' } : { kind: 'late', ms } })
    const answer = fetch(`${bot.url}/webhook`, { method: 'POST', headers: { 'x-api-key': 'k' }, body: message }).then(read)
    await simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    return { bot, answer }
  }

  test('ends the bot once the request under way has its answer', async () => {
    const { bot, answer } = await busy(700)
    const duration = await bot.end('SIGTERM')
    assert.equal((await answer).status, 200)
    assert(duration < 4_000, `it took ${duration} ms`)
    assert.equal(await bot.exit(), 0)
    assert.equal(await isTaken(bot.port), false)
  })

  test('SIGTERM, sent twice, ends it within five seconds, and what the platform does not answer is a 504', async () => {
    const { bot, answer } = await busy()
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

test('npm start works from any folder, changes no file of the repository, and passes signals on', async () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    simulator.clearFaults()
    simulator.clear()
    const bot = await checkout.start({ ...platform(), CHAT_API_TIMEOUT: '30' }, { byNpm: true })
    await bot.ready()
    const key = await bot.key()
    simulator.fault({ fault: { kind: 'late', ms: 500 } })
    const answer = send(bot, key)
    await simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    assert(await bot.end(signal) < 5_000)
    assert.equal((await answer).status, 200)
    assert.equal(await isTaken(bot.port), false)
    assert.deepEqual(await readdir(bot.folder), ['data'])
  }
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

  test('leave nothing in the temporary folder of the system, and those of fifty clients at once, 8 MB each, take little memory', async () => {
    const bot = await checkout.start({ WEBHOOK_API_KEY: 'k' })
    await bot.ready()
    assert.equal(await upload(bot, 'wrong', 100_000), 401)
    assert.equal(await upload(bot, 'k', 100_000), 200)
    assert.deepEqual(await readdir(bot.temporary), [])
    const peak = async (): Promise<number> =>
      Number(/VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${bot.child.pid ?? 0}/status`, 'utf8').catch(() => 'VmHWM: 0'))?.[1]) / 1024
    const before = await peak()
    const statuses = await Promise.all(Array.from({ length: 50 }, () => upload(bot, 'k', 8_000_000)))
    assert(statuses.every(status => status === 200), statuses.join())
    const grown = await peak() - before
    assert(grown < 150, `${grown} MiB more than before, for 400 MB of uploads`)
  })
})

describe('with ONEBOT_REVERSE_PATH', () => {
  const token = 'token-of-the-platform'
  const env = { ONEBOT_REVERSE_PATH: '/onebot', ONEBOT_SELF_ID: '20000', ONEBOT_TOKEN: token, WEBHOOK_API_KEY: 'k' }
  const oneBot = { 'X-Self-ID': '20000', 'X-Client-Role': 'Universal' }

  test('that begins without a slash, OneBot dials at the same path', async t => {
    const bot = await checkout.start({ ...env, ONEBOT_REVERSE_PATH: 'onebot' })
    await bot.listening()
    const url = `ws://127.0.0.1:${bot.port}/onebot`
    const dialling = await Simulator.start({ selfId: '20000', reverse: { url, token, redialInterval: 100 } })
    t.after(() => dialling.close())
    await bot.ready()
  })

  test('a OneBot dials, if it gives the token', async t => {
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

  test('but no ONEBOT_TOKEN the start ends with one line', async () => {
    const bot = await checkout.start({ ...env, ONEBOT_TOKEN: ' ' })
    assert.equal(await bot.exit(), 1)
    assert.match(bot.log, /\[E\] bot beside ONEBOT_REVERSE_PATH, set ONEBOT_TOKEN/)
    assert(!bot.log.includes('    at '))
  })
})
