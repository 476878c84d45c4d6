import { Universal, type Bot, type Context, type Logger } from 'koishi'
import { unwrap } from '../../lib/unwrap'
import { connectionMode, dials, hasRequest, socketOf, type AdapterSocket, type ConnectionMode } from './adapter'
import { socketState, Wire, type WireSocket } from './wire'

/** How often it is made sure that the other side is still there, in milliseconds. */
const defaultHeartbeat = 15_000
/** After how many silent intervals in a row the other side is taken for gone. */
const maxSilence = 3
/** How long a dial may take, in milliseconds. Without a limit one that is never answered keeps a bot "connecting" for good. */
const dialTimeout = 5_000
/** The longest wait before the first dial, and the longest at all, in milliseconds: sends are to work again within ten seconds. */
const initialDelay = 500
const maxDelay = 5_000
/** How often a reverse connection that is not in order is looked at, in milliseconds: some of its failures change no status. */
const checkInterval = 1_000

/** The forward bots that a person has stopped. Outlives a reload of the plugin, so that the reload does not start them. */
const stopped = new WeakSet<Bot>()

/** The bots that were seen with the adapter's way to make calls. Of others the lack of it means nothing: it may be elsewhere. */
const known = new WeakSet<Bot>()

/**
 * Keeps OneBot bots connected until the plugin is disposed. Adapter-onebot 6.9.4 does not dial again after a forward connection was
 * closed by the other side; a reverse connection that closes after its successor has opened takes the successor's way to make calls
 * away. Bots over HTTP, and forward ones that a person has stopped, are left alone. A stop of a bot that is offline anyway is none:
 * Koishi ignores it.
 *
 * @param heartbeat milliseconds between two looks at whether the other side of a connection is still there
 */
export function keepConnected(ctx: Context, logger: Logger, heartbeat = defaultHeartbeat): void {
  const bots = unwrap(ctx.bots)
  const supervisors = new Map<Bot, Supervisor>()

  /** The one that looks after this bot; `undefined` when none has to. */
  const supervise = (bot: Bot): Supervisor | undefined => {
    const mode = connectionMode(bot)
    // While an adapter is reloaded, the last changes of the old bot are announced in the name of the new one.
    if (!mode || !bots.some(each => unwrap(each) === bot)) return
    const supervisor = supervisors.get(bot) ?? new Supervisor(bot, mode, logger, heartbeat)
    supervisors.set(bot, supervisor)
    return supervisor
  }

  ctx.on('ready', () => {
    for (const bot of bots) supervise(unwrap(bot))?.begin()
  })
  // A bot that is added later is noticed by its first change of status: when it is announced, its platform is not known yet.
  ctx.on('bot-status-updated', bot => supervise(unwrap(bot))?.update())
  ctx.on('bot-removed', bot => {
    supervisors.get(unwrap(bot))?.dispose()
    supervisors.delete(unwrap(bot))
  })
  ctx.on('http/websocket-init', (url, options) => {
    for (const bot of supervisors.keys()) {
      if (dials(bot, url)) options.handshakeTimeout ??= dialTimeout
    }
  })
  ctx.on('dispose', () => {
    for (const supervisor of supervisors.values()) supervisor.dispose()
    supervisors.clear()
  })
}

/** Brings one bot back whenever its connection is lost, until it is disposed. */
class Supervisor {
  private timer: NodeJS.Timeout | undefined
  private endHeartbeat: (() => void) | undefined
  private tries = 0
  /** Whether the log says that the bot has a problem, and not yet that it is back. */
  private isReported = false
  private isDisposed = false
  /** When the last dial began that is not known to have ended, on the clock of `performance.now()`. */
  private dialled = -Infinity
  /** The socket that was asked to close. */
  private closing: AdapterSocket | undefined

  /**
   * @param bot not one of Koishi's proxies
   * @param heartbeat milliseconds between two looks at whether the other side is still there
   */
  constructor(
    private readonly bot: Bot,
    private readonly mode: ConnectionMode,
    private readonly logger: Logger,
    private readonly heartbeat: number,
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
        // Only a stop by a person comes by this status.
        if (this.mode === 'forward') stopped.add(this.bot)
        this.reset()
        return
      case Universal.Status.CONNECT:
        stopped.delete(this.bot)
        this.dialled = performance.now()
        break
      case Universal.Status.RECONNECT:
        // The adapter's own tries end up a minute apart and are never given up, and it tells nothing between two of them. Right
        // now none is under way, and a bot that is offline ends them; where a connection was closed, they have ended already.
        this.dialled = -Infinity
        if (this.mode === 'forward') this.soon(Universal.Status.RECONNECT, () => this.bot.offline())
        break
      case Universal.Status.OFFLINE:
        break
    }
    this.schedule()
  }

  dispose(): void {
    this.isDisposed = true
    this.rest()
  }

  private onOnline(): void {
    if (stopped.has(this.bot)) {
      // Stopped during a dial, which the adapter does not cancel.
      this.soon(Universal.Status.ONLINE, () => this.bot.stop())
      return
    }
    if (this.hasLostRequest()) {
      // The login succeeded late, over a connection that is gone. Offline, the bot is looked after like any other.
      this.soon(Universal.Status.ONLINE, () => this.bot.offline())
      return
    }
    if (this.isReported) this.logger.info('%s', `the bot ${this.bot.sid} is back`)
    this.reset()
    this.dialled = -Infinity
    const socket = socketOf(this.bot, this.mode)
    if (socket) this.endHeartbeat = watchHeartbeat(socket, this.heartbeat)
  }

  private schedule(): void {
    if (this.isDisposed) return
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

  /** Looks what keeps the bot from being online, and does something about it. */
  private look(): void {
    if (hasRequest(this.bot)) known.add(this.bot)
    const socket = socketOf(this.bot, this.mode)
    const isOpen = socket !== undefined && socket.readyState !== socketState.closed
    if (isOpen && (socket === this.closing || this.isUseless(socket))) {
      this.report('has a connection that cannot be used: closing it')
      this.dialled = -Infinity
      this.close(socket)
    } else if (this.mode === 'forward' && !this.mayBeDialling()) {
      this.report('is not connected: trying until it is')
      this.tries++
      this.soon(Universal.Status.OFFLINE, () => this.bot.start())
      return
    }
    this.schedule()
  }

  /**
   * Whether a connection that is not closed will never be of use: the adapter lost its way to make calls, could not log in by it, or, where
   * it was dialled, does so no more.
   */
  private isUseless(socket: AdapterSocket): boolean {
    if (this.mode === 'forward') return this.bot.error !== undefined || !this.mayBeDialling()
    if (socket.readyState !== socketState.open) return false
    const isRefused = this.bot.status === Universal.Status.OFFLINE && this.bot.error !== undefined
    return isRefused || this.hasLostRequest()
  }

  private hasLostRequest(): boolean {
    return known.has(this.bot) && !hasRequest(this.bot)
  }

  /** Closes it, by force when it did not close the first time. A new one must not open before: the old one's end would harm it. */
  private close(socket: AdapterSocket): void {
    if (this.closing === socket) socket.terminate?.()
    else socket.close()
    this.closing = socket
  }

  /** Acts when the adapter is done with what it is doing, if the bot is then still in this status. */
  private soon(status: Universal.Status, act: () => unknown): void {
    const run = async (): Promise<void> => {
      await Promise.resolve()
      if (!this.isDisposed && this.bot.status === status) await act()
    }
    run().catch((error: unknown) => this.logger.warn(error))
  }

  private report(what: string): void {
    if (!this.isReported) this.logger.warn('%s', `the bot ${this.bot.sid} ${what}`)
    this.isReported = true
  }

  private reset(): void {
    this.tries = 0
    this.isReported = false
    this.closing = undefined
  }

  private rest(): void {
    clearTimeout(this.timer)
    this.endHeartbeat?.()
    this.endHeartbeat = undefined
  }
}

/**
 * How long to wait before a bot is started again: twice as long each time, shortened by up to a half at random so that many
 * bots do not dial together.
 *
 * @param tries how many tries have failed so far, from 0
 * @param random a number from 0 (included) to 1
 * @returns milliseconds
 */
export function redialDelay(tries: number, random: number): number {
  return Math.min(initialDelay * 2 ** tries, maxDelay) * (1 - random / 2)
}

/** What a heartbeat needs beyond an AdapterSocket: the methods of the library `ws`, which answers pings by itself. */
interface PingSocket extends AdapterSocket, WireSocket {
  readonly bufferedAmount: number
  ping(): void
  terminate(): void
  on(event: string, listener: () => void): void
  off(event: string, listener: () => void): void
}

/**
 * Cuts a connection whose other side vanished without closing it, as when its machine loses power: TCP alone needs a quarter of
 * an hour to notice. A side that has never answered a ping is let be, and so is one to which a message is on its way.
 *
 * @param interval between two pings, in milliseconds
 * @returns what ends the watch
 */
export function watchHeartbeat(socket: AdapterSocket, interval: number): () => void {
  if (!isPingSocket(socket)) return () => undefined
  // The socket does not tell others of the answers that the wire takes.
  const wire = Wire.of(socket)
  let received = wire.received
  let silence = 0
  let answers = false
  const onPong = (): void => {
    silence = 0
    answers = true
  }
  const timer = setInterval(() => {
    if (socket.readyState !== socketState.open) return
    // A large message counts in full until its last byte has left, and a slow one is no reason to cut it.
    if (socket.bufferedAmount > 0 || wire.received !== received) silence = 0
    received = wire.received
    if (silence >= maxSilence && answers) socket.terminate()
    else socket.ping()
    silence++
  }, interval)
  socket.on('pong', onPong)
  return () => {
    clearInterval(timer)
    socket.off('pong', onPong)
  }
}

function isPingSocket(socket: AdapterSocket): socket is PingSocket {
  return typeof Reflect.get(socket, 'bufferedAmount') === 'number'
    && ['ping', 'terminate', 'on', 'off', 'once', 'emit', 'send'].every(name => typeof Reflect.get(socket, name) === 'function')
}
