// Incidents on the core in simulated time: random events, people, faults and rules, each schedule from its seed alone. Long form:
// `npm run test:incidents -- [--schedules 20000] [--seed 1]`.
import { parseArgs } from 'node:util'
import type { Action } from '../../src/incidents/incident'
import type { Step } from '../../src/message/model'
import type { Delivery } from '../../src/relay/delivery/delivery'
import { Random } from '../faults/random'
import { chat, fates } from '../support/core'
import { IncidentCore, other, person } from '../support/incidents'

/** What a minute is in these schedules, in milliseconds: a look each second is most of their work. */
const unit = 12_000
/** How long faults and people act, and how long the relay then has to catch up, in milliseconds. */
const busy = 90 * unit
const calm = 60 * unit
/** How late a step may be, in milliseconds: a look each second, a slow flush, and a clock that was set by two seconds. */
const slack = 8_000

const from = { bot: { platform: 'onebot', selfId: '1' }, target: chat }

interface Happened {
  /** When the relay was down. */
  outages: { from: number, until: number }[]
}

/** Runs one schedule. @returns what it found wrong */
export async function tryIncidents(seed: number): Promise<string[]> {
  const random = new Random(seed)
  const escalate = stepsOf(random)
  const world = await IncidentCore.ready({ escalate, ...random.chance(0.3) && { remind: 20 * unit } })
  const { core } = world
  const happened: Happened = { outages: [] }
  const threads = ['db', 'web'].slice(0, random.between(1, 2))
  const start = core.clock.wall()
  let seen = 0
  while (core.clock.wall() < start + busy) {
    await core.run(random.between(0, 6 * unit))
    core.storage.flushTakes = random.chance(0.5) ? 0 : random.between(1, 400)
    await act(random, world, threads, ++seen, happened)
  }
  core.storage.flushTakes = 0
  core.port.online = true
  core.port.fates.length = 0
  await core.run(calm)
  return judge(world, escalate, happened)
}

function stepsOf(random: Random): Step[] {
  let after = 0
  const steps = Array.from({ length: random.between(1, 3) }, (): Step => {
    after += random.between(1, 12) * unit
    return { after, mention: random.chance(0.5) ? ['oncall'] : [], ...random.chance(0.2) && { to: 'private:7' } }
  })
  return steps.map((step, index) => index === steps.length - 1 && random.chance(0.3) ? { ...step, again: 10 * unit } : step)
}

async function act(random: Random, world: IncidentCore, threads: string[], count: number, { outages }: Happened): Promise<void> {
  const { core } = world
  const thread = random.pick(threads)
  const people = async (...actions: Action[]): Promise<void> => {
    const incident = world.all.find(each => each.thread === thread && each.state !== 'resolved')
    if (!incident) return
    const until = core.clock.wall() + random.between(1, 15) * unit
    // A kill may cut them short: then they say it again, or nobody has.
    for (const [index, action] of actions.entries()) {
      void world.incidents.act(incident.id, action, index === 0 ? person : other, { until, from }).catch(() => undefined)
    }
    await core.run(1_000)
  }
  const stop = async (isCut: boolean): Promise<void> => {
    const at = core.clock.wall()
    await world.down(isCut, random.chance(0.5) ? 0 : random.between(1, 20) * unit)
    outages.push({ from: at, until: core.clock.wall() })
  }
  /** Kills the process right after one of the next commits. */
  const killSoon = async (): Promise<void> => {
    const at = core.clock.wall()
    core.killAt = core.storage.folder.end + random.between(1, 4)
    await core.run(random.between(1, 3) * unit)
    core.killAt = Infinity
    await world.restart()
    outages.push({ from: at, until: core.clock.wall() })
  }
  await random.weighted<() => Promise<unknown>>([
    [6, () => world.event(`event ${count}`, { thread, severity: random.pick(['critical', 'warning']), begunAt: `${random.between(1, 3)}` })],
    [2, () => world.event(`over ${count}`, { thread, severity: 'ok' })],
    [2, () => people('take')],
    [1, () => people('take', 'take')],
    [2, () => people(random.pick(['silence', 'release', 'resolve']))],
    [2, () => stop(false)],
    [2, () => stop(true)],
    [3, () => killSoon()],
    [1, () => Promise.resolve(core.port.fates.push(random.pick([fates.muted, fates.refused, fates.lost, fates.silent])))],
    [1, () => Promise.resolve(Object.assign(core.port, { online: random.chance(0.5) }))],
    [1, () => {
      core.clock.step(random.between(-2, 2) * 1_000)
      return core.run()
    }],
  ])()
}

function judge({ all, core, texts }: IncidentCore, escalate: readonly Step[], { outages }: Happened): string[] {
  const problems: string[] = []
  const open = new Map<string, number>()
  for (const each of all) {
    if (each.state === 'resolved') continue
    const count = (open.get(each.thread) ?? 0) + 1
    open.set(each.thread, count)
    if (count > 1) problems.push(`thread ${each.thread} has ${count} unresolved incidents`)
  }
  for (const incident of all) {
    const { id, timeline } = incident
    const steps = core.rows.filter(row => row.door === 'incidents' && isStep(row, id))
    const arrived = texts.filter(text => text.includes(`没有人认领（${id}）`)).length
    if (arrived > steps.length) problems.push(`${id}: ${arrived} messages of ${steps.length} steps arrived`)
    for (const [index, entry] of timeline.entries()) {
      const isBegun = entry.kind === 'opened' || (['released', 'woken'].includes(entry.kind) && stateAt(timeline, index) === 'open')
      if (!isBegun) continue
      const next = timeline.slice(index + 1).find(({ kind }) => ['taken', 'silenced', 'resolved'].includes(kind))
      const end = next?.at ?? core.clock.wall()
      const within = steps.filter(({ createdAt }) => createdAt >= entry.at && createdAt < end)
      const made = timeline.filter(({ kind, at }) => kind === 'escalated' && at >= entry.at && at <= end)
      for (const [place, { after }] of escalate.entries()) {
        const isOver = seenBy(entry.at + after, outages) + slack > Math.min(end, entry.at + (escalate[place + 1]?.after ?? Infinity))
        if (!isOver && !made.some(({ step }) => step === place)) problems.push(`${id}: step ${place} is missing between ${entry.at} and ${end}`)
      }
      // One may leave in the moment in which somebody takes it.
      if (within.length > made.length + (next ? 1 : 0)) problems.push(`${id}: ${within.length} steps left of ${made.length}`)
    }
    for (const { createdAt } of steps) {
      const before = timeline.findLastIndex(({ at }) => at < createdAt)
      const state = stateAt(timeline, before)
      // The clock was set back by up to two seconds.
      const isNear = timeline.some(({ at }) => Math.abs(at - createdAt) <= 4_000)
      if (state !== 'open' && !isNear) problems.push(`${id}: a step at ${createdAt} although it was ${state}`)
    }
  }
  return problems
}

function isStep({ summary }: Delivery, id: string): boolean {
  return summary.items.some(item => JSON.stringify(item).includes(`没有人认领（${id}）`))
}

/** The state after an entry of a timeline. */
function stateAt(timeline: readonly { kind: string }[], index: number): string {
  let [state, owned] = ['open', false]
  for (const { kind } of timeline.slice(0, index + 1)) {
    if (kind === 'taken') [state, owned] = ['taken', true]
    else if (kind === 'silenced' || kind === 'resolved') state = kind
    else if (kind === 'woken') state = owned ? 'taken' : 'open'
    else if (kind === 'released') {
      owned &&= state === 'silenced'
      state = owned ? 'taken' : 'open'
    }
  }
  return state
}

/** When the relay could first see what was due at a time. */
function seenBy(at: number, outages: Happened['outages']): number {
  return outages.reduce((time, outage) => time + slack >= outage.from && time < outage.until ? outage.until : time, at)
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { schedules: { type: 'string', default: '20000' }, seed: { type: 'string', default: '1' } } })
  const [first, schedules] = [Number(values.seed), Number(values.schedules)]
  let failed = 0
  for (let seed = first; seed < first + schedules; seed++) {
    const problems = await tryIncidents(seed)
    if (problems.length > 0) console.log(`seed ${seed} failed: ${problems.join('; ')}`)
    failed += problems.length > 0 ? 1 : 0
    if ((seed - first + 1) % 1_000 === 0) console.log(`${seed - first + 1} schedules, ${failed} failed`)
  }
  console.log(`${schedules} schedules: ${failed === 0 ? 'nothing was found' : `${failed} failed`}`)
  process.exitCode = failed > 0 ? 1 : 0
}

if (require.main === module) void main()
