import type { Outcome } from './group'
import type { Plan } from './plan'

/** The command that repeats the schedule of a seed. */
export function replayCommand({ seed, options: { kills, reloads } }: Plan): string {
  return `npm run test:processes -- --seed ${seed} --schedules 1${kills ? ' --kills' : ''}${reloads ? ' --reloads' : ''}`
}

/** A schedule that failed: how to repeat it, what was wrong, and what it was. */
export function describeFailure({ run, run: { plan, sends }, problems }: Outcome): string {
  const { seed, kind, targets, senders, faults, moments, databaseFaults } = plan
  return [
    `seed ${seed} failed; repeat it with: ${replayCommand(plan)}`,
    ...problems.map(problem => `  - ${problem}`),
    `  kind ${JSON.stringify(kind)}`,
    `  targets ${targets.map(target => `${target.kind}:${target.id}`).join(', ')}`,
    ...senders.map((requests, index) => `  sender ${index}: ${requests.map(request => JSON.stringify(request)).join(' ')}`),
    ...faults.map(fault => `  fault ${JSON.stringify(fault)}`),
    ...moments.map(moment => `  moment ${JSON.stringify(moment)}`),
    ...databaseFaults.map(fault => `  database ${JSON.stringify(fault)}`),
    '  calls, by the last digits of their time in milliseconds, and what was in the chats in the end:',
    ...sends.map(({ call, fault }) => `  call ${call.time % 1e6} ${JSON.stringify(call.params).slice(0, 160)} ${fault ? JSON.stringify(fault) : ''}`),
    ...run.ledger().map(({ seq, time, messageId, text, media }) => (
      `  there ${time % 1e6} ${seq}: ${text || media.map(({ type, size }) => `${type} of ${size ?? '?'} bytes`).join()} (${messageId ?? 'no ID'})`
    )),
  ].join('\n')
}

/** Numbers about many schedules. */
export function summarise(outcomes: readonly Outcome[], seconds: number): string {
  const told = new Map<string, number>()
  const hits = new Map<string, number>()
  let doubles = 0
  let calls = 0
  let requests = 0
  for (const { run, doubles: some } of outcomes) {
    doubles += some
    calls += run.sends.length
    requests += run.plan.senders.flat().length
    for (const { results } of run.accounts) for (const result of results) add(told, result.told, 1)
    for (const [kind, count] of run.hits) add(hits, kind, count)
  }
  const failed = outcomes.filter(({ problems }) => problems.length > 0).map(({ run }) => run.plan.seed)
  return [
    `${outcomes.length} schedules in ${seconds.toFixed(0)} s: ${requests} requests, ${calls} calls that send`,
    `items told: ${list(told)}`,
    `faults: ${list(hits)}`,
    `doubles where they are allowed: ${doubles}`,
    `failed: ${failed.length === 0 ? 'none' : failed.join(', ')}`,
  ].join('\n')
}

function add(counts: Map<string, number>, name: string, count: number): void {
  counts.set(name, (counts.get(name) ?? 0) + count)
}

function list(counts: ReadonlyMap<string, number>): string {
  return [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `${name} ${count}`).join(', ') || 'none'
}
