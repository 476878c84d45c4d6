// Measures the relay beside other tools: `npm run bench:peers [-- --quick]`. It needs the Debian packages apprise and
// prometheus-alertmanager, and goes to 127.0.0.1 only.
import { setTimeout as sleep } from 'node:timers/promises'
import { endAll } from '../lib/child'
import { describeMachine } from '../lib/machine'
import { Stage } from '../lib/stage'
import { median, quantile } from '../lib/statistics'
import { findPeers, type Peer, type Running } from './peers'
import { killAll } from './processes'
import { Sink } from './sink'

const isQuick = process.argv.includes('--quick')
/** In milliseconds. */
const time = isQuick ? { warmUp: 300, window: 1_000, traffic: 500 } : { warmUp: 1_000, window: 2_500, traffic: 2_000 }
/** How often each peer is measured, in turns, so that other load on the machine affects all. */
const rounds = isQuick ? 1 : 3
/** How many messages are under way at a time. */
const connections = 10
/** How long the platform takes to answer while the kill is measured, in milliseconds: a real one takes about that. */
const platformTime = 50
/** How long a message may take to arrive, in milliseconds. */
const patience = 30_000
/** How long nothing may arrive after a restart until nothing is expected any more, in milliseconds. */
const quiet = 4_000

let lastId = 0

/** In milliseconds and MiB. */
interface Figures {
  start: number
  rate: number
  median: number
  p99: number
  memory: number
}

/** What became of messages around a kill. */
interface Kill {
  answered: number
  lost: number
  doubled: number
}

/** @returns the time from the call to the arrival, in milliseconds */
async function deliver(running: Running, sink: Sink, lane: number): Promise<number> {
  const id = ++lastId
  const arrival = sink.arrival(id)
  const called = performance.now()
  if (!await running.send(id, lane)) throw new Error('a message was refused')
  const arrived = await Promise.race([arrival, sleep(patience, undefined, { ref: false })])
  if (arrived === undefined) throw new Error('a message did not arrive')
  return arrived - called
}

/** Starts a peer, and sends as fast as messages arrive: each connection sends its next one when its last one has arrived. */
async function measure(peer: Peer, sink: Sink, folder: string): Promise<Figures> {
  const started = performance.now()
  const running = await peer.start(sink, folder)
  await deliver(running, sink, 0)
  const start = performance.now() - started
  const from = performance.now() + time.warmUp
  const until = from + time.window
  const times: number[] = []
  let last = from
  await Promise.all(Array.from({ length: peer.lanes ?? connections }, async (_, lane) => {
    while (performance.now() < until) {
      const latency = await deliver(running, sink, lane)
      last = performance.now()
      if (last >= from) times.push(latency)
    }
  }))
  const memory = await running.memory()
  await running.kill()
  return { start, rate: times.length / (last - from) * 1000, median: quantile(times, 0.5), p99: quantile(times, 0.99), memory }
}

/** Kills a peer under traffic, starts it again, and waits for what still arrives. */
async function measureKill(peer: Peer, sink: Sink, folder: string): Promise<Kill> {
  let running = await peer.start(sink, folder)
  if (!peer.isOnlyKilled) await deliver(running, sink, 0)
  sink.delay = platformTime
  const first = lastId
  const answered: number[] = []
  let isKilled = false
  const senders = Array.from({ length: peer.lanes ?? connections }, async (_, lane) => {
    while (!isKilled) {
      const id = ++lastId
      if (await running.send(id, lane)) answered.push(id)
    }
  })
  await sleep(time.traffic)
  isKilled = true
  await running.kill()
  await Promise.all(senders)
  sink.delay = 0
  running = await peer.start(sink, folder)
  const missing = (): number => answered.filter(id => sink.count(id) === 0).length
  for (let before = missing(), since = performance.now(); before > 0 && performance.now() - since < (peer.quiet ?? quiet);) {
    await sleep(100)
    const now = missing()
    if (now < before) since = performance.now()
    before = now
  }
  await running.kill()
  const all = Array.from({ length: lastId - first }, (_, index) => first + 1 + index)
  return { answered: answered.length, lost: missing(), doubled: all.filter(id => sink.count(id) > 1).length }
}

/** @param figures of all rounds, of which the medians count */
function render({ name }: Peer, figures: readonly Figures[], { answered, lost, doubled }: Kill): string {
  const show = (read: (each: Figures) => number): string =>
    median(figures.map(read)).toLocaleString('en-US', { maximumSignificantDigits: 3 })
  const cells = figures.length > 0
    ? [`${show(({ rate }) => rate)} /s`, `${show(({ median }) => median)} ms`, `${show(({ p99 }) => p99)} ms`,
        `${show(({ memory }) => memory)} MB`, `${show(({ start }) => start / 1000)} s`]
    : ['–', '–', '–', '–', '–']
  const kill = `${lost.toLocaleString('en-US')} of ${answered.toLocaleString('en-US')}${doubled > 0 ? `, ${doubled} twice` : ''}`
  return `| ${[name, ...cells, kill].join(' | ')} |`
}

/** A peer that fails does not stop the others. */
async function attempt({ name }: Peer, sink: Sink, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    process.exitCode = 1
    process.stderr.write(`${name} went wrong: ${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
  } finally {
    sink.delay = 0
    await killAll()
    await endAll()
  }
}

async function run(): Promise<void> {
  const stage = await Stage.create([])
  const sink = await Sink.start()
  const endEverything = async (): Promise<void> => {
    await killAll()
    await endAll()
    await stage.remove()
  }
  const interrupt = (): void => {
    void endEverything().finally(() => process.exit(130))
  }
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  try {
    process.stdout.write(`${await describeMachine()}\n\n`)
    process.stdout.write('| peer | messages | p50 | p99 | memory | start | answered, then lost in a SIGKILL |\n| --- | --- | --- | --- | --- | --- | --- |\n')
    const peers = findPeers(stage)
    const figures = new Map(peers.map((peer): [Peer, Figures[]] => [peer, []]))
    for (let round = 0; round < rounds; round++) {
      for (const peer of peers.filter(({ isOnlyKilled }) => !isOnlyKilled)) {
        await attempt(peer, sink, async () => figures.get(peer)?.push(await measure(peer, sink, await stage.newFolder())))
      }
    }
    for (const peer of peers) {
      await attempt(peer, sink, async () => {
        const kill = await measureKill(peer, sink, await stage.newFolder())
        process.stdout.write(`${render(peer, figures.get(peer) ?? [], kill)}\n`)
      })
    }
  } finally {
    await endEverything()
    await sink.close()
  }
}

run().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
  process.exitCode = 1
})
