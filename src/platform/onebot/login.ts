import type { Bot, Context } from 'koishi'
import { within } from '../../lib/async'
import { unwrap } from '../../lib/koishi'
import { fieldsOf, toText, type JsonObject } from '../../lib/shape'
import type { Reason } from '../../message/causes'
import { cleanWording } from '../failure'
import { hasRequest, isOneBot, request, wireOf } from '../keeper/private-fields'
import { wireEvents, type Wire } from '../keeper/wire'
import { SendError } from '../port'
import type { Presence } from '../presence'

/** The time between two looks, and how long `get_status` may take, in milliseconds. */
const defaultInterval = 10_000
/** A heartbeat is due by this many looks. After that, `get_status` is asked at every third look. */
const quietLooks = 6
/** So many calls without an answer make a login doubtful; so many questions without one make a platform silent. */
const mostUnanswered = 2

/** The logins by their bots. They outlive a reload of the plugin, because calls under way do. */
const logins = new WeakMap<Bot, Login>()

/**
 * Whether the account of a bot is logged in. QQ may log an account out while the connection to the platform stays: NapCat then sends the
 * notice `bot_offline`, and has `online: false` in its heartbeats and in the answer to `get_status`. Lagrange has the notices `bot_offline`
 * and `bot_online` only. A platform that knows none of them counts as logged in while it is connected. A platform that answered
 * `get_status` before and answers nothing any more counts as offline.
 */
export class Login {
  /** When the calls that have no answer yet were made, on the monotonic clock. */
  private readonly calls = new Set<{ since: number }>()
  /** How many calls have ended without an answer since the platform was asked last. */
  private unanswered = 0
  /** How many looks there were since the last heartbeat, or since the connection was made. */
  private looks = 0
  /** Whether a heartbeat said `online: true` last. It counts for more than `get_status`, which says `false` before it knows. */
  private isVouched = false
  /** Whether the platform has reported that it lost the account, and not yet that it is back. */
  private isLost = false
  private hasAnswered = false
  private silences = 0
  private isAsking = false
  private fault: Reason | undefined

  private constructor(private readonly bot: Bot, private readonly presence: Presence) {}

  static of(bot: Bot, presence: Presence): Login {
    const login = logins.get(bot) ?? new Login(bot, presence)
    logins.set(bot, login)
    return login
  }

  /** Follows a send to its end, which may tell something about the login. */
  async follow<T>(send: Promise<T>): Promise<T> {
    const call = { since: performance.now() }
    this.calls.add(call)
    try {
      return await send
    } catch (error) {
      // The caller learns of its failure before it learns that the account is offline.
      if (error instanceof SendError) setImmediate(() => this.onFailure(error))
      throw error
    } finally {
      this.calls.delete(call)
    }
  }

  /** Takes an event of the platform. */
  hear({ self_id: selfId, post_type: type, meta_event_type: meta, notice_type: notice, status, tag, message }: JsonObject): void {
    if (toText(selfId) !== this.bot.selfId) return
    if (type === 'notice' && notice === 'bot_offline') {
      const words = cleanWording([tag, message].map(toText).filter(Boolean).join(': '))
      this.isVouched = false
      this.isLost = true
      this.tell({ cause: 'kicked', ...words !== undefined && { words } })
    } else if (type === 'notice' && notice === 'bot_online') {
      this.isLost = false
      this.tell(undefined)
    } else if (type === 'meta_event' && meta === 'heartbeat') {
      const online = this.onlineOf(status)
      this.looks = this.silences = 0
      this.isVouched = online === true
      if (online === false) this.tell(this.reason({ cause: 'kicked' }))
      else if (online === true || this.fault?.cause === 'silent') this.tell(undefined)
    }
  }

  /** To be called when the bot has connected. */
  onConnected(): void {
    this.looks = this.silences = 0
    this.hasAnswered = this.isVouched = this.isLost = false
    if (this.fault?.cause === 'silent') this.tell(undefined)
  }

  /** To be called at regular intervals while the bot is connected. */
  look(interval: number): void {
    this.looks++
    const isQuiet = this.looks >= quietLooks
    if (isQuiet) this.isVouched = false
    const old = performance.now() - interval
    const late = [...this.calls].filter(({ since }) => since < old).length
    const isDue = this.fault !== undefined || (isQuiet && this.looks % 3 === 0)
    if (isDue || late + this.unanswered >= mostUnanswered) void this.ask(interval)
  }

  private onFailure({ causeId, outcome, words }: SendError): void {
    if (causeId === 'logged-out') this.tell(this.reason({ cause: causeId, ...words !== undefined && { words } }))
    else if (outcome === 'unanswered') this.unanswered++
  }

  private async ask(interval: number): Promise<void> {
    if (this.isAsking || !hasRequest(this.bot)) return
    this.isAsking = true
    this.unanswered = 0
    const wire = wireOf(this.bot)
    const received = wire?.received
    const answer = await within(() => request(this.bot, 'get_status', {}), interval)
    this.isAsking = false
    if (answer === undefined) {
      // Another frame shows that the platform is at work, and the question may still stand behind a large picture.
      const isSilent = !wire || (wire.received === received && wire.socket.bufferedAmount === 0)
      if (isSilent && this.hasAnswered && ++this.silences >= mostUnanswered) this.tell(this.fault ?? { cause: 'silent' })
      return
    }
    this.hasAnswered = true
    this.silences = 0
    const online = this.onlineOf(fieldsOf(answer).data)
    if (online !== false) this.tell(undefined)
    else if (!this.isVouched) this.tell(this.reason({ cause: 'kicked' }))
  }

  /**
   * What a status says of the login. Lagrange says `online: true` whatever happens, so that its notices count: unlike go-cqhttp it has no
   * `stat`, and unlike NapCat it has `app_initialized`. Source: LagrangeDev/Lagrange.Core, branch v1,
   * `Lagrange.OneBot/Core/Network/Service/ForwardWSService.cs`, `Core/Operation/Info/GetStatusOperation.cs`.
   */
  private onlineOf(status: unknown): unknown {
    const { online, app_initialized: isInitialized, stat } = fieldsOf(status)
    return this.isLost && isInitialized !== undefined && stat === undefined ? false : online
  }

  /** The words of the platform, where it has told some, say more than what was found out since. */
  private reason(found: Reason): Reason {
    return !this.fault || this.fault.cause === 'silent' ? found : this.fault
  }

  private tell(fault: Reason | undefined): void {
    this.fault = fault
    this.presence.report(this.bot, fault)
  }
}

/**
 * Watches whether the accounts of the connected OneBot bots are logged in, until the context is disposed.
 *
 * @param interval the time between two looks, in milliseconds
 */
export function watchLogins(ctx: Context, presence: Presence, interval = defaultInterval): void {
  const connected = (): Bot[] => unwrap(ctx.bots).map(unwrap).filter(isConnected)
  // An older connection, of another OneBot that has lost the account, does not count.
  const onEvent = (wire: Wire, event: JsonObject): void => {
    for (const bot of connected()) if (wireOf(bot) === wire) Login.of(bot, presence).hear(event)
  }
  wireEvents.on('event', onEvent)
  ctx.on('dispose', () => void wireEvents.off('event', onEvent))
  ctx.on('bot-status-updated', bot => {
    if (isConnected(bot)) Login.of(unwrap(bot), presence).onConnected()
  })
  ctx.setInterval(() => {
    for (const bot of connected()) Login.of(bot, presence).look(interval)
  }, interval)
}

function isConnected(bot: Bot): boolean {
  return isOneBot(bot) && hasRequest(bot)
}
