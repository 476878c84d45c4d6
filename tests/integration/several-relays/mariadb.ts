import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chown, mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import assert from 'node:assert/strict'
import { end, freePort } from '../../support/process'
import { DebianPrograms, findProgram } from '../../support/programs'
import { until } from '../../support/until'

const programs = new DebianPrograms('MariaDB server', 'mariadb-server', ['mariadbd', 'mariadb-install-db'])

/** Why the tests with a server cannot run, `false` when they can. */
export const { missing } = programs

/** What a driver needs to use a database. */
export interface Access {
  host: string
  port: number
  user: string
  password: string
  database: string
}

/** The user as whom a server runs that root starts: nobody in particular. */
const unprivileged = { name: 'nobody', id: 65534 }

/** A MariaDB server of its own, in a temporary folder and on a free port of 127.0.0.1. */
export class MariaDb {
  private process: ChildProcess | undefined
  private databases = 0

  private port = 0

  private constructor(private readonly folder: string) {}

  /** Starts one; resolves when it answers. */
  static async start(): Promise<MariaDb> {
    const installer = programs.path('mariadb-install-db')
    const folder = await mkdtemp(join(tmpdir(), 'relay-mariadb-'))
    if (isRoot()) await chown(folder, unprivileged.id, unprivileged.id)
    const server = new MariaDb(folder)
    try {
      await run(installer, [
        '--no-defaults', `--datadir=${folder}/data`, '--auth-root-authentication-method=normal', '--skip-test-db',
        '--innodb-log-file-size=8M', `--tmpdir=${folder}`, ...asUser(),
      ])
      await server.launch()
    } catch (error) {
      await server.stop()
      throw error
    }
    return server
  }

  /** Starts the server again after `halt`, on the same port. */
  async resume(): Promise<void> {
    assert(!this.process)
    await rm(this.pidFile, { force: true })
    const child = spawn(programs.path('mariadbd'), [
      '--no-defaults', `--datadir=${this.folder}/data`, `--socket=${this.folder}/socket`, `--pid-file=${this.pidFile}`,
      `--log-error=${this.folder}/error.log`,
      // In one that they share, servers remove one another's files as they start.
      `--tmpdir=${this.folder}`, '--bind-address=127.0.0.1', `--port=${this.port}`, ...asUser(),
      // Small and quick: what is written survives the end of the process, and need not survive a power failure.
      '--innodb-buffer-pool-size=64M', '--innodb-log-file-size=8M', '--innodb-flush-log-at-trx-commit=2', '--innodb-flush-method=nosync',
      '--skip-name-resolve',
    ], { stdio: 'ignore' })
    this.process = child
    await until('the server answers', () => {
      assert(child.exitCode === null && child.signalCode === null, 'the server ended')
      // It writes the file once it listens; before, another server might answer on its port.
      return existsSync(this.pidFile) && greets(this.port)
    }, 30_000)
  }

  /** Starts the server on a port of its own: one that was free may be taken by the time it listens. */
  private async launch(): Promise<void> {
    for (let tries = 1; ; tries++) {
      this.port = await freePort()
      try {
        await this.resume()
        return
      } catch (error) {
        await this.halt('SIGKILL')
        if (tries === 3) throw error
      }
    }
  }

  private get pidFile(): string {
    return join(this.folder, 'pid')
  }

  /** Ends the server and keeps its data; as a crash does, if so desired. */
  async halt(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const child = this.process
    this.process = undefined
    if (child) await end(child, signal)
  }

  /** Ends it and removes everything. */
  async stop(): Promise<void> {
    await this.halt('SIGKILL')
    await rm(this.folder, { recursive: true, force: true })
  }

  /** Makes a new empty database. */
  async create(): Promise<Access> {
    const database = `relay_${++this.databases}`
    await run(findProgram('mariadb') ?? findProgram('mysql') ?? 'mariadb', [
      '--no-defaults', '--protocol=tcp', '--host=127.0.0.1', `--port=${this.port}`, '--user=root', `--execute=CREATE DATABASE ${database}`,
    ])
    return { host: '127.0.0.1', port: this.port, user: 'root', password: '', database }
  }
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

function asUser(): string[] {
  return isRoot() ? [`--user=${unprivileged.name}`] : []
}

/** Whether a MySQL server greets whoever connects. */
function greets(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.on('data', () => {
      resolve(true)
      socket.destroy()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(false))
  })
}

async function run(program: string, args: readonly string[]): Promise<void> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => output += chunk.toString())
  await once(child, 'close')
  assert.equal(child.exitCode, 0, `${program} failed: ${output.split('\n').filter(line => /error/i.test(line)).join('\n')}`)
}
