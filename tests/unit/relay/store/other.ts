import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { on, once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { bundle } from '../../../support/bundle'
import { end } from '../../../support/process'
import type { Order } from './child'

/** Another process that has the store of a folder, or waits for it. */
export class Other {
  private readonly lines

  private constructor(t: TestContext, readonly child: ChildProcess) {
    const lines = createInterface({ input: child.stdout ?? assert.fail() })
    this.lines = on(lines, 'line', { close: ['close'] })
    t.after(() => end(child, 'SIGKILL'))
  }

  /** @param prefix a command that runs the process */
  static async start(t: TestContext, folder: string, prefix: readonly string[] = []): Promise<Other> {
    const command = [...prefix, process.execPath, await bundle(join(__dirname, 'child.ts')), folder]
    return new Other(t, spawn(command[0] ?? assert.fail(), command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] }))
  }

  /** The next line that it says. */
  async says(): Promise<string> {
    const next: IteratorResult<unknown, unknown> = await this.lines.next()
    return Array.isArray(next.value) ? String(next.value[0]) : 'ended'
  }

  /** Lets it end by itself, once it has nothing to do. @returns its exit code */
  async ends(): Promise<number | null> {
    this.child.stdin?.end()
    if (this.child.exitCode === null) await once(this.child, 'exit')
    return this.child.exitCode
  }

  does(order: Order): Promise<string> {
    this.child.stdin?.write(`${JSON.stringify(order)}\n`)
    return this.says()
  }
}
