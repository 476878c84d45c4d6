import type { WebSocket } from 'ws'
import type { Role } from './connections'
import { Dispatcher } from './dispatcher'
import { heartbeat, lifecycle } from './events'
import { settle, type Settings, type SimulatorOptions } from './options'
import { PageServer } from './page-server'
import { Platform, type Watcher } from './platform'
import { ReverseDialer } from './reverse'
import { Server } from './server'
import type { SwitchedOn, SwitchName } from './switches'
import type { Call, FaultHandle, FaultRule, LedgerEntry, Reacting, Saying, Target } from './types'
import type { Role as MemberRole } from './world'

/** A OneBot 11 platform on 127.0.0.1 that behaves like a real one, keeps a ledger of the delivered messages and fails on demand. */
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
    const attach = (socket: WebSocket, role: Role): void => {
      connections.attach(socket, [...firstFrames, JSON.stringify(lifecycle(selfId, settings.clock()))], role)
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
   * Starts a simulator; resolves when it listens.
   * @throws TypeError for impossible options; the error of `listen` (`EADDRINUSE`) if the port is in use
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

  /** The delivered messages and files, oldest first; a live view. */
  get ledger(): readonly LedgerEntry[] {
    return this.platform.ledger.items
  }

  /** All received calls, oldest first; a live view. */
  get calls(): readonly Call[] {
    return this.platform.calls.items
  }

  /** The slow calls that are not yet delivered or answered. */
  get pending(): readonly Call[] {
    return [...this.dispatcher.pending]
  }

  /** Open bot connections, forward and reverse. */
  get connections(): number {
    return this.platform.connections.size
  }

  /** The switches that are on, including those set on the page. */
  get switches(): readonly SwitchedOn[] {
    return this.platform.switches.list
  }

  /** Registers a fault. The first live rule that matches a call applies. */
  fault(rule: FaultRule): FaultHandle {
    return this.dispatcher.faults.add(rule)
  }

  clearFaults(): void {
    this.dispatcher.faults.clear()
  }

  /** Posts a message of a member or, without a group, of a friend. Returns the message ID. */
  say(message: Saying): number {
    return this.platform.say(message)
  }

  /** Lets a member react to a message in a group, or end that. @throws TypeError without such a message */
  react(reacting: Reacting): void {
    this.platform.react(reacting)
  }

  /** Sends a raw frame to every bot. It need not be OneBot. */
  transmit(frame: string): void {
    this.platform.connections.broadcastFrame(frame)
  }

  /** Sets a switch, for one chat or for all: `turn('loggedOut', true)`. They are documented in `switches.ts`. */
  turn(name: SwitchName, on: boolean, target: Target | null = null): void {
    this.platform.switches.turn({ name, target }, on)
  }

  /** Mutes the bot in a group, by default for a day, or unmutes it. A muted bot's sends are refused with the profile's wording. */
  mute(group: string, muted: boolean, seconds?: number): void {
    this.platform.switches.turn({ name: 'muted', target: { type: 'group', id: group } }, muted, seconds)
  }

  /** Sets the bot's role in a group. An admin or the owner may speak while everybody is muted. */
  setRole(group: string, role: MemberRole): void {
    this.platform.world.ensureGroup(group).role = role
  }

  /** Removes the bot from a group. Its sends are then refused with the profile's wording. */
  removeBot(group: string): void {
    this.platform.world.ensureGroup(group).hasBot = false
  }

  /** Drops the bots' connections but keeps listening; abruptly, or with a closing handshake if a code is given. */
  disconnectAll(code?: number): void {
    this.platform.connections.dropAll(code)
  }

  /** Limits the history of each chat to its newest messages, as after a restart of the platform. */
  forgetHistory(kept = 0): void {
    this.platform.messages.forget(kept)
  }

  /** Stops listening and dialling and drops every connection, as in a restart of OneBot. Messages are kept. */
  async goOffline(): Promise<void> {
    if (this.heartbeat !== null) clearInterval(this.heartbeat)
    this.heartbeat = null
    this.dialer?.stop()
    this.platform.connections.dropAll()
    await this.server.stop()
  }

  /** Listens on the same port again. Rejects if another program uses it. */
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

  /** Resolves once the predicate holds; rejects after `timeoutMs`. The predicate is checked on every call, delivery and connection. */
  until(predicate: (simulator: Simulator) => boolean, timeoutMs = 5000): Promise<void> {
    return this.platform.waiters.wait(() => predicate(this), timeoutMs, predicate.toString())
  }

  /** Notifies a watcher of changes on the platform. The returned function removes the watcher. */
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

  /** Ends all sockets, timers and downloads. May be called twice. */
  async close(): Promise<void> {
    this.platform.timers.clear()
    await this.goOffline()
    await this.platform.close()
  }
}
