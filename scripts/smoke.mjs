// Packs the package, installs the tarball into a fresh Koishi app beside a server and an adapter, starts the app as its users do
// and sends a message through it. The app's folder is a temporary one and is removed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { manifest, pack, repository, run } from './pack.mjs'

const { name, devDependencies } = manifest
const folder = await mkdtemp(join(tmpdir(), 'relay-smoke-'))
const children = []

try {
  // Before the simulator is started, because packing builds it anew.
  const tarball = pack(folder)
  const port = await freePort()
  const simulator = start(process.execPath, [join(repository, 'dist/simulator/cli.js'), '--json', '--quiet', '--port', '0'], { cwd: folder })
  const { endpoint, pageUrl } = JSON.parse(await firstLine(simulator))

  await writeFile(join(folder, 'package.json'), JSON.stringify({
    name: 'smoke',
    private: true,
    dependencies: {
      'koishi': devDependencies.koishi,
      '@koishijs/plugin-server': devDependencies['@koishijs/plugin-server'],
      '@koishijs/plugin-adapter-onebot': devDependencies['@koishijs/plugin-adapter-onebot'],
      [name]: `file:${tarball}`,
    },
  }))
  await writeFile(join(folder, 'koishi.yml'), [
    'plugins:',
    '  server:',
    `    port: ${port}`,
    '  adapter-onebot:',
    '    protocol: ws',
    `    endpoint: ${endpoint}`,
    '    selfId: "10000"',
    '  message-relay: {}',
    '',
  ].join('\n'))
  run('npm', ['install', '--silent', '--no-audit', '--no-fund'], folder)

  start(process.execPath, [join(folder, 'node_modules/koishi/bin.js'), 'start'], { cwd: folder, stdio: 'inherit' })
  const post = async (path, content) => {
    const key = (await readFile(join(folder, 'data/api-key'), 'utf8')).trim()
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { 'x-api-key': key },
      body: JSON.stringify(content),
    })
    const body = await response.json()
    if (response.status !== 200) throw new Error(JSON.stringify(body))
    return body
  }
  const answer = await eventually(() => post('/webhook', { group_id: '123456', msg: 'hello from the packed plugin' }))
  // Templates and their engine are packed as files and as a package of their own.
  await post('/hooks/message/group:123456', { title: 'hello from a template', message: 'of the packed plugin' })
  const state = await (await fetch(new URL('api/state', pageUrl))).text()
  for (const text of ['hello from the packed plugin', 'hello from a template']) {
    if (!state.includes(text)) throw new Error(`"${text}" has not arrived`)
  }
  console.log(`smoke test passed: ${JSON.stringify(answer)}`)
} finally {
  // Each child leads a group of its own, because "koishi start" forks a worker.
  for (const child of children) if (child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
  await rm(folder, { recursive: true, force: true })
}

function start(command, args, options) {
  const child = spawn(command, args, { detached: true, stdio: ['ignore', 'pipe', 'inherit'], ...options })
  children.push(child)
  return child
}

async function firstLine(child) {
  const [line] = await once(createInterface(child.stdout), 'line')
  return line
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}

async function eventually(attempt) {
  const end = Date.now() + 60_000
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (Date.now() > end) throw error
      await delay(100)
    }
  }
}
