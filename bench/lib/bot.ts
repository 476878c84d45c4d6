import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long the bot may take to answer, in milliseconds. */
const patience = 60_000

/** How a bot is started by `npm start`. */
export interface BotOptions {
  /** The repository. */
  repository: string
  /** The folder that npm runs in. */
  cwd: string
  port: number
  /** The path to request. It is requested again until the answer has this status; `undefined` accepts any. */
  path: string
  status?: number
}

/**
 * Runs `npm start` until the first answer.
 *
 * @returns how long that took, in milliseconds
 */
export async function timeStart({ repository, cwd, port, path, status }: BotOptions): Promise<number> {
  const { PATH = '', HOME = '' } = process.env
  const started = performance.now()
  const npm = spawn('npm', ['--prefix', repository, 'start'], {
    cwd,
    // A process group of its own, so that all of it can be killed.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH, HOME, TMPDIR: cwd, WEBHOOK_HOST: '127.0.0.1', WEBHOOK_PORT: String(port) },
  })
  npm.stdout.resume()
  npm.stderr.resume()
  const end = once(npm, 'exit')
  const kill = (): void => {
    if (npm.pid !== undefined && npm.exitCode === null && npm.signalCode === null) process.kill(-npm.pid, 'SIGKILL')
  }
  process.once('exit', kill)
  try {
    while (performance.now() - started < patience && npm.exitCode === null) {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined)
      await answer?.arrayBuffer()
      if (answer && (status === undefined || answer.status === status)) return performance.now() - started
      await sleep(5)
    }
    throw new Error(`npm start gave no answer in ${patience} ms`)
  } finally {
    kill()
    await end
    process.off('exit', kill)
  }
}
