import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from '../../tests/support/process'
import { apiKey } from '../lib/apps'
import type { Child } from '../lib/child'
import type { Stage } from '../lib/stage'
import { numberOf } from '../lib/values'
import { kill, memoryOf, post, startProgram } from './processes'
import { textOf, type Sink } from './sink'

/** A peer that runs. */
export interface Running {
  /**
   * Hands a message over.
   *
   * @param lane the connection, from 0 on; each has a chat of its own
   * @returns whether the peer said that it has the message
   */
  send(id: number, lane: number): Promise<boolean>
  /** In MiB. */
  memory(): Promise<number>
  /** Ends it by SIGKILL. */
  kill(): Promise<void>
}

/** Another program that passes messages on. */
export interface Peer {
  /** With its version, unless the description of the machine has that. */
  name: string
  /** Starts it, or starts it again in the same folder. */
  start(sink: Sink, folder: string): Promise<Running>
  /** Messages that it takes at a time, if that is not the number of connections. */
  lanes?: number
  /** How long nothing may arrive after a kill until nothing is expected any more, in milliseconds, if that is more than usual. */
  quiet?: number
  /** Whether only the kill is measured. */
  isOnlyKilled?: boolean
}

const python = '/usr/bin/python3'

function versionOf(command: string, parameters: readonly string[]): string {
  const text = execFileSync(command, parameters, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  return /\d+\.\d+\.\d+/.exec(text)?.[0] ?? 'unknown'
}

/** A Koishi app with the OneBot adapter: with the relay, or with a bare route. */
function koishi(stage: Stage, program: 'relay' | 'bare', path: string, headers: Record<string, string> = {}): Peer['start'] {
  return async (sink, folder) => {
    const child: Child = await stage.start(program)
    const port = numberOf(await child.ask('start', {
      endpoint: `ws://${sink.address}`,
      responseTimeout: 60_000,
      plugin: stage.plugin,
      config: { apiKey, uploadDir: join(folder, 'uploads'), dataDir: join(folder, 'data') },
    }), 'port')
    return {
      send: async (id, lane) => {
        const status = await post(`http://127.0.0.1:${port}${path}`, { group_id: String(200_001 + lane), msg: textOf(id) }, headers)
        return status === 200 || status === 202
      },
      memory: () => memoryOf(child.pid, 'VmRSS'),
      kill: async () => {
        if (child.pid > 0) process.kill(child.pid, 'SIGKILL')
        await child.end()
      },
    }
  }
}

/** A program with an HTTP interface of its own. */
async function serve(
  command: string, parameters: (port: number) => readonly string[], folder: string, ready: (url: string) => Promise<boolean>,
) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = startProgram(command, parameters(port), folder)
  child.stdout?.resume()
  for (const end = performance.now() + 20_000; !await ready(url);) {
    if (child.exitCode !== null || performance.now() > end) throw new Error(`${command} does not answer`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  return { url, running: { memory: () => memoryOf(child.pid ?? 0, 'VmRSS'), kill: () => kill(child) } }
}

/** @param grouping how it joins alerts, in the fields of its `route` */
const alertmanager = (grouping: { group_by: string[], group_wait: string }): Peer['start'] => async (sink, folder) => {
  const config = join(folder, 'alertmanager.yml')
  await writeFile(config, JSON.stringify({
    route: { receiver: 'sink', ...grouping, group_interval: '5m', repeat_interval: '4h' },
    receivers: [{ name: 'sink', webhook_configs: [{ url: `http://${sink.address}/`, send_resolved: false }] }],
  }))
  const { url, running } = await serve('prometheus-alertmanager', port => [
    `--config.file=${config}`, `--storage.path=${join(folder, 'data')}`, `--web.listen-address=127.0.0.1:${port}`, '--cluster.listen-address=',
    '--log.level=error',
  ], folder, url => fetch(`${url}/-/ready`).then(({ ok }) => ok, () => false))
  const send = async (id: number): Promise<boolean> => await post(`${url}/api/v2/alerts`, [
    { labels: { alertname: 'Build', build: String(id) }, annotations: { summary: textOf(id) } },
  ]) === 200
  return { ...running, send }
}

const naive: Peer['start'] = async (sink, folder) => {
  const { url, running } = await serve(
    python, port => [join(__dirname, 'naive.py'), String(port), `http://${sink.address}/`], folder, url => fetch(url).then(() => true, () => false),
  )
  return { ...running, send: async id => await post(url, { text: textOf(id) }) === 200 }
}

const appriseLoop: Peer['start'] = (sink, folder) => {
  const child = startProgram(python, [join(__dirname, 'loop.py'), `json://${sink.address}/`], folder)
  if (!child.stdout || !child.stdin) throw new Error('the loop has no pipes')
  const { stdin } = child
  stdin.on('error', () => undefined)
  const waiting: ((isSent: boolean) => void)[] = []
  createInterface(child.stdout).on('line', line => waiting.shift()?.(line === 'ok')).once('close', () => waiting.forEach(each => each(false)))
  return Promise.resolve({
    send: id => new Promise(resolve => {
      waiting.push(resolve)
      stdin.write(`${textOf(id)}\n`)
    }),
    memory: () => memoryOf(child.pid ?? 0, 'VmRSS'),
    kill: () => kill(child),
  })
}

/** One process for each message, as a script calls it. */
const appriseCommand: Peer['start'] = (sink, folder) => {
  let peak = 0
  const children = new Set<ReturnType<typeof startProgram>>()
  return Promise.resolve({
    send: async id => {
      const child = startProgram('apprise', ['-b', textOf(id), `json://${sink.address}/`], folder)
      children.add(child)
      child.stdout?.resume()
      const watch = setInterval(() => void memoryOf(child.pid ?? 0, 'VmHWM').then(figure => {
        peak = Math.max(peak, figure)
      }), 50)
      await once(child, 'exit')
      clearInterval(watch)
      children.delete(child)
      return child.exitCode === 0
    },
    memory: () => Promise.resolve(peak),
    kill: async () => {
      await Promise.all([...children].map(kill))
    },
  })
}

/** All peers that Debian and npm have. ntfy, Gotify and the Apprise API are not among them. */
export function findPeers(stage: Stage): Peer[] {
  const key = { 'x-api-key': apiKey }
  const alerts = versionOf('prometheus-alertmanager', ['--version'])
  const apprise = versionOf('apprise', ['--version'])
  return [
    { name: 'relay, `/webhook`', start: koishi(stage, 'relay', '/webhook', key) },
    { name: 'relay, accepted for later', start: koishi(stage, 'relay', '/webhook', { ...key, prefer: 'respond-async' }), quiet: 60_000 },
    { name: 'bare Koishi route', start: koishi(stage, 'bare', '/send') },
    // Its documents recommend groups, which wait. Without them each message leaves alone and at once, as with the others.
    { name: `Alertmanager ${alerts}, no groups`, start: alertmanager({ group_by: ['...'], group_wait: '0s' }) },
    { name: `Alertmanager ${alerts}, groups`, start: alertmanager({ group_by: ['alertname'], group_wait: '30s' }), quiet: 35_000, isOnlyKilled: true },
    { name: `Python ${versionOf(python, ['--version'])}, a script`, start: naive },
    { name: `Apprise ${apprise}, library in a loop`, start: appriseLoop, lanes: 1 },
    { name: `Apprise ${apprise}, command`, start: appriseCommand, lanes: 1 },
  ]
}
