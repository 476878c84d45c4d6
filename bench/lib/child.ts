import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { field } from './values'

/** The default time limit of an answer, in milliseconds. */
const patience = 120_000
/** How long a process may take to end by itself, in milliseconds. */
const endTime = 10_000
/** How many characters of a process's standard error are kept. */
const keptErrors = 4_000

const running = new Set<Child>()

/** Ends every running process of the benchmark. */
export async function endAll(): Promise<void> {
  await Promise.all([...running].map(child => child.end()))
}

/** A process of the benchmark that answers commands (`apps/serve.ts`). */
export class Child {
  private nextId = 0
  private readonly waiting = new Map<number, { resolve: (answer: unknown) => void, reject: (error: Error) => void }>()
  private complaints = ''

  private constructor(private readonly name: string, private readonly process: ChildProcess) {
    running.add(this)
    // The output goes to a pipe that is read, as with any service manager.
    process.stdout?.resume()
    process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.complaints = (this.complaints + text).slice(-keptErrors)
    })
    process.on('message', message => this.settle(message))
    process.once('exit', (code, signal) => {
      running.delete(this)
      for (const { reject } of this.waiting.values()) {
        reject(new Error(`${this.name} ended (${signal ?? code ?? 'unknown'}): ${this.complaints}`))
      }
      this.waiting.clear()
    })
  }

  /**
   * Starts a built program of `apps/`. Its environment is almost empty, so that no setting of this shell affects it.
   *
   * @param nodeOptions options of Node.js itself, such as `--expose-gc`
   */
  static start(file: string, cwd: string, nodeOptions: readonly string[] = []): Child {
    const { PATH = '', HOME = '' } = process.env
    const child = spawn(process.execPath, [...nodeOptions, file], {
      cwd, stdio: ['ignore', 'pipe', 'pipe', 'ipc'], env: { PATH, HOME, TMPDIR: cwd },
    })
    return new Child(file, child)
  }

  get pid(): number {
    return this.process.pid ?? 0
  }

  /**
   * Sends a command.
   *
   * @param time how long the answer may take, in milliseconds
   * @throws Error when the command fails, the process ends, or the answer takes too long
   */
  async ask(command: string, argument: unknown = {}, time = patience): Promise<unknown> {
    const id = this.nextId++
    const answer = new Promise<unknown>((resolve, reject) => {
      this.waiting.set(id, { resolve, reject })
      this.process.send({ id, command, argument }, error => {
        if (error) reject(error)
      })
    })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`${this.name}: no answer to ${command} in ${time} ms: ${this.complaints}`)), time)
    })
    try {
      return await Promise.race([answer, late])
    } finally {
      clearTimeout(timer)
      this.waiting.delete(id)
    }
  }

  /** Ends the process, by force if it does not end by itself. */
  async end(): Promise<void> {
    if (!running.has(this)) return
    const ended = once(this.process, 'exit')
    // A program ends when its parent disconnects.
    if (this.process.connected) this.process.disconnect()
    const timer = setTimeout(() => this.process.kill('SIGKILL'), endTime)
    await ended
    clearTimeout(timer)
  }

  private settle(message: unknown): void {
    const id = field(message, 'id')
    const waiting = typeof id === 'number' ? this.waiting.get(id) : undefined
    const error = field(message, 'error')
    if (typeof error === 'string') waiting?.reject(new Error(`${this.name}: ${error}`))
    else waiting?.resolve(field(message, 'answer'))
  }
}
