import { Universal, type Bot, type Logger } from 'koishi'
import { hasRequest, socketOf, socketState, type LinkMode, type LinkSocket } from './link'
import { watchPulse } from './heartbeat'
import { dialTimeout, redialDelay } from './redial'

/** How often a reverse connection that is not in order is looked at, in milliseconds: some of its failures change no status. */
const checkInterval = 1_000

/** The forward bots that a person has stopped. Outlives a reload of the plugin, so that the reload does not start them. */
const stopped = new WeakSet<Bot>()

/** The bots that were seen with the adapter's way to make calls. Of others the lack of it means nothing: it may be elsewhere. */
const known = new WeakSet<Bot>()

/** Brings one bot back whenever its connection is lost, until it is disposed (OneBot guide, "Connections"). */
export class Supervisor {
  private timer: NodeJS.Timeout | undefined
  private endPulse: (() => void) | undefined
  private tries = 0
  private announced = false
  private disposed = false
  /** When the last dial began that is not known to have ended, on the clock of `performance.now()`. */
  private dialled = -Infinity
  /** The socket that was asked to close. */
  private closing: LinkSocket | undefined

  /**
   * @param bot not one of Koishi's proxies
   * @param pulse milliseconds between two looks at whether the other side is still there
   */
  constructor(
    private readonly bot: Bot,
    private readonly mode: LinkMode,
    private readonly logger: Logger,
    private readonly pulse: number,
  ) {}

  /** Takes a bot over as it is found. */
  begin(): void {
    if (this.bot.isActive) stopped.delete(this.bot)
    this.update()
  }

  /** To be called whenever the status of the bot has changed. */
  update(): void {
    this.rest()
    if (hasRequest(this.bot)) known.add(this.bot)
    switch (this.bot.status) {
      case Universal.Status.ONLINE:
        this.onOnline()
        return
      case Universal.Status.DISCONNECT:
        if (this.mode === 'forward') stopped.add(this.bot)
        this.reset()
        return
      case Universal.Status.CONNECT:
        stopped.delete(this.bot)
        this.dialled = performance.now()
        break
      case Universal.Status.RECONNECT:
        // The adapter's own tries end up a minute apart and are never given up, and it says nothing between two of them. Right
        // now none is under way, and a bot that is offline ends them; where a connection was closed, they are dead already.
        this.dialled = -Infinity
        if (this.mode === 'forward') this.soon(Universal.Status.RECONNECT, () => this.bot.offline())
        break
      case Universal.Status.OFFLINE:
        break
    }
    this.schedule()
  }

  dispose(): void {
    this.disposed = true
    this.rest()
  }

  private onOnline(): void {
    if (stopped.has(this.bot)) {
      // Stopped during a dial, which the adapter does not cancel.
      this.soon(Universal.Status.ONLINE, () => this.bot.stop())
      return
    }
    if (this.hasLostRequest()) {
      // Late news of a connection that is gone. Offline, it is looked after like any other.
      this.soon(Universal.Status.ONLINE, () => this.bot.offline())
      return
    }
    if (this.announced) this.logger.info('%s', `the bot ${this.bot.sid} is back`)
    this.reset()
    this.dialled = -Infinity
    const socket = socketOf(this.bot, this.mode)
    if (socket) this.endPulse = watchPulse(socket, this.pulse)
  }

  private schedule(): void {
    if (this.disposed) return
    if (this.mode === 'forward' && (this.bot.status !== Universal.Status.OFFLINE || stopped.has(this.bot))) return
    const delay = this.mode === 'forward' ? redialDelay(this.tries, Math.random()) : checkInterval
    this.timer = setTimeout(() => this.look(), delay)
  }

  /**
   * Whether a dial may still be under way although the bot is offline, as when the connection before it has only now ended.
   * Two dials at once would make two connections, of which the adapter forgets one.
   */
  private mayBeDialling(): boolean {
    return performance.now() < this.dialled + dialTimeout
  }

  private look(): void {
    if (hasRequest(this.bot)) known.add(this.bot)
    const socket = socketOf(this.bot, this.mode)
    const isOpen = socket !== undefined && socket.readyState !== socketState.closed
    if (isOpen && (this.mode === 'forward' || socket === this.closing || this.isOrphan(socket))) {
      this.announce('has a connection that cannot be used: closing it')
      this.dialled = -Infinity
      this.release(socket)
    } else if (this.mode === 'forward' && !this.mayBeDialling()) {
      this.announce('is not connected: trying until it is')
      this.tries++
      this.soon(Universal.Status.OFFLINE, () => this.bot.start())
      return
    }
    this.schedule()
  }

  /** Whether an open reverse connection will never be of use: the adapter lost its handle on it, or could not log in by it. */
  private isOrphan(socket: LinkSocket): boolean {
    if (socket.readyState !== socketState.open) return false
    const isRefused = this.bot.status === Universal.Status.OFFLINE && this.bot.error !== undefined
    return isRefused || this.hasLostRequest()
  }

  private hasLostRequest(): boolean {
    return known.has(this.bot) && !hasRequest(this.bot)
  }

  /** Closes it, by force when it did not close the first time. A new one must not open before: the old one's end would harm it. */
  private release(socket: LinkSocket): void {
    if (this.closing === socket) socket.terminate?.()
    else socket.close()
    this.closing = socket
  }

  /** Acts when the adapter is done with what it is doing, if the bot is then still in this status. */
  private soon(status: Universal.Status, act: () => unknown): void {
    const run = async (): Promise<void> => {
      await Promise.resolve()
      if (!this.disposed && this.bot.status === status) await act()
    }
    run().catch((error: unknown) => this.logger.warn(error))
  }

  private announce(what: string): void {
    if (!this.announced) this.logger.warn('%s', `the bot ${this.bot.sid} ${what}`)
    this.announced = true
  }

  private reset(): void {
    this.tries = 0
    this.announced = false
    this.closing = undefined
  }

  private rest(): void {
    clearTimeout(this.timer)
    this.endPulse?.()
    this.endPulse = undefined
  }
}
