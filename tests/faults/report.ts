import type { Outcome } from './group'
import type { Plan } from './plan'

/** The command that repeats the schedule of a seed. */
function replayCommand({ seed, options: { kills, reloads } }: Plan): string {
  return `npm run test:processes -- --seed ${seed} --schedules 1${kills ? ' --kills' : ''}${reloads ? ' --reloads' : ''}`
}

/** The description of a failed schedule: how to repeat it, its problems and its plan. */
export function describeFailure({ run, run: { plan }, problems }: Outcome): string {
  const { kind, targets, senders, faults, moments } = plan
  return [
    `seed ${plan.seed} failed; repeat it with: ${replayCommand(plan)}`,
    ...problems.map(problem => `  - ${problem}`),
    ...Object.entries({ kind: [kind], target: targets, sender: senders, fault: faults, moment: moments })
      .flatMap(([name, list]) => list.map(each => `  ${name} ${JSON.stringify(each)}`)),
    ...run.ledger().map(({ seq, time, messageId, text, media }) => (
      `  there ${time % 1e6} ${seq}: ${text || media.map(({ type, size }) => `${type} of ${size ?? '?'} bytes`).join()} (${messageId ?? 'no ID'})`
    )),
  ].join('\n')
}

/** Statistics of many schedules. */
export function summarise(outcomes: readonly Outcome[], seconds: number): string {
  const told = new Map<string, number>()
  const hits = new Map<string, number>()
  for (const { run } of outcomes) {
    for (const { results } of run.accounts) for (const result of results) add(told, result.told, 1)
    for (const [kind, count] of run.tracker.hits) add(hits, kind, count)
  }
  const requests = outcomes.reduce((sum, { run }) => sum + run.plan.senders.flat().length, 0)
  const calls = outcomes.reduce((sum, { run }) => sum + run.tracker.sends, 0)
  const failed = outcomes.filter(({ problems }) => problems.length > 0).map(({ run }) => run.plan.seed)
  return [
    `${outcomes.length} schedules in ${seconds.toFixed(0)} s: ${requests} requests, ${calls} calls that send`,
    `items told: ${list(told)}`,
    `faults: ${list(hits)}`,
    `failed: ${failed.length === 0 ? 'none' : failed.join(', ')}`,
  ].join('\n')
}

function add(counts: Map<string, number>, name: string, count: number): void {
  counts.set(name, (counts.get(name) ?? 0) + count)
}

function list(counts: ReadonlyMap<string, number>): string {
  return [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `${name} ${count}`).join(', ') || 'none'
}
