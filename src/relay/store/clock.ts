import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'

/** A reading of all clocks at one moment, in milliseconds. */
export interface Reading {
  /** By this clock, since the epoch. */
  time: number
  /** By the clock of the machine, since the epoch. */
  wall: number
  /** Since the machine was started. */
  uptime: number
  /** Which start of the machine that was; empty where the system does not tell. */
  boot: string
}

/** The clocks of a machine. */
export interface Machine {
  /** The one that can be set, in milliseconds since the epoch. */
  wall: () => number
  /** For how long the process runs and the machine is awake, in milliseconds. */
  running: () => number
  /** For how long the machine is on, in milliseconds. */
  uptime: () => number
  /** Which start of the machine that counts from; empty where the system does not tell. */
  boot: string
}

const thisMachine: Machine = {
  wall: () => Date.now(),
  running: () => performance.now(),
  uptime: () => uptime() * 1000,
  boot: readBoot(),
}

/** Up to which difference this clock follows that of the machine, in milliseconds: what is kept in time by the network differs by less. */
const followed = 2_000
/** The same for the clocks of several relays, one of which may have died some seconds ago. */
export const agreed = 30_000
/** For how long a reading is good, in milliseconds. */
const freshness = 60_000

/**
 * The time by which records are kept and expire. It begins with what the clock of the machine shows, and then only runs forward: where
 * somebody sets that one, by a year or by an hour, nothing expires early and nothing is kept for longer. The time for which the machine
 * slept counts.
 */
export class Clock {
  /** What has to be added to the running time. */
  private base: number
  /** For how long the machine has slept that is in it. */
  private slept: number

  constructor(private readonly machine = thisMachine) {
    this.base = machine.wall() - machine.running()
    this.slept = this.sleep()
  }

  /** The time in whole milliseconds since the epoch, as the clock of the machine showed it at the start. */
  now(): number {
    return Math.round(this.base + this.machine.running())
  }

  /** What the clock of the machine would have shown at a time of this clock, had it always been as it is now. */
  toWall(time: number): number {
    return time + this.step()
  }

  /** The other way round. */
  fromWall(wall: number): number {
    return wall - this.step()
  }

  read(): Reading {
    const { wall, uptime, boot } = this.machine
    return { time: this.now(), wall: wall(), uptime: uptime(), boot }
  }

  /** To be called every few seconds: follows the clock of the machine where it was not set, and makes up for sleep. */
  follow(): void {
    const ahead = this.ahead()
    if (Math.abs(ahead) < followed) this.base += ahead
    const slept = this.sleep()
    // The uptime may be that coarse.
    if (slept - this.slept > followed) {
      this.base += slept - this.slept
      this.slept = slept
    }
  }

  /** Goes on from what an earlier process read last. The time since then counts: by the clock of the machine if that was off meanwhile. */
  resume({ time, wall, uptime, boot }: Reading): void {
    const { machine } = this
    const isSameBoot = boot !== '' && boot === machine.boot
    this.set(time + Math.max(isSameBoot ? machine.uptime() - uptime : machine.wall() - wall, 0))
  }

  /** Goes by another relay's clock, as that was read some seconds ago. */
  adopt({ time, wall }: Reading): void {
    const age = this.machine.wall() - wall
    // The clocks of two machines may be hours apart.
    const present = Math.abs(age) < agreed ? time + age : time
    if (Math.abs(present - this.now()) > agreed) this.set(present)
  }

  /** Whether a reading is of no more use to a later process: it is old, or the clock of the machine was set since. */
  differs({ time, wall }: Reading): boolean {
    return this.now() - time > freshness || Math.abs(this.ahead() - (wall - time)) > followed
  }

  private set(time: number): void {
    this.base = time - this.machine.running()
  }

  /** How far the clock of the machine is ahead of this one. */
  private ahead(): number {
    return Math.round(this.machine.wall()) - this.now()
  }

  /** The same, as far as it is more than the clocks differ anyway. */
  private step(): number {
    const ahead = this.ahead()
    return Math.abs(ahead) < followed ? 0 : ahead
  }

  /** For how long the machine has slept since the process was started, and some constant. */
  private sleep(): number {
    return this.machine.uptime() - this.machine.running()
  }
}

/** The kernel's name for this start of the machine (Linux: random(4)). */
function readBoot(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return ''
  }
}
