import { RelayError, type Outcome } from '../../src/errors'
import type { Address, Item, MessageRequest } from '../../src/message/model'
import type { LoadedItem } from '../../src/platform/port'
import { isUnfinished, outcomeOf, type Delivery } from '../../src/relay/delivery/delivery'
import { Memory } from '../../src/relay/core'
import { tellAll, type Submission, type Submitted } from '../../src/relay/options'
import { Relay } from '../../src/relay/relay'
import type { Storage } from '../../src/relay/store/store'
import { Random } from '../faults/random'
import { TestFolder, TestStorage } from '../support/store'
import { Machine, ProcessClock, RelayClock, Timeline } from './clock'
import { mediaSettle, type Disturbance, type Moment, type Plan, type PlannedItem, type PlannedOperation, type PlannedRequest, type PlannedWishes } from './plan'
import { chatName, markSign, Platform, type Call, type Entry, type Question } from './platform'
import { words } from '../../src/texts/text'

/** The answer that a caller got. */
export type Word
  = | { kind: 'accepted', id: string }
    | { kind: 'results', id: string, isReplay: boolean, outcomes: readonly Outcome[], messageIds: readonly (readonly string[])[] }
    /** The request itself failed. Without an outcome, the answer tells nothing of the message. */
    | { kind: 'failed', code: string, outcome: Outcome | undefined, retryAfter: boolean }

/** One request of a caller, first or repeated. */
export interface Issue {
  readonly at: number
  /** `at` by the clock of the relay's machine. */
  readonly wall: number
  /** The ID of the delivery, if the request creates one. */
  readonly id: string
  readonly process: ProcessClock
  word?: Word & { at: number }
}

/** A request with all its repeats. */
export interface Account {
  readonly request: PlannedRequest
  /** The marks of its items, by their places. */
  readonly marks: readonly string[]
  readonly issues: Issue[]
  /** The retries and withdrawals of an operator. */
  readonly operations: { at: number, id: string, kind: PlannedOperation['kind'], result: string }[]
  /** The last state of the record. */
  record?: Delivery | undefined
  /** The record of the digest that contained the message. */
  digest?: Delivery
}

/** A process has got the folder. */
export interface Acquisition {
  readonly at: number
  readonly process: ProcessClock
  /** Whether it could open the file. */
  readonly isOpen: boolean
}

/** What was committed since a time is lost, because it was not flushed. */
export interface Loss {
  readonly at: number
  readonly since: number
}

/** The result of a plan. */
export interface Run {
  readonly plan: Plan
  readonly accounts: readonly Account[]
  readonly ledger: readonly Entry[]
  readonly calls: readonly Call[]
  readonly questions: readonly Question[]
  /** When the platform told that a chat was open again, in a report or an answer. */
  readonly openings: readonly { chat: string, at: number }[]
  readonly acquisitions: readonly Acquisition[]
  readonly losses: readonly Loss[]
  /** When processes were killed, lost their power, were stopped or reloaded. */
  readonly endings: readonly { at: number, process: ProcessClock, kind: string }[]
  /** When accounts became restricted, also by the clock of their relay. */
  readonly restrictions: readonly { at: number, process: ProcessClock, sid: string, since: number }[]
  /** Problems that were found during the run. */
  readonly problems: string[]
  /** The events, with times in milliseconds, if a trace was requested. */
  readonly trace: string[]
}

/** One relay of a process, from its start or reload to its stop. */
interface Instance {
  readonly relay: Relay
  readonly clock: RelayClock
  isStopping: boolean
  /** The number of callers that wait for an answer. */
  callers: number
}

interface Process {
  readonly clock: ProcessClock
  readonly memory: Memory
  readonly storage: TestStorage
  instance: Instance
  /** The end of all its relays, which a stop waits for. */
  last: Promise<void>
}

/** How long a stop waits for callers, and how long it may take altogether, in milliseconds. */
const grace = 4_000
export const longestStop = 8_000
/** After this time, a finished relay must have left nothing behind, in milliseconds. */
const settled = 500
/** How long before the end the records are read, in milliseconds. */
const lastLook = 120_000
/** How often a schedule without further faults looks whether there is anything left to do, in milliseconds. */
const quietInterval = 30_000

type Disk = Pick<TestStorage, 'isFull' | 'hasReserve' | 'flushTakes' | 'isFlushFailing' | 'failure'>

/** Executes a plan in simulated time. */
export async function runPlan(plan: Plan, isTraced = false): Promise<Run> {
  const real = Math.random
  const random = new Random(plan.seed + 1_000_000_007)
  const world = new World(plan, isTraced)
  const onRejection = (error: unknown): void => world.complain(`a rejection that nothing handled: ${String(error)}`)
  // The jitter of the backoff is part of the schedule.
  Math.random = () => random.next()
  process.on('unhandledRejection', onRejection)
  try {
    await world.run()
  } finally {
    Math.random = real
    process.off('unhandledRejection', onRejection)
  }
  return world
}

class World implements Run {
  readonly accounts: Account[]
  readonly acquisitions: Acquisition[] = []
  readonly losses: Loss[] = []
  readonly endings: Run['endings'][number][] = []
  readonly restrictions: Run['restrictions'][number][] = []
  readonly problems: string[] = []
  readonly trace: string[] = []
  private readonly timeline = new Timeline()
  private readonly random: Random
  private readonly machines: Machine[]
  private readonly processes: (Process | undefined)[] = []
  private readonly folder: TestFolder
  private readonly platform: Platform
  private readonly files = new Map<string, { data: Buffer, name: string }>()
  private readonly moments: Moment[]
  private callCount = 0
  /** When each commit was made. */
  private readonly commits: number[] = []
  /** The present faults of the disk. */
  private readonly disk: Disk
  private ids = 0
  /** When the schedule is over. */
  private end: number

  constructor(readonly plan: Plan, private readonly isTraced: boolean) {
    const { timeline } = this
    this.random = new Random(plan.seed + 2_000_000_011)
    this.machines = Array.from({ length: plan.hosts }, () => new Machine(timeline))
    this.accounts = plan.requests.map(request => ({
      request, marks: request.items.map((_, index) => `${request.name}.${index}`), issues: [], operations: [],
    }))
    this.moments = [...plan.moments]
    this.end = plan.end
    this.disk = this.soundDisk()
    this.folder = new TestFolder({
      isShared: plan.hosts > 1,
      committed: end => this.onCommit(end),
      keeps: (flushed, end) => this.lose(flushed, end),
    })
    const faultsOf = new Map(plan.chats.map(({ sid, target, calls, questions }) => [chatName(sid, target), { calls, questions }]))
    this.platform = new Platform(
      timeline, this.random, plan.platform,
      chat => timeline.now < plan.faultsEnd ? faultsOf.get(chat) ?? { calls: [], questions: [] } : { calls: [], questions: [] },
      items => settleOf(items, plan),
      call => this.onCall(call),
    )
  }

  get ledger(): readonly Entry[] {
    return this.platform.ledger
  }

  get calls(): readonly Call[] {
    return this.platform.calls
  }

  get questions(): readonly Question[] {
    return this.platform.questions
  }

  get openings(): Run['openings'] {
    return this.platform.openings
  }

  complain(problem: string): void {
    this.problems.push(problem)
    this.note(`PROBLEM ${problem}`)
  }

  async run(): Promise<void> {
    const { plan, timeline } = this
    for (const { sid, target, before } of plan.chats) this.platform.chatter(chatName(sid, target), before, -1000 * 60 * 60)
    for (let host = 0; host < plan.hosts; host++) this.start(host)
    for (const account of this.accounts) timeline.at(account.request.at, () => this.issue(account, 0))
    for (const operation of plan.operations) timeline.at(operation.at, () => this.operate(operation))
    for (const { on, after, what } of this.moments) if (on === 'time') timeline.at(after, () => this.disturb(what))
    timeline.at(plan.faultsEnd, () => this.note('from here on nothing goes wrong'))
    timeline.at(plan.faultsEnd + quietInterval, () => this.look())
    await timeline.run(plan.end, () => timeline.now >= this.end)
    for (const error of timeline.thrown) this.complain(`a callback threw ${error instanceof Error ? error.stack ?? '' : String(error)}`)
    for (let host = 0; host < plan.hosts; host++) this.stop(host, undefined)
    await timeline.run(timeline.now + 3 * longestStop)
  }

  /** Reads the records shortly before the end, or as soon as nothing is left to do. */
  private look(): void {
    const { timeline: { now }, plan } = this
    if (this.isQuiet() || now >= plan.end - lastLook) {
      this.end = Math.min(now + lastLook, plan.end)
      this.readRecords()
    } else {
      this.timeline.at(Math.min(now + quietInterval, plan.end - lastLook), () => this.look())
    }
  }

  private isQuiet(): boolean {
    const { timeline: { now }, plan: { operations }, folder, accounts } = this
    const isAnswered = accounts.every(account => {
      const last = account.issues.at(-1)
      return last && (last.word ?? !last.process.isAlive) && this.repeatOf(account, account.issues.length - 1) === undefined
    })
    const left = folder.connection.value(`SELECT count(*) FROM deliveries WHERE state IN ('queued', 'sending', 'unanswered')`)
    return isAnswered && operations.every(({ at }) => at < now - quietInterval) && left === 0 && this.processes.every(process => process)
  }

  private note(what: string): void {
    if (this.isTraced) this.trace.push(`${this.timeline.now} ${what}`)
  }

  /** Starts a process. */
  private start(host: number): void {
    const machine = this.machines[host]
    if (!machine) return
    const clock = new ProcessClock(this.timeline, machine)
    const memory = new Memory(clock)
    const storage = Object.assign(new TestStorage(clock, this.folder, `host ${host}`), this.disk)
    this.processes[host] = { clock, memory, storage, instance: this.createInstance(clock, memory, storage, host), last: Promise.resolve() }
    this.note(`relay ${host} is started`)
  }

  private createInstance(clock: ProcessClock, memory: Memory, storage: TestStorage, host: number, last?: Promise<void>): Instance {
    const { plan, files } = this
    const own = new RelayClock(clock)
    const log = (...texts: unknown[]): void => {
      this.note(`relay ${host} logs ${texts.map(String).join(' ')}`)
      this.lookForRestrictions()
    }
    const relay = new Relay(memory, {
      clock: own,
      port: this.platform.port(clock),
      policy: plan.policy,
      queue: plan.queues,
      digest: { backlog: 3, write: ({ lines }) => Promise.resolve(lines.map(({ text }) => text).join('\n')) },
      media: {
        transport: 'url',
        resolve: id => {
          const file = files.get(id)
          if (!file) return Promise.reject(new RelayError('file-not-found'))
          return Promise.resolve({ id, path: `/${id}`, name: file.name, size: file.data.length })
        },
        link: ({ id }) => `http://relay/${files.get(id)?.data.toString() ?? ''}`,
      },
      files: {
        hold: () => () => undefined,
        keepUntil: () => Promise.resolve(),
        hash: id => Promise.resolve(files.get(id)?.data.toString('hex')),
      },
      logger: { info: log, warn: log },
      observer: tellAll([{ lookedUp: finding => this.note(`looked up: ${finding}`), paused: () => this.note('paused') }]),
      recordContent: 'preview',
      longText: '',
      retention: 30 * 24 * 60 * 60 * 1000,
      recordLimit: 100_000,
      enter: () => instance.isStopping ? undefined : () => undefined,
    }, this.watch(storage, clock, host), last)
    const instance: Instance = { relay, clock: own, isStopping: false, callers: 0 }
    return instance
  }

  /** Notes when a process has the folder. */
  private watch(storage: TestStorage, process: ProcessClock, host: number): Storage {
    return {
      get owner() {
        return storage.owner
      },
      open: async stop => {
        const store = await storage.open(stop)
        this.note(`relay ${host} ${store.failure ? `cannot open the file: ${store.failure.message}` : 'has the folder'}`)
        this.acquisitions.push({ at: process.timeline.now, process, isOpen: !store.failure })
        return store
      },
    }
  }

  private onCommit(end: number): void {
    this.commits[end - 1] = this.timeline.now
    this.note(`commit ${end}`)
    this.count('commit', end)
  }

  /** Decides how many commits are left after the power was cut. */
  private lose(flushed: number, end: number): number {
    const kept = this.random.between(flushed, end)
    const { [kept]: since = this.timeline.now } = this.commits
    this.note(`of ${end} commits ${kept} are left; ${flushed} were flushed`)
    if (kept < end) this.losses.push({ at: this.timeline.now, since })
    return kept
  }

  /** Triggers the moments that wait for the n-th call or commit. */
  private count(on: Moment['on'], nth: number): void {
    for (const moment of this.moments) {
      if (moment.on !== on || moment.nth !== nth || this.timeline.now + moment.after > this.plan.faultsEnd) continue
      this.timeline.at(this.timeline.now + moment.after, () => this.disturb(moment.what))
    }
  }

  private onCall(call: Call): void {
    this.note(`call of ${call.marks.join()} in ${call.chat}: ${JSON.stringify(call.fault ?? {})}`)
    this.count('call', ++this.callCount)
  }

  /** Records new restrictions. */
  private lookForRestrictions(): void {
    const { timeline: { now }, restrictions } = this
    for (const { clock: process, instance } of this.processes.filter(process => process !== undefined)) {
      for (const [sid, since] of instance.relay.restricted()) {
        const isKnown = restrictions.some(known => known.process === process && known.sid === sid && known.since === since)
        if (!isKnown) restrictions.push({ at: now, process, sid, since })
      }
    }
  }

  private disturb(what: Disturbance): void {
    this.note(JSON.stringify(what))
    const now = this.timeline.now
    switch (what.kind) {
      case 'cut':
        this.platform.cut(what.sid, what.away)
        return
      case 'restart':
        this.platform.restart(what.sid, what.away, what.kept)
        return
      case 'chatter': {
        const chat = this.plan.chats[what.chat]
        if (chat) this.platform.chatter(chatName(chat.sid, chat.target), what.others)
        return
      }
      case 'mute': {
        const chat = this.plan.chats[what.chat]
        if (chat) this.platform.mute(chat.sid, chat.target, Math.min(now + what.ms, this.plan.faultsEnd), what)
        return
      }
      case 'trouble':
        this.platform.trouble(what.sid, what.what, Math.min(now + what.ms, this.plan.faultsEnd))
        return
      case 'clock': {
        const machine = this.machines[what.host]
        if (machine) machine.offset += what.by
        return
      }
      case 'freeze':
        this.machines[what.host]?.freeze(what.ms, what.isAsleep)
        return
      case 'full':
        this.setDisk({ isFull: true, hasReserve: what.hasReserve }, what.ms)
        return
      case 'slow':
        this.setDisk({ flushTakes: what.takes }, what.ms)
        return
      case 'unflushed':
        this.setDisk({ isFlushFailing: true }, Infinity)
        return
      case 'unusable':
        this.setDisk({ failure: new RelayError('store-down', words('the file cannot be used')) }, what.ms)
        return
      case 'kill':
      case 'power':
        this.kill(what.host, what.away, what.kind)
        return
      case 'stop':
        this.reach(what.host, () => this.stop(what.host, what.away))
        return
      case 'reload':
        this.reach(what.host, () => this.reload(what.host, what.isAtOnce))
    }
  }

  /** Changes the disk for a while. */
  private setDisk(change: Partial<Disk>, ms?: number): void {
    Object.assign(this.disk, change)
    for (const process of this.processes) if (process) Object.assign(process.storage, change)
    if (ms !== undefined) this.timeline.at(Math.min(this.timeline.now + ms, this.plan.faultsEnd), () => this.setDisk(this.soundDisk()))
  }

  private soundDisk(): Disk {
    return { isFull: false, hasReserve: false, flushTakes: this.plan.flushTakes, isFlushFailing: false, failure: undefined }
  }

  /** Delivers something to a process. A frozen or sleeping process gets it when it continues. */
  private reach(host: number, what: () => void): void {
    this.processes[host]?.clock.deliver(this.timeline.now, what)
  }

  private kill(host: number, away: number | undefined, kind: 'kill' | 'power' | 'stop'): void {
    const process = this.processes[host]
    const machine = this.machines[host]
    if (!process || !machine) return
    process.clock.isAlive = false
    this.processes[host] = undefined
    this.endings.push({ at: this.timeline.now, process: process.clock, kind })
    if (kind === 'power') process.storage.cut()
    else process.storage.kill()
    this.note(`relay ${host} is gone`)
    if (away !== undefined) this.timeline.at(Math.max(this.timeline.now + away, machine.wakesAt), () => this.start(host))
  }

  private stop(host: number, away: number | undefined): void {
    const process = this.processes[host]
    if (!process || process.instance.isStopping) return
    this.note(`relay ${host} is asked to stop`)
    const { clock, instance } = process
    const end = (): void => {
      if (this.processes[host] === process) this.kill(host, away, 'stop')
    }
    // In steps of a second, because no time passes for a frozen process or a sleeping machine.
    let cancel = (): void => undefined
    const wait = (left: number): void => {
      if (left > 0) {
        cancel = clock.after(1000, () => wait(left - 1000))
        return
      }
      this.complain('a stop does not end')
      end()
    }
    wait(longestStop)
    void this.finish(process).then(() => this.checkLeft(instance)).then(() => {
      cancel()
      end()
    })
  }

  private reload(host: number, isAtOnce: boolean): void {
    const process = this.processes[host]
    if (!process || process.instance.isStopping) return
    this.endings.push({ at: this.timeline.now, process: process.clock, kind: 'reload' })
    const { clock, memory, storage, instance } = process
    const last = this.finish(process)
    const checked = last.then(() => this.checkLeft(instance))
    const again = (): void => {
      if (this.processes[host] === process) process.instance = this.createInstance(clock, memory, storage, host, last)
    }
    if (isAtOnce) again()
    else void checked.then(again)
  }

  /** Ends a relay, as a stop of the plugin does. */
  private async finish(process: Process): Promise<void> {
    const { clock, instance, last } = process
    instance.isStopping = true
    process.last = last.then(() => instance.relay.ended)
    const start = clock.now()
    while (instance.callers > 0 && clock.now() - start < grace) await new Promise<void>(resolve => clock.after(100, resolve))
    instance.relay.end()
    await process.last
    this.note('a relay has finished')
  }

  /** A finished relay has left no timers behind. */
  private async checkLeft({ clock }: Instance): Promise<void> {
    await new Promise<void>(resolve => clock.after(settled, resolve))
    if (clock.pending.size > 0) this.complain(`timers are left behind by a stop, for ${[...clock.pending].map(({ due }) => Math.floor(due - clock.now())).join()} ms`)
  }

  /** Sends the n-th request of a caller. */
  private issue(account: Account, nth: number): void {
    const { request } = account
    const process = this.processes[request.host]
    if (!process || process.instance.isStopping) {
      // No relay listens.
      this.timeline.at(this.timeline.now + 500, () => this.issue(account, nth))
      return
    }
    process.clock.deliver(this.timeline.now, () => void this.ask(account, nth, process.clock, process.instance))
    // The caller notices the end of the process by the broken connection.
    const watch = (): void => {
      const issue = account.issues[nth]
      if (issue?.word) return
      if (process.clock.isAlive) this.timeline.at(this.timeline.now + 5_000, watch)
      else if (issue) this.repeat(account, nth)
      else this.issue(account, nth)
    }
    this.timeline.at(this.timeline.now + 5_000, watch)
  }

  private async ask(account: Account, nth: number, process: ProcessClock, instance: Instance): Promise<void> {
    const { request } = account
    const id = this.nextId(process.wall())
    const issue: Issue = { at: this.timeline.now, wall: process.wall(), id, process }
    account.issues[nth] = issue
    let leave: AbortController | undefined
    const signal = (): AbortSignal => {
      if (!leave) {
        leave = new AbortController()
        if (request.leaveAfter !== undefined && nth === 0) process.deliver(issue.at + request.leaveAfter, () => leave?.abort())
      }
      return leave.signal
    }
    instance.callers++
    this.note(`request ${request.name} is issued (${id})`)
    const word = await instance.relay.submit(this.submission(account, id, issue.wall, signal)).then(toWord, toFailure)
    instance.callers--
    issue.word = { ...word, at: this.timeline.now }
    this.note(`request ${request.name} is told ${JSON.stringify(word)}`)
    this.repeat(account, nth)
  }

  private submission({ request }: Account, id: string, wall: number, signal: () => AbortSignal): Submission {
    const { chat, mode, items, deferred, expiresIn, hasKey, event, name, wishes } = request
    const { target, ...bot } = this.addressOf(chat, request)
    return {
      id, door: wishes?.isHook ? 'hooks/source' : 'webhook', caller: null,
      request: {
        mode, target, bot, ...wishes && this.wishesOf(wishes, request, wall),
        items: items.map((item, index) => toItem(item, `${name}.${index}`)),
        ...expiresIn !== undefined && { expiresIn },
      },
      ...hasKey && { key: `key ${name}` },
      ...event && { event },
      ...deferred && { deferred },
      signal,
    }
  }

  private addressOf(chat: number, { hasBot }: PlannedRequest): Address {
    const { sid = '', target = { kind: 'group' as const, id: '' } } = this.plan.chats[chat] ?? {}
    return { target, ...hasBot && { selfId: sid.slice('onebot:'.length) } }
  }

  private wishesOf(
    { urgent, sendIn, digest, quiet, route }: PlannedWishes, request: PlannedRequest, wall: number,
  ): Pick<MessageRequest, 'urgent' | 'sendAt' | 'policy' | 'route'> {
    const name = `name ${request.chat}`
    return {
      ...urgent && { urgent },
      ...sendIn !== undefined && { sendAt: { at: wall + sendIn, written: String(sendIn) } },
      ...(digest ?? quiet) !== undefined && {
        policy: { name, ...digest !== undefined && { digest }, ...quiet && { quiet } },
      },
      ...route && { route: { ...route, name, ways: route.ways.map(chat => this.addressOf(chat, request)) } },
    }
  }

  private repeat(account: Account, nth: number): void {
    const wait = this.repeatOf(account, nth)
    if (wait === undefined || account.issues.length > nth + 1) return
    this.timeline.at(this.timeline.now + wait, () => this.issue(account, nth + 1))
  }

  /** After how long a request is repeated: a caller with a key does so until it knows the outcome. */
  private repeatOf({ request: { hasKey, repeats }, issues }: Account, nth: number): number | undefined {
    const { word } = issues[nth] ?? {}
    const isOver = word?.kind === 'accepted' || (word?.kind === 'results' && !word.outcomes.some(outcome => outcome === 'unanswered' || outcome === 'unsent'))
    return hasKey && !isOver ? repeats[nth] : undefined
  }

  private operate({ kind, request }: PlannedOperation): void {
    const account = this.accounts[request]
    const process = this.processes[account?.request.host ?? 0]
    const id = account?.issues.find(issue => issue.word?.kind !== 'failed')?.id
    if (!account || !process || process.instance.isStopping || id === undefined) return
    const operation = { at: this.timeline.now, id, kind, result: 'unknown' }
    account.operations.push(operation)
    process.clock.deliver(this.timeline.now, () => {
      const { relay } = process.instance
      const work = kind === 'retry' ? relay.retry(id, () => undefined).then(() => 'done') : relay.withdraw(id).then(state => state ?? 'forgotten')
      void work.catch((error: unknown) => RelayError.from(error).code).then(result => {
        // After a wait for a reload, what was retried leaves only now.
        Object.assign(operation, { result, at: this.timeline.now })
        this.note(`${kind} of request ${request}: ${result}`)
      })
    })
  }

  /** Reads the records. */
  private readRecords(): void {
    this.note('the records are read')
    // A frozen relay that lost its folder still has queues.
    const process = this.processes.find((process, host) => process && this.isActive(host))
    for (const { queue, state, waiting, later } of process?.instance.relay.queues() ?? []) {
      // Scheduled messages are tried only when their time comes. A hold without waiting messages lasts half an hour.
      const [quiet, digest] = [later?.kinds.quiet ?? 0, later?.kinds.digest ?? 0]
      if (state === 'held' && waiting > quiet + digest) this.complain(`${queue} is held for ever`)
    }
    for (const account of this.accounts) {
      const ids = account.issues.flatMap(issue => issue.word && issue.word.kind !== 'failed' ? [issue.word.id] : [])
      const id = ids.at(-1) ?? account.issues.at(-1)?.id
      if (!process || id === undefined) continue
      void this.read(process.instance.relay, account, id)
      for (const issue of account.issues) if (issue.id !== id) void this.readOther(process.instance, issue.id)
    }
  }

  /** Reads the record of a request that was answered with an error. */
  private async readOther({ relay, clock }: Instance, id: string): Promise<void> {
    const delivery = await relay.history().then(history => history.get(id)).catch(() => undefined)
    // A scheduled message waits for the clock of the relay's machine, which may differ from the clock of the machine that accepted it.
    const isLater = (delivery?.flow.sendAt ?? 0) > clock.wall()
    if (delivery && isUnfinished(delivery.state) && !isLater) this.complain(`${id} is ${delivery.state} for ever`)
  }

  private async read(relay: Relay, account: Account, id: string): Promise<void> {
    try {
      const history = await relay.history()
      account.record = copy(history.get(id))
      const { digest } = account.record.flow
      if (digest) account.digest = copy(history.get(digest.id))
      this.note(`the record of request ${account.request.name} says ${account.record.state}`)
    } catch (error) {
      this.note(`there is no record of request ${account.request.name}: ${RelayError.from(error).code}`)
    }
  }

  private isActive(host: number): boolean {
    return this.folder.holder === this.processes[host]?.storage
  }

  /** A UUIDv7. */
  private nextId(wall: number): string {
    const time = Math.floor(wall).toString(16).padStart(12, '0')
    const count = (++this.ids).toString(16).padStart(12, '0')
    return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${count}`
  }
}

/** A snapshot of a delivery, because the original changes. */
function copy(delivery: Delivery): Delivery {
  const { summary, results, open } = delivery
  return { ...delivery, results: [...results], open: [...open], summary: { ...summary, calls: summary.calls.map(call => ({ ...call })) } }
}

function toItem({ type, look, isLink }: PlannedItem, mark: string): Item {
  if (type === 'text') return { type, text: `${look}${markSign}${mark}` }
  const content = `mark-${mark}-`
  return {
    type, name: look,
    link: isLink ? { kind: 'remote', url: `http://host/${content}/${look}` } : { kind: 'data', base64: Buffer.from(content).toString('base64') },
  }
}

/** How long a platform may carry out a message at most, in milliseconds. */
function settleOf(items: readonly LoadedItem[], { policy: { settleTime, timeout } }: Plan): number {
  const isLong = items.some(item => item.type === 'file' || item.type === 'video' || ('src' in item && item.src.startsWith('http://host')))
  return isLong ? mediaSettle : Math.max(settleTime, timeout)
}

function toWord({ delivery, isReplay }: Submitted): Word {
  const { id, state, results } = delivery
  if (state === 'queued' || state === 'sending') return { kind: 'accepted', id }
  return {
    kind: 'results', id, isReplay, outcomes: results.map(outcomeOf), messageIds: results.map(result => result?.success ? result.messageIds : []),
  }
}

function toFailure(error: unknown): Word {
  const { code, outcome, headers } = RelayError.from(error)
  return { kind: 'failed', code, outcome, retryAfter: 'Retry-After' in headers }
}
