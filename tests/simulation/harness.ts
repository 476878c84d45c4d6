import { judge } from './judge'
import { createPlan, type Plan } from './plan'
import { runPlan, type Run } from './run'

/** The command that repeats the schedule of a seed and prints its events. */
export function replayCommand(seed: number): string {
  return `npm run test:faults -- --seed ${seed} --schedules 1`
}

/** Runs the schedule of a seed. @returns the problems */
export async function tryOut(seed: number): Promise<string[]> {
  return judge(await runPlan(createPlan(seed)))
}

/** Repeats a schedule and describes its events. */
export async function describe(seed: number): Promise<string> {
  const plan = createPlan(seed)
  const run = await runPlan(plan, true)
  const problems = judge(run)
  return [
    `seed ${seed} ${problems.length > 0 ? 'failed' : 'is fine'}; repeat it with: ${replayCommand(seed)}`,
    ...problems.map(problem => `  - ${problem}`),
    ...schedule(plan), ...events(run),
  ].join('\n')
}

function schedule(plan: Plan): string[] {
  const { requests, operations, moments, chats, ...rest } = plan
  const lines = (name: string, list: readonly unknown[]): string[] => list.flatMap((each, place) => each ? [`  ${name} ${place}: ${JSON.stringify(each)}`] : [])
  return [
    `  ${JSON.stringify(rest)}`,
    ...chats.flatMap(({ calls, questions, ...chat }, index) => [
      `  chat ${index}: ${JSON.stringify(chat)}`, ...lines('  call', calls), ...lines('  question', questions),
    ]),
    ...lines('request', requests), ...lines('operation', operations), ...lines('moment', moments),
  ]
}

function events({ trace, ledger }: Run): string[] {
  const carried = ledger.map(({ id, time, call }) => ({ time, text: `${time} IN ${call.chat}: ${call.marks.join()} as ${id} (${call.likeness})` }))
  const all = [...trace.map(text => ({ time: parseInt(text), text })), ...carried]
  return all.sort((a, b) => a.time - b.time).map(({ text }) => `  ${text}`)
}
