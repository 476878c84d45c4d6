import { Dispatcher } from './dispatcher'
import { heartbeat, lifecycle } from './events'
import { settle, type Settings, type SimulatorOptions } from './options'
import { PageServer } from './page-server'
import { Platform, type Watcher } from './platform'
import { ReverseDialer } from './reverse'
import { Server } from './server'
import type { SwitchedOn, SwitchName } from './switches'
import type { Call, FaultHandle, FaultRule, LedgerEntry, Saying, Target } from './types'
import type { Role } from './world'

/**
 * A OneBot 11 platform on 127.0.0.1 that behaves like a real one, keeps a ledger of what was delivered and fails on demand.
 */
export class Simulator {
  readonly selfId: string
  private readonly platform: Platform
  private readonly dispatcher: Dispatcher
  private readonly server: Server
  private readonly page: PageServer
  private readonly dialer: ReverseDialer | null
  private heartbeat: NodeJS.Timeout | null = null
  private currentPort = 0

  private constructor(private readonly settings: Settings) {
    const { selfId, token, reverse, firstFrames } = settings
    this.selfId = selfId
    this.platform = new Platform(settings, (connection, text) => {
      this.dispatcher.receive(connection, text)
    })
    this.dispatcher = new Dispatcher(this.platform)
    this.page = new PageServer(this.platform, () => this.endpoint)
    const { profile, connections, switches } = this.platform
    const isOffline = (): boolean => switches.isOn('offline', null)
    const attach = (socket: Parameters<typeof connections.attach>[0]): void => {
      connections.attach(socket, [...firstFrames, JSON.stringify(lifecycle(selfId, settings.clock()))])
    }
    this.server = new Server({
      profile,
      token,
      isOffline,
      onSocket: attach,
      onRequest: (request, response) => {
        this.page.serve(request, response)
      },
    })
    this.dialer = reverse === null ? null : new ReverseDialer(reverse, selfId, profile.maxFrame, { isOffline, onSocket: attach })
  }

  /**
   * Starts one; resolves when it listens.
   * @throws TypeError for impossible options; the error of `listen` (`EADDRINUSE`) when the port is taken
   */
  static async start(options: SimulatorOptions = {}): Promise<Simulator> {
    const simulator = new Simulator(settle(options))
    await simulator.goOnline()
    return simulator
  }

  /** Port on 127.0.0.1. */
  get port(): number {
    return this.currentPort
  }

  /** WebSocket address for the bot. */
  get endpoint(): string {
    return `ws://127.0.0.1:${this.currentPort}`
  }

  /** Address of the page that shows the chats. */
  get pageUrl(): string {
    return `http://127.0.0.1:${this.currentPort}/simulator/`
  }

  /** What was delivered, oldest first; a live view. */
  get ledger(): readonly LedgerEntry[] {
    return this.platform.ledger.items
  }

  /** Every call received, oldest first; a live view. */
  get calls(): readonly Call[] {
    return this.platform.calls.items
  }

  /** The calls that are still to be delivered or answered because they are slow. */
  get pending(): readonly Call[] {
    return [...this.dispatcher.pending]
  }

  /** Open bot connections, forward and reverse. */
  get connections(): number {
    return this.platform.connections.size
  }

  /** The switches that are on, those of the page among them. */
  get switches(): readonly SwitchedOn[] {
    return this.platform.switches.list
  }

  /** Registers a fault; the first live rule that matches a call wins. */
  fault(rule: FaultRule): FaultHandle {
    return this.dispatcher.faults.add(rule)
  }

  clearFaults(): void {
    this.dispatcher.faults.clear()
  }

  /** A member, or a friend when no group is given, says something. Returns the message id. */
  say(message: Saying): number {
    return this.platform.say(message)
  }

  /** Sends every bot a frame as it is, which need not be OneBot. */
  transmit(frame: string): void {
    this.platform.connections.broadcastFrame(frame)
  }

  /** Turns a switch, for one chat or for all: `turn('loggedOut', true)`. Each is explained in `switches.ts`. */
  turn(name: SwitchName, on: boolean, target: Target | null = null): void {
    this.platform.switches.turn({ name, target }, on)
  }

  /** Mutes the bot in a group, for a day unless told otherwise, or lets it speak again: sends are refused as the profile words it. */
  mute(group: string, muted: boolean, seconds?: number): void {
    this.platform.switches.turn({ name: 'muted', target: { type: 'group', id: group } }, muted, seconds)
  }

  /** Makes the bot an admin or the owner of a group, who may speak while everybody is muted, or a member again. */
  setRole(group: string, role: Role): void {
    this.platform.world.ensureGroup(group).role = role
  }

  /** Takes the bot out of a group: sends are refused as the profile words it. */
  removeBot(group: string): void {
    this.platform.world.ensureGroup(group).hasBot = false
  }

  /** Drops the bots' connections but keeps listening; abruptly, or with a closing handshake when a code is given. */
  disconnectAll(code?: number): void {
    this.platform.connections.dropAll(code)
  }

  /** Leaves only the newest messages of each chat in its history, as a platform that has just been started may have it. */
  forgetHistory(kept = 0): void {
    this.platform.messages.forget(kept)
  }

  /** Stops listening and dialling and drops every connection, as when OneBot is restarted. What was said is kept. */
  async goOffline(): Promise<void> {
    if (this.heartbeat !== null) clearInterval(this.heartbeat)
    this.heartbeat = null
    this.dialer?.stop()
    this.platform.connections.dropAll()
    await this.server.stop()
  }

  /** Comes back on the same port. Rejects when another program has taken it meanwhile. */
  async goOnline(): Promise<void> {
    if (this.heartbeat !== null) return
    const { selfId, heartbeatInterval, port, clock } = this.settings
    this.currentPort = await this.server.listen(this.currentPort === 0 ? port : this.currentPort)
    this.platform.origin = `http://127.0.0.1:${this.currentPort}`
    this.heartbeat = setInterval(() => {
      this.platform.connections.broadcast(heartbeat(selfId, clock(), heartbeatInterval, this.platform.isOnline))
    }, heartbeatInterval)
    this.dialer?.start()
  }

  /** Resolves once the predicate holds, looked at again on every call, delivery and connection; rejects after `timeoutMs`. */
  until(predicate: (simulator: Simulator) => boolean, timeoutMs = 5000): Promise<void> {
    return this.platform.waiters.wait(() => predicate(this), timeoutMs, predicate.toString())
  }

  /** Tells of what happens on the platform; the returned function ends that. */
  watch(watcher: Watcher): () => void {
    this.platform.watchers.add(watcher)
    return () => {
      this.platform.watchers.delete(watcher)
    }
  }

  /** Empties the ledger and the list of calls. */
  clear(): void {
    this.platform.ledger.clear()
    this.platform.calls.clear()
  }

  /** Ends everything that was started: sockets, timers, downloads. May be called twice. */
  async close(): Promise<void> {
    this.platform.timers.clear()
    await this.goOffline()
    await this.platform.close()
  }
}
