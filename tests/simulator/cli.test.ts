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
  readonly lines: AsyncIterator<string>

  constructor(readonly child: ChildProcessByStdio<null, Readable, Readable>) {
    this.exit = once(child, 'close')
    child.stdout.on('data', (chunk: Buffer) => {
      this.stdout += chunk.toString()
    })
    child.stderr.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString()
    })
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

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`serves until ${signal}, then ends cleanly`, async t => {
    const program = run(t, '--port', '0', '--json', '--token', 'abc', '--self-id', '77', '--profile', 'llbot', '--string', '--no-history')
    const { endpoint, pageUrl, port } = record(JSON.parse(await program.line()))
    assert.equal(endpoint, `ws://127.0.0.1:${String(port)}`)
    assert.equal((await fetch(String(pageUrl))).status, 200)
    const client = await Client.connect(t, `${endpoint}/?access_token=abc`)
    assert.equal(record((await client.call('get_login_info')).data).user_id, 77)
    assert.equal(record((await client.call('get_version_info')).data).app_name, 'LLOneBot')
    assert.equal((await client.call('get_group_msg_history', { group_id: 123456 })).retcode, 1404)
    program.child.kill(signal)
    assert.deepEqual(await program.exit, [0, null])
    await client.closed
    assert.equal(program.stderr, '')
    assert.equal(program.stdout.split('\n').length, 2)
  })
}

test('tells what is refused and what is switched on; --any-target refuses nobody', async t => {
  const strict = run(t, '--port', '0')
  const endpoint = /ws:\S+/.exec(await strict.line())?.[0] ?? ''
  const page = /http:\S+/.exec(await strict.line())?.[0] ?? ''
  const client = await Client.connect(t, endpoint)
  assert.match(await strict.line(), /bots connected .*: 1$/)
  assert.equal((await client.call('send_group_msg', { group_id: 999, message: 'a' })).retcode, 1200)
  assert.match(await strict.line(), /^\[group 999\] refused .*: 1200 EventChecker Failed.*"result": 110/)
  await fetch(`${page}api/switch`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name: 'slow', on: true, type: 'group', chat: '123456' }),
  })
  assert.match(await strict.line(), /^switched on .*: slow \(group 123456\)$/)
  const open = run(t, '--port', '0', '--json', '--any-target')
  const other = await Client.connect(t, String(record(JSON.parse(await open.line())).endpoint))
  assert.equal((await other.call('send_group_msg', { group_id: 999, message: 'a' })).retcode, 0)
})

test('prints addresses and messages, without control characters', async t => {
  const program = run(t, '--port', '0')
  const endpoint = /ws:\S+/.exec(await program.line())?.[0] ?? ''
  assert.match(await program.line(), /http:\S+\/simulator\/$/)
  const client = await Client.connect(t, endpoint)
  assert.match(await program.line(), /: 1$/)
  await client.call('send_group_msg', { group_id: 123456, message: 'a\n\u001b[31mb' })
  assert.equal(await program.line(), '[group 123456] 模拟机器人: a &#91;31mb')
  program.child.kill('SIGTERM')
  await program.exit
})

test('explains itself in English and Chinese', async t => {
  const program = run(t, '--help')
  assert.deepEqual(await program.exit, [0, null])
  assert.match(program.stdout, /for the development of bots.*供开发机器人时使用.*--no-shared-disk/s)
})

test('a taken port is one line and exit code 1', async t => {
  const simulator = await start(t)
  const program = run(t, '--port', String(simulator.port))
  assert.deepEqual(await program.exit, [1, null])
  assert.match(program.stderr, /^simulator: the port is taken .*EADDRINUSE.*\n$/)
  assert.equal(program.stdout, '')
})

for (const [args, message] of [
  [['--port', '99999'], /--port must be/],
  [['--port', '0x50'], /--port must be/],
  [['--profile', 'qq'], /--profile must be/],
  [['--self-id', 'me'], /selfId must be/],
  [['--reverse', 'ws://example.com/'], /reverse address must be/],
  [['--unknown'], /--unknown/],
] as const) {
  test(`a wrong option is one line and exit code 1: ${args.join(' ')}`, async t => {
    const program = run(t, ...args)
    assert.deepEqual(await program.exit, [1, null])
    assert.match(program.stderr, message)
    assert.equal(program.stderr.trimEnd().split('\n').length, 1)
  })
}
