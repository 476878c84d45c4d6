import { Universal, type Bot, type Context } from 'koishi'
import { describeError, type Log } from '../../lib/log'
import { connectionMode, dials, hasRequest, wireOf, type ConnectionMode } from './private-fields'
import { attend } from './restarts'
import { socketState, type Wire } from './wire'
import { say } from '../../texts/text'

/** The time between two pings, in milliseconds. */
const defaultHeartbeat = 15_000
/** How many pings in a row may stay unanswered before the connection is cut. */
const maxSilence = 3
/** How long a dial may take, in milliseconds. Without a limit, an unanswered one keeps a bot "connecting" for ever. */
const dialTimeout = 5_000
/** The longest wait before the first dial, and before any dial, in milliseconds: sends are to work again within ten seconds. */
const initialDelay = 500
const maxDelay = 5_000
/** How often a reverse connection that is not online is checked, in milliseconds: some of its failures change no status. */
const checkInterval = 1_000

/** The forward bots that a person has stopped. It outlives a reload of the plugin, so that the reload does not start them. */
const stopped = new WeakSet<Bot>()

/** The bots that had the adapter's way to make calls. For other bots its absence means nothing: their adapter may keep it elsewhere. */
const known = new WeakSet<Bot>()

/**
 * Keeps OneBot bots connected until the plugin is disposed. Adapter-onebot 6.9.4 does not dial again after the other side closed a forward
 * connection (upstream/01) or a login failed (upstream/21). A reverse connection that closes after its successor has opened takes away the
 * successor's way to make calls (upstream/04). Bots over HTTP, and forward bots that a person has stopped, are left alone. Koishi ignores a
 * stop of a bot that is offline.
 *
 * @param heartbeat the time between two pings, in milliseconds
 */
export function keepConnected(ctx: Context, logger: Log, heartbeat = defaultHeartbeat): void {
  const { keepers, begin } = attend(ctx, bot => {
    const mode = connectionMode(bot)
    return mode && new Supervisor(bot, mode, logger, heartbeat)
  })
  // A later bot is noticed by its first change of status: when Koishi announces the bot, its platform is not known yet (upstream/12).
  ctx.on('ready', begin)
  ctx.on('http/websocket-init', (url, options) => {
    if ([...keepers.keys()].some(bot => dials(bot, url))) options.handshakeTimeout ??= dialTimeout
  })
}

/** Brings one bot back whenever its connection is lost, until it is disposed. */
class Supervisor {
  private timer: NodeJS.Timeout | undefined
  private endHeartbeat: (() => void) | undefined
  private tries = 0
  /** Whether the log has reported a problem of the bot, and not yet that the bot is back. */
  private isReported = false
  private isDisposed = false
  /** When the present dial began, on the monotonic clock; `-Infinity` when none is under way. */
  private dialled = -Infinity
  /** The connection that was asked to close. */
  private closing: Wire | undefined

  constructor(
    private readonly bot: Bot, private readonly mode: ConnectionMode, private readonly logger: Log, private readonly heartbeat: number,
  ) {
    if (bot.isActive) stopped.delete(bot)
  }

  /** To be called whenever the status of the bot has changed. */
  update(): void {
    this.endWatch()
    switch (this.bot.status) {
      case Universal.Status.ONLINE:
        this.onOnline()
        return
      case Universal.Status.DISCONNECT:
        // Only a stop by a person leads to this status.
        if (this.mode === 'forward') stopped.add(this.bot)
        this.reset()
        return
      case Universal.Status.CONNECT:
        stopped.delete(this.bot)
        this.dialled = performance.now()
        break
      case Universal.Status.RECONNECT:
        // The adapter dials a forward bot again, up to once a minute for ever, without a change of status. Offline, the bot ends that.
        this.dialled = -Infinity
        this.soon(Universal.Status.RECONNECT, () => this.bot.offline())
        break
      case Universal.Status.OFFLINE:
        break
    }
    this.schedule()
  }

  dispose(): void {
    this.isDisposed = true
    this.endWatch()
  }

  private onOnline(): void {
    // A person stopped the bot during a dial, which the adapter does not cancel (upstream/02), or the login succeeded after its connection
    // had closed (upstream/20).
    const isStopped = stopped.has(this.bot)
    if (isStopped || this.hasLostRequest()) {
      this.soon(Universal.Status.ONLINE, () => isStopped ? this.bot.stop() : this.bot.offline())
      return
    }
    if (this.isReported) this.logger.info(say('bot-back', { bot: this.bot.sid }))
    this.reset()
    this.dialled = -Infinity
    const wire = wireOf(this.bot)
    this.endHeartbeat = wire && watchHeartbeat(wire, this.heartbeat)
  }

  private schedule(): void {
    const isForward = this.mode === 'forward'
    if (isForward && (this.bot.status !== Universal.Status.OFFLINE || stopped.has(this.bot))) return
    this.timer = setTimeout(() => this.check(), isForward ? redialDelay(this.tries, Math.random()) : checkInterval)
  }

  /** Closes a connection that is of no use; dials when there is none. */
  private check(): void {
    const wire = wireOf(this.bot)
    if (wire && this.isUseless(wire)) {
      this.report('bot-connection-broken')
      this.dialled = -Infinity
      this.close(wire)
    } else if (this.mode === 'forward' && !this.mayBeDialling()) {
      this.report('bot-not-connected')
      this.tries++
      this.soon(Universal.Status.OFFLINE, () => this.bot.start())
      return
    }
    this.schedule()
  }

  /**
   * Whether a dial may be under way although the bot is offline, because the connection before it has only now ended. Two dials at once
   * would make two connections, of which the adapter forgets one.
   */
  private mayBeDialling(): boolean {
    return performance.now() < this.dialled + dialTimeout
  }

  /** Whether a connection is still there without hope: it does not close, it has no way to make calls, or its login or dial has failed. */
  private isUseless(wire: Wire): boolean {
    const { readyState } = wire.socket
    const hasFailed = this.bot.error !== undefined
    if (readyState === socketState.closed) return false
    if (wire === this.closing) return true
    if (this.mode === 'forward') return hasFailed || !this.mayBeDialling()
    return readyState === socketState.open && (this.hasLostRequest() || (hasFailed && this.bot.status === Universal.Status.OFFLINE))
  }

  private hasLostRequest(): boolean {
    if (hasRequest(this.bot)) known.add(this.bot)
    return known.has(this.bot) && !hasRequest(this.bot)
  }

  /** Closes a connection, the second time by force. A new one must not open before: the end of the old one would harm it. */
  private close(wire: Wire): void {
    if (this.closing === wire) wire.socket.terminate()
    else wire.socket.close()
    this.closing = wire
  }

  /** Acts after the adapter has finished its present step, if the bot then still has this status. */
  private soon(status: Universal.Status, act: () => unknown): void {
    const run = async (): Promise<void> => {
      await Promise.resolve()
      if (!this.isDisposed && this.bot.status === status) await act()
    }
    run().catch((error: unknown) => this.logger.warn(say('bot-step-failed', { bot: this.bot.sid }), describeError(error)))
  }

  private report(problem: 'bot-connection-broken' | 'bot-not-connected'): void {
    if (!this.isReported) this.logger.warn(say(problem, { bot: this.bot.sid }))
    this.isReported = true
  }

  private reset(): void {
    this.tries = 0
    this.isReported = false
    this.closing = undefined
  }

  private endWatch(): void {
    clearTimeout(this.timer)
    this.endHeartbeat?.()
    this.endHeartbeat = undefined
  }
}

/**
 * The wait before a bot is started again: twice as long each time, shortened by up to a half at random, so that many bots do not dial
 * together.
 *
 * @param tries how many tries have failed, from 0
 * @param random a number from 0 (included) to 1
 * @returns milliseconds
 */
export function redialDelay(tries: number, random: number): number {
  return Math.min(initialDelay * 2 ** tries, maxDelay) * (1 - random / 2)
}

/**
 * Cuts a connection whose other side vanished without closing it, as when its machine loses power: TCP alone needs a quarter of
 * an hour to notice. A side that has never answered a ping is spared, and so is one that is still receiving a message.
 *
 * @param interval between two pings, in milliseconds
 * @returns ends the watch
 */
export function watchHeartbeat(wire: Wire, interval: number): () => void {
  const { socket } = wire
  let { received } = wire
  let silence = 0
  let hasAnswered = false
  const onPong = (): void => {
    silence = 0
    hasAnswered = true
  }
  const timer = setInterval(() => {
    if (socket.readyState !== socketState.open) return
    // A large message stays in the buffer until its last byte has left, however slow the connection is.
    if (socket.bufferedAmount > 0 || wire.received !== received) silence = 0
    received = wire.received
    if (silence >= maxSilence && hasAnswered) socket.terminate()
    else socket.ping()
    silence++
  }, interval)
  socket.on('pong', onPong)
  return () => {
    clearInterval(timer)
    socket.off('pong', onPong)
  }
}
