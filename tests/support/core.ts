import assert from 'node:assert/strict'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../src/errors'
import type { MessageRequest, ParsedItem } from '../../src/message/model'
import { SendError, type Account, type Closure, type Limit, type LoadedItem, type Message, type Port, type Receipt } from '../../src/platform/port'
import { isUnfinished, outcomeOf, type Delivery, type State } from '../../src/relay/delivery'
import { cutList, matches, type Journal, type ListFilter } from '../../src/relay/journal'
import { Relay, Shared, tellAll, type RelayOptions, type Submission, type Submitted } from '../../src/relay/relay'
import { SimulatedClock } from './simulated-clock'

export const chat = { kind: 'group', id: '1' } as const
export const lane = 'onebot:1/group:1'

/**
 * What becomes of a call: it arrives after so many milliseconds, or never; it is answered after so many, or never. The answer is a yes
 * where it arrives, otherwise this failure.
 */
export interface Fate {
  arrives?: number
  answered?: number
  error?: SendError
}

export const fates = {
  sent: { arrives: 0, answered: 10 },
  refused: { answered: 10, error: new SendError('refused', 'no') },
  muted: { answered: 10, error: new SendError('refused', 'muted', { causeId: 'muted' }) },
  removed: { answered: 10, error: new SendError('refused', 'removed', { causeId: 'removed' }) },
  silent: {},
  lost: { arrives: 0 },
} as const satisfies Record<string, Fate>

/** The platform wants no calls for so many milliseconds. */
export function limited(after: number, scope: Limit['scope'] = 'chat'): Fate {
  return { answered: 10, error: new SendError('unsent', 'too many', { causeId: 'rate-limited', limit: { scope, after } }) }
}

/** A platform with one account, on which calls meet their fates one after another, and then succeed. */
export class TestPort implements Port {
  readonly calls: { text: string, at: number }[] = []
  readonly entries: { id: string, text: string, time: number }[] = []
  readonly fates: Fate[] = []
  hasHistory = true
  retriesUnanswered = true
  takesFiles = true
  longestText = Infinity
  recallableFor = Infinity
  /** Whether a message that is there can be changed, and whether one can answer another. */
  canUpdate = false
  canAnswer = true
  /** The messages that it was asked to take back, and what becomes of that. */
  readonly recalls: string[] = []
  recallFate: 'done' | 'refused' | 'silent' = 'done'
  /** For how long after the first call that arrived a further one makes no second message, in milliseconds. */
  idempotentFor: number | undefined
  /** Whether questions for the history get no answer. */
  isHistorySilent = false
  /** What the platform says when it is asked whether the chat is closed. */
  chat: Closure | 'open' | undefined
  /** How long that takes, in milliseconds. */
  chatTakes = 0
  /** How long a message with files takes before it can be called for, in milliseconds. */
  filesTake = 0
  /** How often files were begun to be read. */
  reads = 0
  /** The ID of a target that its name does not have any more. */
  goneTarget: string | undefined
  /** The platform reports that the chat is closed, or open. */
  tellOfChat: (closure: Closure | 'open') => void = () => undefined
  /** Why it is not online. */
  cause: string | undefined
  private isOnline = true
  /** Messages by what the relay calls them, and when they were called for. */
  private readonly arrived = new Map<string, { id: string, at: number }>()
  private readonly watches = new Set<Parameters<Port['onHealth']>[0]>()

  constructor(private readonly clock: SimulatedClock) {}

  get texts(): string[] {
    return this.entries.map(({ text }) => text)
  }

  set online(isOnline: boolean) {
    this.isOnline = isOnline
    for (const callback of this.watches) callback('onebot:1', isOnline)
  }

  choose(): Account {
    if (!this.isOnline) throw new RelayError('unsent')
    return this.chooseLater()
  }

  chooseLater(): Account {
    const isOnline = (): boolean => this.isOnline
    const none = (): Promise<never> => Promise.reject(new SendError('refused'))
    return {
      sid: 'onebot:1', platform: 'onebot', selfId: '1', name: '', health: { state: isOnline() ? 'online' : 'offline', since: 0, ...this.cause !== undefined && { cause: this.cause } }, readsFiles: false, takesFiles: this.takesFiles, longestText: this.longestText, retriesUnanswered: this.retriesUnanswered,
      get isOnline() {
        return isOnline()
      },
      check: ({ id }, items) => {
        if (id === this.goneTarget) throw new RelayError('bad-request')
        return items.map(item => !this.canAnswer && 'messageId' in item ? new RelayError('bad-request') : item)
      },
      message: (_, items, name) => this.message(items, name),
      ...this.canUpdate && { update: (_, id, items, name) => this.message(items, name, id) },
      recallableFor: this.recallableFor,
      recall: (_, id) => this.recall(id),
      groups: none, friends: none,
      closure: async () => {
        if (this.chatTakes > 0) await new Promise<void>(resolve => this.clock.after(this.chatTakes, resolve))
        return this.chat
      },
    }
  }

  find(sid: string): Account | undefined {
    return sid === 'onebot:1' ? this.chooseLater() : undefined
  }

  onHealth(callback: (sid: string, isOnline: boolean) => void): () => void {
    this.watches.add(callback)
    return () => this.watches.delete(callback)
  }

  onChat(callback: Parameters<Port['onChat']>[0]): () => void {
    this.tellOfChat = closure => callback('onebot:1', chat, closure)
    return () => undefined
  }

  private recall(id: string): Promise<void> {
    this.recalls.push(id)
    if (this.recallFate === 'silent') return new Promise(() => undefined)
    const index = this.entries.findIndex(entry => entry.id === id)
    if (this.recallFate === 'refused' || index < 0) return Promise.reject(new SendError('refused'))
    this.entries.splice(index, 1)
    return Promise.resolve()
  }

  /** @param changed the message that becomes these items */
  private message(items: readonly LoadedItem[], name: string, changed?: string): Message {
    const text = items.map(item => item.type === 'text' ? item.text : item.type === 'reply' ? `reply ${item.messageId}` : item.type).join('+')
    const idempotentFor = changed === undefined ? this.idempotentFor : Infinity
    let ready: Promise<void> | undefined
    const prepare = (): Promise<void> => {
      this.reads++
      return new Promise(resolve => this.clock.after(this.filesTake, resolve))
    }
    return {
      likeness: text,
      // What `begin` throws is a rejection.
      send: async begin => {
        if (this.filesTake > 0 && items.some(({ type }) => type === 'file')) await (ready ??= prepare())
        return this.send(text, begin, name, changed)
      },
      ...idempotentFor === undefined ? { reports: () => [] } : { idempotentFor },
      history: count => this.isHistorySilent
        ? new Promise(() => undefined)
        : Promise.resolve(this.hasHistory && changed === undefined
            ? {
                own: this.entries.slice(-count).map(({ id, time, text: other }) => ({ id, time, isEqual: other === text, isSeen: true })),
                oldest: this.entries.length > count ? this.entries.at(-count)?.time ?? 0 : -Infinity, isReadable: true,
              }
            : undefined),
    }
  }

  private send(text: string, begin: () => void, name: string, changed?: string): Promise<Receipt> {
    begin()
    const { clock, idempotentFor = 0 } = this
    const at = clock.now()
    this.calls.push({ text, at })
    const known = this.arrived.get(name)
    const isKnown = known !== undefined && at < known.at + idempotentFor
    const id = changed ?? (isKnown ? known.id : String(this.calls.length))
    const { arrives, answered, error }: Fate = this.fates.shift() ?? fates.sent
    if (arrives !== undefined && changed !== undefined) {
      clock.after(arrives, () => this.entries.forEach(entry => entry.id === changed && Object.assign(entry, { text })))
    } else if (arrives !== undefined && !isKnown) {
      this.arrived.set(name, { id, at })
      clock.after(arrives, () => this.entries.push({ id, text, time: clock.wall() }))
    }
    return new Promise((resolve, reject) => {
      if (answered === undefined) return
      clock.after(answered, () => error ? reject(error) : resolve({ messageIds: [id] }))
    })
  }
}

/** A journal that outlives relays, and gives no answers when a test wants it so. */
export class TestJournal implements Journal {
  readonly isDurable = true
  /** Whether its process was killed: it writes nothing more. */
  isDead = false
  /** Whether statements get no answer, although they are carried out. */
  isAway = false
  private owner = 0

  constructor(readonly rows = new Map<string, { delivery: Delivery, items: readonly ParsedItem[], owner: number }>()) {}

  insert(delivery: Delivery, items: readonly ParsedItem[]): Promise<void> {
    return this.answer(() => {
      this.checkKey(delivery)
      this.record(delivery, items)
    })
  }

  update(delivery: Delivery): Promise<void> {
    return this.answer(() => {
      this.checkKey(delivery)
      this.record(delivery, this.rows.get(delivery.id)?.items ?? [])
    })
  }

  cancel(id: string): Promise<void> {
    return this.answer(() => void this.rows.delete(id))
  }

  record(delivery: Delivery, items: readonly ParsedItem[]): void {
    // What is filled in later is not written yet.
    if (!this.isDead) this.rows.set(delivery.id, { delivery: { ...delivery, results: [...delivery.results] }, items, owner: this.owner })
  }

  find(id: string): Promise<Delivery | undefined> {
    return this.answer(() => copyOf(this.rows.get(id)?.delivery))
  }

  findByKey(key: string): Promise<Delivery | undefined> {
    return this.answer(() => copyOf(this.byKey(key)))
  }

  items(id: string): Promise<readonly ParsedItem[] | undefined> {
    return this.answer(() => this.rows.get(id)?.items)
  }

  /** IDs are made by the time of the machine: what is old is told by the time of the test. */
  list({ since = 0, ...filter }: ListFilter): Promise<Delivery[]> {
    return this.answer(() => {
      const found = [...this.rows.values()].filter(({ delivery }) => matches(delivery, filter) && delivery.createdAt >= since)
      return cutList(found.map(({ delivery }) => ({ ...delivery })), filter)
    })
  }

  adopt(owner: number): Promise<Delivery[]> {
    return this.answer(() => {
      this.owner = owner
      const left = [...this.rows.values()].filter(row => row.owner < owner && (isUnfinished(row.delivery.state) || row.delivery.state === 'unanswered'))
      for (const row of left) row.owner = owner
      return left.map(({ delivery }) => ({ ...delivery })).sort((a, b) => a.seq - b.seq)
    })
  }

  readonly withContent = (ids: readonly string[]): Promise<readonly string[]> => Promise.resolve(ids)
  readonly count = (): Promise<ReadonlyMap<State, number>> => Promise.resolve(new Map())
  readonly flush = (): Promise<void> => Promise.resolve()
  readonly purge = (): Promise<void> => Promise.resolve()
  readonly ping = (): Promise<void> => Promise.resolve()

  private checkKey({ id, key }: Delivery): void {
    const other = key !== null && this.byKey(key)
    if (other && other.id !== id) throw new Error('two rows cannot have one key')
  }

  private byKey(key: string): Delivery | undefined {
    return [...this.rows.values()].find(({ delivery }) => delivery.key === key)?.delivery
  }

  private async answer<T>(statement: () => T): Promise<T> {
    const result = await new Promise<T>(resolve => this.isDead || resolve(statement()))
    if (this.isAway) throw new Error('away')
    return result
  }
}

function copyOf(delivery: Delivery | undefined): Delivery | undefined {
  return delivery && { ...delivery }
}

type Changes = Partial<RelayOptions['policy'] & RelayOptions['lane'] & Pick<RelayOptions, 'longText'>> & { isDurable?: boolean, isStandIn?: boolean }

/** The core with a platform, in simulated time. */
export class Core {
  readonly clock = new SimulatedClock()
  readonly port = new TestPort(this.clock)
  journal = new TestJournal()
  /** What became of each submission, in the order in which that was known. */
  readonly log: string[] = []
  /** What was warned of. */
  readonly warnings: string[] = []
  /** What was logged besides. */
  readonly notes: string[] = []
  private shared = new Shared(this.clock)
  private owner = 0
  /** Whether nothing more begins that nobody waits for. */
  isStopping = false
  /** Since when the last digest says that its messages are. */
  digestSince: number | undefined
  relay: Relay

  constructor(private readonly changes: Changes = {}) {
    this.relay = this.start()
  }

  /** One whose relay has taken over its journal. */
  static async ready(changes?: Changes): Promise<Core> {
    const core = new Core(changes)
    await core.run()
    return core
  }

  /** The process is killed, and another one begins: only what the journal has is left. */
  restart(): Relay {
    this.shared = new Shared(this.clock)
    this.journal.isDead = true
    this.journal = new TestJournal(this.journal.rows)
    return this.start()
  }

  /** Another relay, as after a reload of the plugin. */
  start(): Relay {
    const { clock, port, changes: { isDurable = true, isStandIn = false, ...changes } } = this
    const interval = changes.interval ?? 0
    this.relay = new Relay(this.shared, {
      clock, port, policy: { timeout: 10_000, retries: 2, retryUnanswered: {}, settleTime: 30_000, ...changes },
      lane: { interval, capacity: 1000, pauseAfter: 5, pauseFor: 60_000, ...changes },
      digest: {
        backlog: 5,
        write: ({ count, since, delay = '', lines, more }) => {
          this.digestSince = since
          const shown = lines.map(each => `${each.text} (${each.count})`)
          return Promise.resolve([`${count} ${delay}`.trim(), ...shown, ...more > 0 ? [`+${more}`] : []].join(', '))
        },
      },
      media: { transport: 'path', resolve: () => Promise.reject(new RelayError('file-not-found')), link: () => '' },
      files: { hold: () => () => undefined, keepUntil: () => Promise.resolve(), digest: () => Promise.resolve(undefined) },
      logger: { info: (line: string) => void this.notes.push(line), warn: (_: string, line: string) => void this.warnings.push(line) },
      observer: tellAll([]), recordContent: 'full', longText: changes.longText ?? '', retention: 1e9,
      enter: () => this.isStopping ? undefined : () => undefined,
    })
    const owner = ++this.owner
    const journal = isDurable ? this.journal : this.shared.journal
    const lost = new AbortController().signal
    const [acquire, release] = [() => Promise.resolve(owner), () => Promise.resolve()]
    const isFresh = (): boolean => this.owner === owner
    const ownership = { acquire, lost, isFresh, active: undefined, failure: undefined, release }
    this.relay.open({ journal, isStandIn: () => isStandIn, ownership })
    return this.relay
  }

  /** Submits a text, or several items; what becomes of it goes to the log under its text. */
  submit(text: string, more: Partial<Omit<Submission, 'request'> & MessageRequest> = {}): Promise<Submitted> {
    const { items = [{ type: 'text', text }], mode = 'single', target = chat, bot = {}, expiresIn, urgent, sendAt, thread, threadMode, policy, route, ...submission } = more
    const flow = { urgent, sendAt, thread, threadMode, policy, route }
    const request: MessageRequest = { items, mode, target, bot, ...expiresIn !== undefined && { expiresIn }, ...flow }
    const submitted = this.relay.submit({ id: uuid(), door: 'webhook', request, ...submission })
    submitted.then(({ delivery, isReplay }) => {
      const outcome = delivery.deferred && isUnfinished(delivery.state) ? 'accepted' : delivery.results.map(outcomeOf).join()
      this.log.push(`${text} ${isReplay ? 'replay ' : ''}${outcome}`)
    }, (error: unknown) => {
      assert(error instanceof RelayError, String(error))
      this.log.push(`${text} ${error.code}${error.headers['retry-after'] === undefined ? '' : ` ${error.headers['retry-after']}`}`)
    })
    return submitted
  }

  later(text: string, more: Parameters<Core['submit']>[1] = {}): Promise<Submitted> {
    return this.submit(text, { deferred: { wait: 0 }, ...more })
  }

  run(ms = 0): Promise<void> {
    return this.clock.run(ms)
  }

  get called(): string[] {
    return this.port.calls.map(({ text }) => text)
  }

  /** The states of all deliveries in the journal, by their order. */
  get states(): string[] {
    return [...this.journal.rows.values()].map(({ delivery }) => delivery).sort((a, b) => a.seq - b.seq).map(({ state }) => state)
  }
}
