import assert from 'node:assert/strict'
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { Client, record, start } from './support'

const cli = join(__dirname, '../../simulator/cli.ts')

class Program {
  stdout = ''
  stderr = ''
  readonly exit: Promise<unknown[]>
  private readonly lines: AsyncIterator<string>

  constructor(readonly child: ChildProcessByStdio<null, Readable, Readable>) {
    this.exit = once(child, 'close')
    child.stdout.on('data', (chunk: Buffer) => this.stdout += chunk.toString())
    child.stderr.on('data', (chunk: Buffer) => this.stderr += chunk.toString())
    this.lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  }

  async line(): Promise<string> {
    const next = await this.lines.next()
    assert(next.done !== true, `ended early: ${this.stderr}`)
    return next.value
  }
}

function run(t: TestContext, ...args: string[]): Program {
  const child = spawn(process.execPath, ['--import', 'tsx', cli, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))
  return new Program(child)
}

test('serves until SIGINT, then ends cleanly', async t => {
  const program = run(t, '--port', '0', '--json', '--token', 'abc', '--self-id', '77', '--profile', 'llbot', '--no-history', '--any-target')
  const { endpoint, pageUrl, port } = record(JSON.parse(await program.line()))
  assert.equal(endpoint, `ws://127.0.0.1:${String(port)}`)
  assert.equal((await fetch(String(pageUrl))).status, 200)
  const client = await Client.connect(t, `${endpoint}/?access_token=abc`)
  assert.equal(record((await client.call('get_login_info')).data).user_id, 77)
  assert.equal(record((await client.call('get_version_info')).data).app_name, 'LLOneBot')
  assert.equal((await client.call('get_group_msg_history', { group_id: 123456 })).retcode, 1404)
  await client.send('999', 'a')
  program.child.kill('SIGINT')
  assert.deepEqual(await program.exit, [0, null])
  await client.closed
  assert.equal(program.stderr, '')
  assert.equal(program.stdout.split('\n').length, 2)
})

test('prints addresses, messages without control characters, what is refused and what is switched on, until SIGTERM', async t => {
  const program = run(t, '--port', '0', '--string')
  const endpoint = /ws:\S+/.exec(await program.line())?.[0] ?? ''
  const page = /http:\S+\/simulator\/$/.exec(await program.line())?.[0] ?? ''
  const client = await Client.connect(t, endpoint)
  assert.match(await program.line(), /bots connected .*: 1$/)
  await client.send('123456', 'a\n\u001b[31mb')
  assert.equal(await program.line(), '[group 123456] 模拟机器人: a &#91;31mb')
  assert.equal((await client.call('send_group_msg', { group_id: 999, message: 'a' })).retcode, 1200)
  assert.match(await program.line(), /^\[group 999\] refused .*: 1200 EventChecker Failed.*"result": 110/)
  await fetch(`${page}api/switch`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name: 'slow', on: true, type: 'group', chat: '123456' }),
  })
  assert.match(await program.line(), /^switched on .*: slow \(group 123456\)$/)
  program.child.kill('SIGTERM')
  assert.deepEqual(await program.exit, [0, null])
})

test('a taken port or a wrong option is one line and exit code 1', async t => {
  const simulator = await start(t)
  await Promise.all(([
    [['--port', String(simulator.port)], new RegExp(`port ${simulator.port} is taken: .*端口 ${simulator.port} 已被占用`)], [['--profile', 'qq'], /--profile must be/], [['--unknown'], /--unknown/],
  ] as const).map(async ([args, message]) => {
    const program = run(t, ...args)
    assert.deepEqual(await program.exit, [1, null])
    assert.match(program.stderr, message)
    assert.match(program.stderr, /^simulator: .*\n$/)
    assert.equal(program.stdout, '')
  }))
})
