import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { codeOf } from '../src/errors'
import { parseJson } from '../src/lib/json'
import { fieldsOf, toText } from '../src/lib/shape'
import { say, spoken } from './texts'

/** Where the signs of a job go: the address that they are appended to, and the headers. */
export interface Listener {
  url: string
  headers: Readonly<Record<string, string>>
}

/** How much of the output is reported, in bytes: its end. */
const tailLength = 10_000
/** How long the relay may take to answer, and the pause before another try, in milliseconds. */
const timeout = 5_000
const pause = 1_000
/** The signals that end a command. A terminal sends them, except for the last, to the command by itself. */
const signals = ['SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGTERM'] as const

/**
 * Runs a command, and reports its start, its exit status and the end of its output. The command runs even if nobody listens.
 *
 * @param listener `undefined` if nobody is told
 * @param note called with what the relay was not told
 * @returns the exit status of the command: 128 and the number of the signal that ended it, 127 without such a command, 126 if it cannot run
 */
export async function runJob(listener: Listener | undefined, command: readonly string[], note: (line: string) => void): Promise<number> {
  const [file = '', ...args] = command
  const run = randomUUID()
  const report = async (sign: string, tries: number, log?: Buffer): Promise<void> => {
    const reason = listener && await tell(listener, `/${sign}?rid=${run}`, tries, log)
    if (reason !== undefined) note(sign === 'start' ? say('cli-start-not-told', { reason }) : say('cli-end-not-told', { status: sign, reason }))
  }
  const started = report('start', 1)
  const tail = new Tail()
  const status = await execute(file, args, tail, note)
  await started
  await report(String(status), 3, tail.content)
  return status
}

function execute(file: string, args: readonly string[], tail: Tail, note: (line: string) => void): Promise<number> {
  return new Promise(resolve => {
    const child = spawn(file, args, { stdio: ['inherit', 'pipe', 'pipe'] })
    const forward = (signal: NodeJS.Signals): void => {
      if (signal === 'SIGTERM' || !process.stdin.isTTY) child.kill(signal)
    }
    for (const signal of signals) process.on(signal, forward)
    pass(child.stdout, process.stdout, tail)
    pass(child.stderr, process.stderr, tail)
    child.once('error', error => {
      const line = say('cli-cannot-run', { command: file, code: codeOf(error) })
      note(line)
      tail.add(Buffer.from(line))
      resolve(codeOf(error) === 'ENOENT' ? 127 : 126)
    })
    child.once('close', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)))
  })
}

/** Passes output on unchanged. If nobody reads it any more, the command finds its pipe broken, as without this program. */
function pass(from: Readable, to: Writable, tail: Tail): void {
  to.removeAllListeners('error').on('error', () => from.destroy())
  from.on('data', (chunk: Buffer) => tail.add(chunk)).pipe(to, { end: false })
}

/** The end of some output. */
class Tail {
  private readonly chunks: Buffer[] = []
  private size = 0

  add(chunk: Buffer): void {
    this.chunks.push(chunk)
    this.size += chunk.length
    while (this.chunks[0] && this.size - this.chunks[0].length >= tailLength) this.size -= this.chunks.shift()?.length ?? 0
  }

  get content(): Buffer {
    return Buffer.concat(this.chunks).subarray(-tailLength)
  }
}

/** @returns why the listener was not told */
async function tell({ url, headers }: Listener, path: string, tries: number, body?: Buffer): Promise<string | undefined> {
  let why = ''
  for (let count = 1; count <= tries; count++) {
    if (count > 1) await delay(pause * (count - 1))
    try {
      const answer = await fetch(url + path, {
        method: 'POST', headers: { ...headers, 'accept-language': spoken(), 'content-type': 'text/plain' },
        signal: AbortSignal.timeout(timeout), ...body && { body: new Uint8Array(body) },
      })
      const text = await answer.text()
      if (answer.ok) return
      why = `${answer.status} ${toText(fieldsOf(parseJson(text)).msg) || text.slice(0, 100)}`
      if (answer.status < 500 && answer.status !== 429 && answer.status !== 408) return why
    } catch (error) {
      const { cause } = error instanceof Error ? error : {}
      why = cause instanceof Error ? cause.message || codeOf(cause) : say('cli-no-answer', { seconds: timeout / 1000 })
    }
  }
  return why
}
