import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { end, freePort } from '../../support/process'
import { until } from '../../support/until'

const command = resolve(__dirname, '../../../lib/relay.js')
/** How long a start may take on a busy machine, in milliseconds. */
const patience = 60_000
let folder: string
before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'relay-demo-')))
})
after(() => rm(folder, { recursive: true, maxRetries: 5 }))

/** Runs `relay demo` in the folder. @returns the process, and what it has printed so far */
function run(variables: Record<string, string>): { child: ChildProcess, output: () => string } {
  const child = spawn(process.execPath, [command, 'demo'], { cwd: folder, env: { PATH: process.env.PATH, LANG: 'zh_CN.UTF-8', ...variables } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => output += text)
  return { child, output: () => output }
}

test('relay demo starts all that is needed for a first message, in a folder of its own and for this machine only', async t => {
  const [port, simulator, console] = [String(await freePort()), String(await freePort()), String(await freePort())]
  const { child, output } = run({ WEBHOOK_PORT: port, SIMULATOR_PORT: simulator, CONSOLE_PORT: console, WEBHOOK_HOST: '0.0.0.0', CONSOLE_HOST: '0.0.0.0' })
  t.after(() => end(child, 'SIGKILL'))
  await until(output, () => output().includes('按 Ctrl+C 结束'), patience)
  const [, key = '', address = ''] = /curl -H "Authorization: Bearer ([0-9a-f-]+)" -d "Hello" (http:\S+)$/m.exec(output()) ?? []
  assert.equal(address, `http://127.0.0.1:${port}/send/group:123456`)
  const answer = await fetch(address, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body: 'Hello from the demo' })
  assert.equal(answer.status, 200, await answer.text())
  const chats = `http://127.0.0.1:${simulator}/simulator/`
  assert.match(await (await fetch(new URL('api/state', chats))).text(), /Hello from the demo/)
  for (const page of [chats, `http://127.0.0.1:${console}/message-relay`]) {
    assert(output().includes(`   ${page}\n`), output())
    assert.equal((await fetch(page)).status, 200)
  }
  for (const each of [port, simulator, console]) {
    const other = createServer()
    await new Promise<void>((resolve, reject) => void other.once('error', reject).listen(Number(each), '127.0.0.2', resolve))
    other.close()
  }
  assert.deepEqual(await readdir(folder), ['message-relay-demo'])

  const second = run({ WEBHOOK_PORT: port, LANG: 'C' })
  t.after(() => end(second.child, 'SIGKILL'))
  await until(second.output, () => second.child.exitCode !== null, patience)
  assert.equal(second.child.exitCode, 64)
  assert.equal(second.output(), `relay: cannot listen on port ${port} (EADDRINUSE): set WEBHOOK_PORT to another one\n`)

  await end(child, 'SIGINT')
  assert.equal(child.exitCode, 0)
})
