import { mkdirSync, readFileSync, readlinkSync, realpathSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { codeOf } from '../../errors'
import type { Clock } from '../clock'
import { say, type Text } from '../../texts/text'

/** How long the lock of another host is respected after its last renewal, in milliseconds. */
const takeOverAfter = 12_000
/** How often the owner should renew its lock, in milliseconds. */
export const renewInterval = 4_000
/**
 * How long a process waits after it has replaced a lock, in milliseconds. Another process that read the old lock at the same time replaces
 * this one meanwhile, and the owner of the old lock looks at the file more often than that.
 */
const settleTime = 1_000
/** How long an owner trusts its last look at the file, in milliseconds. */
const trustTime = 250

/**
 * The machine with its boot, and the namespace of process IDs (Linux: random(4) and pid_namespaces(7)), because containers may have equal
 * names.
 */
const host = [
  hostname(), attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()), attempt(() => readlinkSync('/proc/self/ns/pid')),
].join(' ')
/** The content of the locks of this process: its ID, its start, because another process may get the same ID later, and its host. */
const self = [process.pid, startOf(process.pid), host].join('\n')

/** The locks of this process. They are removed at its end. */
const held = new Set<string>()
let isEndWatched = false

/**
 * The lock of a data folder, `relay.lock`: one relay of one process has it. Others take it over when the process is gone; a stopped process
 * is not. A process on another machine, or on a system that does not tell the start of a process, loses the lock 12 s after its last
 * renewal, because it may be gone; except on Windows, where the files of a process that is only paused cannot be replaced.
 */
export class FolderLock {
  private readonly path: string
  /** The key in the registry of this process. */
  private folder = ''
  private lastSign = { text: '', since: 0 }
  private replacedAt: number | undefined
  /** By both clocks: while the machine sleeps, only one goes on. */
  private trusted: { until: number, wall: number, mark: string } | undefined
  /** Who has the lock while this relay waits for it, as people see it. */
  holder: Text | undefined
  /** Whether that is a process of this machine, which has to end before this relay can have the lock. */
  isHolderAlive = false

  /**
   * @param dataDir is created if it does not exist
   * @param beforeForce called before the lock is taken from a process that may only be paused, and so may still write for a moment
   */
  constructor(private readonly dataDir: string, private readonly clock: Clock, private readonly beforeForce: () => void) {
    this.path = join(dataDir, 'relay.lock')
  }

  /**
   * @returns whether this relay has the lock; if not, call again after a moment
   * @throws the error of the file system
   */
  take(): boolean {
    mkdirSync(this.dataDir, { recursive: true, mode: 0o700 })
    this.folder = realpathSync(this.dataDir)
    const isOther = foldersInUse().has(this.folder)
    if (isOther) {
      this.holder = say('other-relay-here')
      return false
    }
    const isMine = this.create() || attempt(() => readFileSync(this.path, 'utf8')) === self
    if (!isMine || !this.hasSettled()) {
      if (!isMine) this.replaceLeft()
      return false
    }
    foldersInUse().add(this.folder)
    this.holder = undefined
    this.trust()
    return true
  }

  /**
   * Whether this relay still has the lock: nobody has replaced the file. Cheap enough for every commit.
   *
   * @throws the error of the file system, if the file cannot be read now
   */
  isHeld(): boolean {
    if (!this.trusted) return false
    if (this.clock.now() < this.trusted.until && this.clock.wall() < this.trusted.wall) return true
    if (this.trusted.mark !== markOf(this.path) && !this.create() && readFileSync(this.path, 'utf8') !== self) return false
    this.trust()
    return true
  }

  /** Gives a sign of life. @returns whether this relay still has the lock. @throws as `isHeld` */
  renew(): boolean {
    if (this.trusted) this.trusted.until = 0
    if (!this.isHeld()) return false
    const now = this.clock.wall() / 1000
    utimesSync(this.path, now, now)
    this.trust()
    return true
  }

  /** Lets the next relay have the lock, unless it has it already. */
  release(): void {
    if (!this.trusted) return
    this.trusted = undefined
    removeOwn(this.path)
    held.delete(this.path)
    foldersInUse().delete(this.folder)
  }

  private trust(): void {
    this.trusted = { until: this.clock.now() + trustTime, wall: this.clock.wall() + trustTime, mark: markOf(this.path) }
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

  private hasSettled(): boolean {
    return this.replacedAt === undefined || this.clock.now() - this.replacedAt >= settleTime
  }

  /** Replaces the lock of another process if that is gone, or seems to be. */
  private replaceLeft(): void {
    this.replacedAt = undefined
    const content = attempt(() => readFileSync(this.path, 'utf8'))
    const [pid, start, otherHost] = content.split('\n')
    this.holder = otherHost === undefined ? say('other-process') : describe(content)
    const isHere = otherHost === host
    if (!(isHere && isGone(Number(pid), start))) {
      // Without the start of a process, another one may have its ID by now.
      this.isHolderAlive = isHere && start !== ''
      if (this.isHolderAlive || process.platform === 'win32' || !this.isStale(`${content} ${markOf(this.path)}`)) return
      this.beforeForce()
    }
    const own = `${this.path}.${process.pid}`
    writeFileSync(own, self, { mode: 0o600 })
    renameSync(own, this.path)
    removeAtExit(this.path)
    this.replacedAt = this.clock.now()
  }

  /** Whether the lock has shown no new sign of life for long enough, by the own monotonic clock. */
  private isStale(sign: string): boolean {
    if (this.lastSign.text !== sign) this.lastSign = { text: sign, since: this.clock.now() }
    return this.clock.now() - this.lastSign.since >= takeOverAfter
  }
}

/** The folders that relays of this process have. On the global object, because a reload of the plugin may load this module anew. */
function foldersInUse(): Set<unknown> {
  const name = Symbol.for('koishi-plugin-message-relay: folders in use')
  const present: unknown = Reflect.get(globalThis, name)
  if (present instanceof Set) return present
  const created = new Set()
  Reflect.set(globalThis, name, created)
  return created
}

function removeAtExit(path: string): void {
  if (!isEndWatched) process.once('exit', () => [...held].forEach(removeOwn))
  isEndWatched = true
  held.add(path)
}

function removeOwn(path: string): void {
  if (attempt(() => readFileSync(path, 'utf8')) === self) rmSync(path, { force: true })
}

/** What changes whenever a file is replaced or renewed; empty without a file. */
function markOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats ? `${stats.ino} ${stats.mtimeMs}` : ''
}

/** The process of a lock file, as people see it. */
function describe(content: string): Text {
  const [pid = '', , machine = ''] = content.split(/[\n ]/)
  return say('process-on', { pid, machine })
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
