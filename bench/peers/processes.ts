import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'

const running = new Set<ChildProcess>()

/** Starts a program of a peer. It ends with the benchmark. */
export function startProgram(command: string, parameters: readonly string[], cwd: string): ChildProcess {
  const child = spawn(command, parameters, { cwd, stdio: ['pipe', 'pipe', 'ignore'] })
  running.add(child)
  child.once('error', () => running.delete(child)).once('exit', () => running.delete(child))
  return child
}

/** Kills a program, and waits until it is gone. */
export async function kill(child: ChildProcess): Promise<void> {
  if (!running.has(child)) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

export async function killAll(): Promise<void> {
  await Promise.all([...running].map(kill))
}

/** A figure of `/proc/<pid>/status` in MiB; 0 if the process is gone. */
export async function memoryOf(pid: number, name: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) / 1024
}

const agent = new Agent({ keepAlive: true })

/**
 * Posts JSON over a connection that is used again.
 *
 * @returns the status, 0 without an answer
 */
export function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<number> {
  const text = JSON.stringify(body)
  return new Promise(resolve => {
    const call = request(url, { method: 'POST', agent, headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers } })
    call.once('error', () => resolve(0)).once('response', response => {
      response.once('error', () => resolve(0)).once('end', () => resolve(response.statusCode ?? 0)).resume()
    })
    call.end(text)
  })
}
