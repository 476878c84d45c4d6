import { shallowReactive, type VNode } from 'vue'
import type { Result } from '../admin'
import { texts } from '../texts'
import { notice } from './basics'

/** An action that a button starts; only one runs at a time. */
export interface Task {
  isBusy: boolean
  /** Why the last run failed; empty if it did not. */
  problem: string
  /** @returns `undefined` if the work failed, or a run is already in progress */
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

/** The problem of a task, if it has one. */
export function viewProblem({ problem }: Task): VNode | undefined {
  return problem === '' ? undefined : notice('bad', problem)
}
