import assert from 'node:assert/strict'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../src/errors'
import type { CauseId } from '../../src/message/causes'
import type { MessageRequest } from '../../src/message/model'
import { SendError, type Account, type Closure, type Limit, type LoadedItem, type Message, type Port, type Receipt } from '../../src/platform/port'
import { pause } from '../../src/relay/clock'
import { Memory } from '../../src/relay/core'
import { isUnfinished, outcomeOf, type Delivery } from '../../src/relay/delivery/delivery'
import { columns, fromRow, isRow } from '../../src/relay/delivery/row'
import { tellAll, type Observer, type RelayOptions, type Submission, type Submitted } from '../../src/relay/options'
import { Relay } from '../../src/relay/relay'
import { words } from '../../src/texts/text'
import { SimulatedClock } from './simulated-clock'
import { TestFolder, TestStorage } from './store'
import type { Text } from '../../src/texts/text'

export const chat = { kind: 'group', id: '1' } as const
export const queue = 'onebot:1/group:1'

/**
 * The course of a call: after how many milliseconds it arrives, or never, and after how many it is answered, or never. The answer is a
 * success if the call arrives, and otherwise `error`.
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

/** A call that the platform refuses because of a rate limit of `after` milliseconds. */
export function limited(after: number, scope: Limit['scope'] = 'chat'): Fate {
  return { answered: 10, error: new SendError('unsent', 'too many', { causeId: 'rate-limited', limit: { scope, after } }) }
}

/** A platform with one account. Each call takes the next fate; without one it succeeds. */
export class TestPort implements Port {
  readonly calls: { text: string, at: number }[] = []
  readonly entries: { id: string, text: string, time: number }[] = []
  readonly fates: Fate[] = []
  hasHistory = true
  retriesUnanswered = true
  takesFiles = true
  longestText = Infinity
  recallableFor = Infinity
  /** Whether the platform can edit messages, and whether it supports replies. */
  canUpdate = false
  canAnswer = true
  /** The messages that the relay recalled, and the outcome of recalls. */
  readonly recalls: string[] = []
  recallFate: 'done' | 'refused' | 'silent' = 'done'
  /** For how long after the first arrival a repeated call creates no second message, in milliseconds. */
  idempotentFor: number | undefined
  /** Whether requests for the history stay unanswered. */
  isHistorySilent = false
  /** The platform's answer to whether the chat is closed. */
  chat: Closure | 'open' | undefined
  /** The time of that answer, in milliseconds. */
  chatTakes = 0
  /** How long a message with files loads them before its call, in milliseconds. */
  filesTake = 0
  /** How often the loading of files was started. */
  reads = 0
  /** The ID of a target that its name no longer resolves to. */
  goneTarget: string | undefined
  /** Reports that the chat is closed or open. */
  tellOfChat: (closure: Closure | 'open') => void = () => undefined
  /** The reason why the account is offline. */
  cause: CauseId | undefined
  private isOnline = true
  /** The messages that have arrived, by the relay's name for them, with the time of their call. */
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

  choose(_: unknown, mayWait = false): Account {
    if (!this.isOnline && !mayWait) throw new RelayError('unsent')
    return this.candidate()
  }

  candidate(): Account {
    const isOnline = (): boolean => this.isOnline
    const none = (): Promise<never> => Promise.reject(new SendError('refused'))
    return {
      sid: 'onebot:1', platform: 'onebot', selfId: '1', name: '', health: { state: isOnline() ? 'online' : 'offline', since: 0, ...this.cause !== undefined && { cause: this.cause } }, readsFiles: false, takesFiles: this.takesFiles, longestText: this.longestText, retriesUnanswered: this.retriesUnanswered,
      get isOnline() {
        return isOnline()
      },
      check: ({ id }, items) => {
        if (id === this.goneTarget) throw new RelayError('bad-request', words('bad request'))
        return items.map(item => !this.canAnswer && 'messageId' in item ? new RelayError('bad-request', words('bad request')) : item)
      },
      message: (_, items, name, changed) => this.message(items, name, changed),
      canUpdate: this.canUpdate,
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
    return sid === 'onebot:1' ? this.candidate() : undefined
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

  /** @param changed the message that is edited to these items */
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
      // `async`, so that an exception of `begin` becomes a rejection.
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

type Changes = Partial<RelayOptions['policy'] & RelayOptions['queue'] & Pick<RelayOptions, 'longText'> & { observer: Partial<Observer> }>

/** The core with a test platform, in simulated time. */
export class Core {
  readonly clock = new SimulatedClock()
  readonly port = new TestPort(this.clock)
  /** After which commit the process is killed and started again. */
  killAt = Infinity
  storage = new TestStorage(this.clock, new TestFolder({ committed: all => this.committed(all) }))
  /** The outcomes of submissions, in the order in which they became known. */
  readonly log: string[] = []
  /** The warnings of the log. */
  readonly warnings: string[] = []
  /** Log lines other than warnings. */
  readonly notes: string[] = []
  private memory = new Memory(this.clock)
  private count = 0
  /** Draining: start no background work. */
  isStopping = false
  /** How long a digest takes to be written, in milliseconds. */
  digestTakes = 0
  /** The start of the period of the last digest. */
  digestSince: number | undefined
  relay: Relay
  private readonly changes: Changes

  constructor({ fates = [], ...changes }: Changes & { fates?: readonly Fate[] } = {}) {
    this.changes = changes
    this.port.fates.push(...fates)
    this.relay = this.start()
  }

  /** A core whose relay has opened its store. */
  static async ready(changes?: ConstructorParameters<typeof Core>[0]): Promise<Core> {
    const core = new Core(changes)
    await core.run()
    return core
  }

  /** Kills the process and starts another. Only the file remains. */
  restart(): Relay {
    this.memory = new Memory(this.clock)
    this.storage.kill()
    this.storage = new TestStorage(this.clock, this.storage.folder)
    return this.start()
  }

  /** Ends the relay and starts another in the same process, as a reload of the plugin does. */
  reload(): Relay {
    this.relay.end()
    return this.start(this.relay.ended)
  }

  private committed(all: number): void {
    if (all !== this.killAt) return
    this.storage.kill()
    this.clock.after(0, () => this.restart())
  }

  private start(last?: Promise<void>): Relay {
    const { clock, port, changes } = this
    const interval = changes.interval ?? 0
    return this.relay = new Relay(this.memory, {
      clock, port, policy: { timeout: 10_000, retries: 2, retryUnanswered: {}, settleTime: 30_000, ...changes },
      queue: { interval, accountInterval: 0, capacity: 1000, pauseAfter: 5, pauseFor: 60_000, ...changes },
      digest: {
        backlog: 5,
        write: async ({ count, since, delay = '', lines, more }) => {
          this.digestSince = since
          const shown = lines.map(each => `${each.text} (${each.count})`)
          if (this.digestTakes > 0) await pause(clock, this.digestTakes)
          return [`${count} ${delay}`.trim(), ...shown, ...more > 0 ? [`+${more}`] : []].join(', ')
        },
      },
      media: { transport: 'path', resolve: () => Promise.reject(new RelayError('file-not-found')), link: () => '' },
      files: { hold: () => () => undefined, keepUntil: () => Promise.resolve(), hash: () => Promise.resolve(undefined) },
      logger: { info: (line: Text) => void this.notes.push(String(line)), warn: (line: Text) => void this.warnings.push(String(line)) },
      observer: tellAll(changes.observer ? [changes.observer] : []), recordContent: 'full', longText: changes.longText ?? '', retention: 1e9, recordLimit: 1e6,
      enter: () => this.isStopping ? undefined : () => undefined,
    }, this.storage, last)
  }

  /** Submits a text or several items. The outcome is logged under the text. */
  submit(text: string, more: Partial<Omit<Submission, 'request'> & MessageRequest> = {}): Promise<Submitted> {
    const { items = [{ type: 'text', text }], mode = 'single', target = chat, bot = {}, expiresIn, urgent, sendAt, thread, threadMode, policy, route, ...submission } = more
    const flow = { urgent, sendAt, thread, threadMode, policy, route }
    const request: MessageRequest = { items, mode, target, bot, ...expiresIn !== undefined && { expiresIn }, ...flow }
    const submitted = this.relay.submit({ id: uuid({ msecs: Math.floor(this.clock.wall()), seq: ++this.count }), door: 'webhook', request, ...submission })
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

  /** Runs for this long. The arguments behind the time are submissions that have just been made. */
  run(ms?: number, ...submitted: readonly Promise<Submitted>[]): Promise<void>
  run(ms = 0): Promise<void> {
    return this.clock.run(ms)
  }

  get called(): string[] {
    return this.port.calls.map(({ text }) => text)
  }

  /** All deliveries in the file, in the order of their places. */
  get rows(): Delivery[] {
    const rows = this.storage.folder.connection.all(isRow, `SELECT ${columns.join(', ')} FROM deliveries`)
    return rows.map(fromRow).sort((a, b) => a.seq - b.seq)
  }

  get states(): string[] {
    return this.rows.map(({ state }) => state)
  }
}
