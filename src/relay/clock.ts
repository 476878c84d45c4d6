import { uptime } from 'node:os'

/** A reading of both clocks at one moment, in milliseconds since the epoch. */
export interface Reading {
  /** By this clock. */
  time: number
  /** By the clock of the machine. */
  wall: number
}

/** Up to which difference this clock follows that of the machine, in milliseconds: what is kept in time by the network differs by less. */
const followed = 2_000
/** The same for the clocks of several relays, one of which may have died some seconds ago. */
const agreed = 30_000
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
  private sleptUntil: number

  /**
   * @param wall the clock of the machine, in milliseconds since the epoch
   * @param running one that nobody can set, in milliseconds
   * @param awake the same, in seconds, which goes on while the machine sleeps
   */
  constructor(
    private readonly wall: () => number = () => Date.now(),
    private readonly running: () => number = () => performance.now(),
    private readonly awake: () => number = uptime,
  ) {
    this.base = wall() - running()
    this.sleptUntil = this.slept()
  }

  /** The time in whole milliseconds since the epoch, as the clock of the machine showed it at the start. */
  now(): number {
    return Math.round(this.base + this.running())
  }

  /** What the clock of the machine would have shown at a time of this clock, had it always been as it is now. */
  toWall(time: number): number {
    const ahead = this.ahead()
    return Math.abs(ahead) < followed ? time : time + ahead
  }

  read(): Reading {
    return { time: this.now(), wall: this.wall() }
  }

  /** To be called every few seconds: follows the clock of the machine where it was not set, and makes up for sleep. */
  follow(): void {
    const ahead = this.ahead()
    if (Math.abs(ahead) < followed) this.base += ahead
    const slept = this.slept()
    // `uptime` may be that coarse.
    if (slept - this.sleptUntil > followed) {
      this.base += slept - this.sleptUntil
      this.sleptUntil = slept
    }
  }

  /** Goes on from what an earlier process read last; that it was away counts. */
  resume({ time, wall }: Reading): void {
    this.set(time + Math.max(this.wall() - wall, 0))
  }

  /** Goes by another relay's clock, as that was read some seconds ago. */
  adopt({ time, wall }: Reading): void {
    const age = this.wall() - wall
    // The clocks of two machines may be hours apart.
    const present = Math.abs(age) < agreed ? time + age : time
    if (Math.abs(present - this.now()) > agreed) this.set(present)
  }

  /** Whether a reading is of no more use to a later process: it is old, or the clock of the machine was set since. */
  differs({ time, wall }: Reading): boolean {
    return this.now() - time > freshness || Math.abs(this.ahead() - (wall - time)) > followed
  }

  private set(time: number): void {
    this.base = time - this.running()
  }

  /** How far the clock of the machine is ahead of this one. */
  private ahead(): number {
    return Math.round(this.wall()) - this.now()
  }

  private slept(): number {
    return this.awake() * 1000 - this.running()
  }
}
