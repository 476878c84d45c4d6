import { shallowReactive, type VNode } from 'vue'
import type { Result } from '../admin'
import { texts } from '../texts'
import { notice } from './basics'

/** Work that a button starts, one at a time. */
export interface Task {
  isBusy: boolean
  /** Why it failed last; empty where it did not. */
  problem: string
  /** @returns `undefined` where it failed, or is at work already */
  run: <T>(work: () => Promise<Result<T>>) => Promise<{ value: T } | undefined>
}

export function useTask(): Task {
  const task = shallowReactive<Task>({
    isBusy: false,
    problem: '',
    async run(work) {
      if (task.isBusy) return
      task.isBusy = true
      const result = await work()
      Object.assign(task, { isBusy: false, problem: 'problem' in result ? texts.value.common.failed(result.problem) : '' })
      return 'value' in result ? result : undefined
    },
  })
  return task
}

/** Why a task failed, where it did. */
export function viewProblem({ problem }: Task): VNode | undefined {
  return problem === '' ? undefined : notice('bad', problem)
}
