import { judge } from './judge'
import { createKind } from './kind'
import type { Plan } from './plan'
import { runPlan, type Run } from './run'
import { LocalWorld, ProcessWorld, type World } from './world'

/** The result of the plan of one seed. */
export interface Outcome {
  run: Run
  problems: string[]
}

export interface GroupOptions {
  /** How many worlds may exist at a time. */
  worlds: number
  /** Whether the relays are processes that can be killed. */
  kills?: boolean
  /** Called with each outcome. */
  onOutcome?: (outcome: Outcome) => void
}

/** Executes plans. Those of the same kind share a world, and the calm ones among them share it at the same time. */
export async function runPlans(plans: readonly Plan[], { worlds, kills = false, onOutcome }: GroupOptions): Promise<Outcome[]> {
  const groups = new Map<number, Plan[]>()
  for (const plan of plans) groups.set(plan.kindNumber, [...groups.get(plan.kindNumber) ?? [], plan])
  // The longest group first, so that none runs alone at the end.
  const queue = [...groups].sort(([, a], [, b]) => b.length - a.length)
  const outcomes: Outcome[] = []
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [kindNumber, members] = next
      const kind = createKind(kindNumber)
      const world = await (kills ? ProcessWorld : LocalWorld).start(kind)
      try {
        const finished = await runGroup(members, world)
        outcomes.push(...finished)
        for (const outcome of finished) onOutcome?.(outcome)
      } finally {
        await world.stop()
      }
    }
  }
  await Promise.all(Array.from({ length: worlds }, work))
  return outcomes.sort((a, b) => a.run.plan.seed - b.run.plan.seed)
}

/** How many calm plans share a world at a time. */
const together = 6

async function runGroup(plans: readonly Plan[], world: World): Promise<Outcome[]> {
  const runs: Run[] = []
  const calm = plans.filter(({ isRough }) => !isRough)
  await Promise.all(Array.from({ length: together }, async () => {
    for (let plan = calm.shift(); plan; plan = calm.shift()) runs.push(await runPlan(plan, world))
  }))
  for (const plan of plans.filter(({ isRough }) => isRough)) {
    runs.push(await runPlan(plan, world))
    await world.settled()
  }
  // Judged at the end, so that late messages count.
  return runs.map(run => ({ run, problems: judge(run) }))
}
