import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { before, beforeEach, describe, test } from 'node:test'
import { freePort } from '../../support/process'
import { apiKey } from '../../support/relay'
import { until } from '../../support/until'
import { group, useStored } from '../deliveries/support'
import { bundled, run, type Ended } from './support'

describe('relay run', { timeout: 120_000 }, () => {
  const relay = useStored({ config: { language: 'en-US', targets: { ops: `group:${group}` } } })
  let file: string
  let ping: string
  before(async () => {
    file = await bundled('relay')
  })
  beforeEach(async () => {
    await relay.ask('/beats/job', 'DELETE')
    ping = relay.url + String((await relay.ask('/beats/job', 'PUT', { every: '1d', grace: '1h', to: 'ops' })).data.ping)
  })

  const node = (code: string): string[] => ['--', process.execPath, '-e', code]
  const job = (args: readonly string[], env: Record<string, string> = {}): Promise<Ended> =>
    run(file, ['run', 'job', ...args], { RELAY_URL: relay.url, RELAY_KEY: apiKey, PATH: process.env.PATH ?? '', ...env }, 'from stdin')
  const beat = async (): Promise<Record<string, unknown>> => (await relay.ask('/beats/job')).data

  test('passes input, output and exit status through, and tells of a failure with the end of its output', async () => {
    const ended = await job(node('process.stdin.pipe(process.stdout); process.stdin.on("end", () => { console.error("disk full"); process.exitCode = 3 })'))
    assert.deepEqual(ended, { code: 3, stdout: 'from stdin', stderr: 'disk full\n' })
    await until('it is told', () => relay.texts().length === 1)
    assert.match(relay.texts().join(), /^job failed: exit status 3, took \d+ s\nfrom stdindisk full$/)
    assert.deepEqual(await job(node('')), { code: 0, stdout: '', stderr: '' })
    const { state, duration, status } = await beat()
    assert.deepEqual([state, status, typeof duration], ['up', 0, 'number'])
  })

  test('passes 50 MB through unchanged, and keeps the end', async () => {
    const child = spawn(process.execPath, [file, 'run', '--ping', ping, ...node('let n = 0; const write = () => { while (n < 5e6) if (!process.stdout.write(String(n++).padStart(9, "0") + "\\n")) return process.stdout.once("drain", write) }; write()')])
    const [hash, expected] = [createHash('sha256'), createHash('sha256')]
    let size = 0
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length
      hash.update(chunk)
    })
    await once(child, 'close')
    for (let line = 0; line < 5e6; line++) expected.update(`${String(line).padStart(9, '0')}\n`)
    assert.deepEqual([child.exitCode, size, hash.digest('hex')], [0, 5e7, expected.digest('hex')])
    const log = String((await beat()).log)
    assert.deepEqual([log.length, log.slice(-10)], [10_000, '004999999\n'])
  })

  test('passes signals on, and the death by one', async () => {
    for (const [signal, status] of [['SIGTERM', 143], ['SIGINT', 130], ['SIGKILL', 137]] as const) {
      const child = spawn(process.execPath, [file, 'run', '--ping', ping, ...node('console.log(process.pid); setInterval(() => {}, 1e6)')])
      const pid = await new Promise<string>(resolve => child.stdout.setEncoding('utf8').once('data', resolve))
      await until('it is known', async () => (await beat()).state === 'started')
      // It is hanging, and somebody ends it.
      if (signal === 'SIGKILL') process.kill(Number(pid), signal)
      else child.kill(signal)
      await once(child, 'close')
      assert.deepEqual([child.exitCode, (await beat()).status], [status, status])
      await relay.ask('/beats/job', 'POST')
    }
  })

  test('runs the command all the same without the relay, and where it is not understood', async () => {
    const print = node('console.log("done")')
    const closed = `http://127.0.0.1:${await freePort()}`
    const away = await job(print, { RELAY_URL: closed })
    assert.deepEqual([away.code, away.stdout], [0, 'done\n'])
    assert.match(away.stderr, /^relay: the relay was not told of the start: .*ECONNREFUSED.*\n.* of the exit status 0: .*\n$/)
    const refused = await job(print, { RELAY_KEY: 'wrong' })
    assert.deepEqual([refused.code, refused.stdout], [0, 'done\n'])
    assert.match(refused.stderr, /not told of the exit status 0: 401 /)
    const unset = await job(print, { RELAY_URL: '' })
    assert.deepEqual(unset, { code: 0, stdout: 'done\n', stderr: 'relay: nobody is told of this run: no address of a relay: set RELAY_URL, or use --url\n' })
    assert.equal((await beat()).state, 'new')
  })

  test('tells that there is no such command', async () => {
    const { code, stderr } = await job(['--', 'no-such-command'])
    assert.deepEqual([code, stderr], [127, 'relay: cannot run no-such-command (ENOENT)\n'])
    assert.deepEqual([(await beat()).status, (await beat()).log], [127, 'cannot run no-such-command (ENOENT)'])
    for (const args of [['run'], ['run', 'job'], ['run', 'job', 'true'], ['run', '--', 'true'], ['run', 'job', '--ping', ping, '--', 'true'], ['tail', '--ping', ping]]) {
      assert.equal((await run(file, args, {})).code, 64, args.join(' '))
    }
  })

  test('says in a Chinese locale what was not reported', async () => {
    const { stderr } = await job(['--', 'no-such-command'], { RELAY_KEY: 'wrong', LANG: 'zh_CN.UTF-8' })
    assert.match(stderr, /^relay: 无法运行 no-such-command（ENOENT）$/m)
    assert.match(stderr, /^relay: 没能上报退出码 127：401 没有 API 密钥或密钥不正确/m)
  })

  test('tells the command by a broken pipe that nobody reads its output any more', async () => {
    const child = spawn('sh', ['-c', `"${process.execPath}" "${file}" run --ping "${ping}" -- yes | head -n 1`])
    await once(child, 'close')
    await until('it has ended', async () => (await beat()).state === 'down')
  })
})
