import type { Logger } from 'koishi'
import { mkdirSync, readFileSync, readlinkSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { codeOf } from '../errors'
import { pause, type Clock } from './clock'
import type { OwnerRow, OwnerStore } from './journal'

/** How long an owner without a sign of life keeps the data store, in milliseconds. */
const takeOverAfter = 12_000
/** How often the owner gives a sign of life. */
const renewInterval = 4_000
/** How long after its last sign of life the owner may act. */
const freshFor = 8_000
/** How far the machine's clock may differ from the monotonic one, which stands still while the machine sleeps. */
const maxGain = 2_000
/** How often a standby checks, and how soon a failed renewal is repeated. */
const lookInterval = 1_000

/** Decides which relay works a data store: one is active, the others stand by. */
export interface Ownership {
  /** Resolves with the owner's number once this relay is active; until then it stands by. Rejects only when `stop` is aborted. */
  acquire(stop: AbortSignal): Promise<number>
  /** Aborted when ownership is lost or released. Each `acquire` makes a new one. */
  readonly lost: AbortSignal
  /** Whether durable deliveries may be called: no other relay can consider this one dead yet. */
  isFresh(): boolean
  /** The active relay as people see it; `undefined` if it is not known. */
  readonly active: string | undefined
  /** The error of a data store that does not tell who is active. */
  readonly failure: unknown
  /** Releases the data store, after the last write. */
  release(): Promise<void>
}

/** A point in time, by both clocks. */
interface Moment {
  now: number
  wall: number
}

/** Takes ownership, renews it, and notices its loss. The subclasses store it. */
abstract class RenewedOwner implements Ownership {
  private term = new AbortController()
  private renewing: Promise<void> = Promise.resolve()
  private renewed: Moment | undefined
  failure: unknown

  constructor(protected readonly clock: Clock) {}

  abstract get active(): string | undefined
  /** @returns the number of this owner, if no other one is active */
  protected abstract take(): Promise<number | undefined>
  /** @returns whether this is still the owner */
  protected abstract renew(): Promise<boolean> | boolean
  protected abstract giveBack(): Promise<void>

  get lost(): AbortSignal {
    return this.term.signal
  }

  async acquire(stop: AbortSignal): Promise<number> {
    for (;;) {
      stop.throwIfAborted()
      const moment = this.moment()
      try {
        const number = await this.take()
        this.failure = undefined
        if (number !== undefined) {
          this.term = new AbortController()
          this.renewed = moment
          this.renewing = this.keep(this.term.signal)
          return number
        }
      } catch (error) {
        // While the data store does not answer, this relay stands by.
        this.failure = error
      }
      await pause(this.clock, lookInterval, stop)
    }
  }

  isFresh(): boolean {
    if (!this.renewed) return false
    const { now, wall } = this.moment()
    const age = now - this.renewed.now
    return age < freshFor && Math.abs(wall - this.renewed.wall - age) <= maxGain
  }

  async release(): Promise<void> {
    this.term.abort()
    await this.renewing
    if (this.renewed) await this.giveBack().catch(() => undefined)
    this.renewed = undefined
  }

  /** Renews the ownership until it ends or is lost. */
  private async keep(stop: AbortSignal): Promise<void> {
    let due = this.clock.now() + renewInterval
    for (;;) {
      await pause(this.clock, lookInterval, stop)
      if (stop.aborted) return
      if (this.clock.now() < due && this.isFresh()) continue
      const moment = this.moment()
      try {
        if (!await this.renew()) break
        this.renewed = moment
        due = moment.now + renewInterval
      } catch {
        // The next renewal may succeed.
      }
    }
    this.renewed = undefined
    this.term.abort()
  }

  private moment(): Moment {
    return { now: this.clock.now(), wall: this.clock.wall() }
  }
}

/**
 * Whether an owner has given no new sign of life for long enough to count as dead, by the own monotonic clock.
 *
 * @param asked when the sign was read
 */
type Watch = (sign: string, asked: number) => boolean

function watch(clock: Clock): Watch {
  let seen = { sign: '', since: Infinity }
  return (sign, asked) => {
    if (seen.sign !== sign) seen = { sign, since: clock.now() }
    return asked - seen.since >= takeOverAfter
  }
}

/** Ownership by a row of a database server, for relays that share its database. */
export class RowOwner extends RenewedOwner {
  private row: OwnerRow | undefined
  private readonly isStale = watch(this.clock)

  /** @param name for people: host and process */
  constructor(private readonly store: OwnerStore, clock: Clock, private readonly name = describe(self)) {
    super(clock)
  }

  get active(): string | undefined {
    return this.row && this.row.beat > 0 ? this.row.name : undefined
  }

  protected async take(): Promise<number | undefined> {
    const asked = this.clock.now()
    const row = this.row = await this.store.readOwner()
    if (row && row.beat > 0 && !this.isStale(`${row.number} ${row.beat}`, asked)) return
    this.row = await swapIn(this.store, row, this.name)
    return this.row?.number
  }

  protected async renew(): Promise<boolean> {
    const { row } = this
    if (!row) return false
    const next = { ...row, beat: row.beat + 1 }
    const isRenewed = await this.store.swapOwner(row, next)
    // A renewal without an answer may have been carried out.
    this.row = isRenewed ? next : await this.store.readOwner()
    return isRenewed || (this.row?.number === row.number && this.renew())
  }

  protected async giveBack(): Promise<void> {
    if (this.row && await this.renew()) await this.store.swapOwner(this.row, { ...this.row, beat: 0 })
  }
}

/** Ownership of a folder, by a lock file; with a database in the folder, also by a number that grows in the database. */
export class FileOwner extends RenewedOwner {
  /** Absent if the folder cannot hold a lock: it is then worked without one. */
  private lock: FileLock | undefined

  /** @param store the database in the folder, if there is one */
  constructor(folder: string, clock: Clock, private readonly logger: Pick<Logger, 'warn'>, private readonly store?: OwnerStore) {
    super(clock)
    this.lock = new FileLock(folder, clock)
  }

  get active(): string | undefined {
    return this.lock?.holder
  }

  protected async take(): Promise<number | undefined> {
    if (!this.takeLock()) return
    const { store } = this
    return store ? (await swapIn(store, await store.readOwner(), describe(self)))?.number : 1
  }

  protected renew(): boolean {
    return this.lock?.renew() ?? true
  }

  /** Keeps the lock: it belongs to the process, which still has the database open. */
  protected giveBack(): Promise<void> {
    return Promise.resolve()
  }

  private takeLock(): boolean {
    try {
      return this.lock?.take() ?? true
    } catch (error) {
      if (!(error instanceof FolderError)) throw error
      this.logger.warn('%s', `nothing keeps a second process from working the same data: ${error.message}`)
      this.lock = undefined
      return true
    }
  }
}

/** Replaces the owner in the row. @returns the new row; `undefined` if another relay was faster */
async function swapIn(store: OwnerStore, row: OwnerRow | undefined, name: string): Promise<OwnerRow | undefined> {
  const own = { number: (row?.number ?? 0) + 1, beat: 1, name }
  return await store.swapOwner(row, own) ? own : undefined
}

/**
 * The machine with its boot, and the namespace of process IDs (Linux: random(4) and pid_namespaces(7)), because containers may have equal
 * names.
 */
const host = [
  hostname(), attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()), attempt(() => readlinkSync('/proc/self/ns/pid')),
].join(' ')
/** The name of this process in lock files: its ID, its host, and its start, because another process may get the same ID later. */
const self = [process.pid, startOf(process.pid), host].join('\n')

/** The lock files of this process. They are removed at its end. */
const taken = new Set<string>()

/**
 * A lock file, held until this process ends. Others take it over when the process is gone; a stopped process is not. Processes on another
 * machine, or on a system that does not tell the start of a process, take it over 12 s after its last renewal. This process may take it
 * repeatedly.
 */
export class FileLock {
  private readonly path: string
  private readonly isStale: Watch
  /** The other process that holds the lock, as people see it; `undefined` if it is not known. */
  holder: string | undefined
  /** Whether a process of this machine holds the lock, and so keeps it until its end. */
  isHeldHere = false

  constructor(private readonly folder: string, private readonly clock: Clock) {
    this.path = join(folder, 'relay.lock')
    this.isStale = watch(clock)
  }

  /**
   * @returns whether this process holds the lock; `false` also while that is not certain: call again after a moment
   * @throws FolderError
   */
  take(): boolean {
    try {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 })
      const isTaken = this.create() || isOwn(this.path)
      if (isTaken) this.holder = undefined
      else this.takeOver()
      return isTaken
    } catch (error) {
      throw new FolderError(`cannot write to the data folder ${this.folder} (${codeOf(error)}): set DATA_DIR to a folder that can be written and has space`)
    }
  }

  /**
   * @returns whether this process still holds the lock
   * @throws if the file cannot be read: on Windows another program may lock it for a moment
   */
  renew(): boolean {
    if (!this.create() && readFileSync(this.path, 'utf8') !== self) return false
    const now = this.clock.wall() / 1000
    utimesSync(this.path, now, now)
    return true
  }

  private create(): boolean {
    try {
      writeFileSync(this.path, self, { flag: 'wx', mode: 0o600 })
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false
      throw error
    }
    removeAtExit(this.path)
    return true
  }

  /** Two processes may take the lock over at once: each reads the file again to see whose it is. */
  private takeOver(): void {
    const asked = this.clock.now()
    const content = attempt(() => readFileSync(this.path, 'utf8'))
    const [pid, start, otherHost] = content.split('\n')
    this.holder = otherHost === undefined ? undefined : describe(content)
    // Without the start of a process, another one may have its ID by now.
    const isHere = otherHost === host && start !== ''
    const isGoneHere = otherHost === host && isGone(Number(pid), start)
    const isLeft = isGoneHere || (!isHere && this.isStale(`${content} ${statSync(this.path).mtimeMs}`, asked))
    this.isHeldHere = isHere && !isLeft
    if (!isLeft) return
    const own = `${this.path}.${process.pid}`
    writeFileSync(own, self, { mode: 0o600 })
    renameSync(own, this.path)
    removeAtExit(this.path)
  }
}

/** Thrown when the data folder cannot be used. The message says what to do. */
export class FolderError extends Error {
  override readonly name = 'FolderError'
}

function removeAtExit(path: string): void {
  if (taken.size === 0) process.once('exit', () => [...taken].filter(isOwn).forEach(each => rmSync(each, { force: true })))
  taken.add(path)
}

/** Whether this process wrote a lock file. */
function isOwn(path: string): boolean {
  return attempt(() => readFileSync(path, 'utf8')) === self
}

/** The process of a lock file, as people see it. */
function describe(content: string): string {
  const [pid, , machine = ''] = content.split(/[\n ]/)
  return `process ${pid} on ${machine}`
}

function isGone(pid: number, start: string | undefined): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: the process belongs to another user.
    if (codeOf(error) === 'ESRCH') return true
  }
  return start !== '' && startOf(pid) !== start
}

/** The start of a process in ticks since boot (Linux: proc_pid_stat(5)); empty on other systems, and for ended processes. */
function startOf(pid: number): string {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  // The name of the program is in brackets, and may contain anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' ? '' : fields[19] ?? ''
}

function attempt(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
