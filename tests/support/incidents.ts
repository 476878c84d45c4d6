import { v7 as uuid } from 'uuid'
import type { Incident, TimelineEntry } from '../../src/incidents/incident'
import { Incidents, type Skipped } from '../../src/incidents/incidents'
import type { Called, Directory } from '../../src/incidents/people'
import { Recorder } from '../../src/incidents/recorder'
import { minute } from '../../src/lib/time'
import type { Ack, MessageRequest, Named } from '../../src/message/model'
import type { Clock } from '../../src/relay/clock'
import type { Submitted } from '../../src/relay/options'
import { chat, Core } from './core'

export const person = { name: '李雷', person: 'li-lei', account: 'onebot:10001', way: 'quote' } as const
export const other = { name: '韩梅梅', person: 'han-mei', account: 'onebot:10002', way: 'quote' } as const

/** The steps of the documents: `@` of who is on duty, `@` of all, and the private chat. */
export const ack: Ack = {
  from: 'warning',
  escalate: [{ after: 5 * minute, mention: ['oncall'] }, { after: 15 * minute, mention: ['all'] }, { after: 30 * minute, mention: [], to: 'private:7' }],
}

/** The incidents of the name `ops` on a core in simulated time. */
export class IncidentCore {
  readonly names = new Map<string, Named>()
  /** Who is on duty. */
  onDuty = { person: 'li-lei', name: '李雷', userId: '10001' }
  private readonly directory: Directory = {
    whom: words => words.map((word): Called => word === 'all' ? { userId: null, name: 'all' } : this.onDuty),
    findBy: () => undefined,
    includes: (words, person) => words.includes(person) || (words.includes('oncall') && person === this.onDuty.person),
  }

  readonly told: string[] = []
  readonly warnings: string[] = []
  readonly core: Core
  incidents: Incidents
  private end: () => void = () => undefined
  private readonly recorder: Recorder

  constructor(changes: Partial<Ack> = {}, more: Partial<Named> = {}) {
    const logger = { info: () => undefined, warn: (line: unknown) => void this.warnings.push(String(line)) }
    this.name('ops', { ack: { ...ack, ...changes }, mention: { critical: ['oncall'] }, ...more })
    const port = { candidate: () => this.core.port.candidate() }
    const clock: Clock = {
      now: () => this.core.clock.now(), wall: () => this.core.clock.wall(), after: (ms, callback) => this.core.clock.after(ms, callback),
    }
    this.recorder = new Recorder({ clock, names: this.names, directory: this.directory, language: 'zh-CN', port, store: () => this.core.relay.store, logger })
    this.core = new Core({ observer: this.recorder })
    this.incidents = this.begin()
  }

  static async ready(...args: ConstructorParameters<typeof IncidentCore>): Promise<IncidentCore> {
    const made = new IncidentCore(...args)
    await made.core.run()
    return made
  }

  name(name: string, named: Partial<Named>): void {
    this.names.set(name, { addresses: [{ target: chat }], isList: false, policy: { name, durable: true, ...named.policy }, ...named })
  }

  /** Kills the process, or cuts the power, which loses what was not flushed, and starts another after so many milliseconds. */
  async down(isCut: boolean, ms: number): Promise<void> {
    this.end()
    this.core.storage.kill()
    if (isCut) this.core.storage.folder.cut()
    await this.core.run(ms)
    await this.restart()
  }

  /** Kills the process and starts another. */
  async restart(): Promise<void> {
    this.end()
    this.core.restart()
    this.incidents = this.begin()
    await this.core.run()
  }

  /** An event of the thread `db`, as a hook hands it in. */
  async event(text: string, more: Partial<MessageRequest> = {}): Promise<Submitted | Skipped> {
    const { policy } = this.names.get('ops') ?? {}
    const request: MessageRequest = {
      mode: 'single', items: [{ type: 'text', text }], target: chat, bot: {}, thread: 'db', severity: 'critical', ...policy && { policy }, ...more,
    }
    const submitted = this.incidents.submit({ id: uuid(), door: 'hooks/alertmanager', request, deferred: { wait: 0 } })
    await this.core.run(1_000)
    return submitted
  }

  /** Runs for some minutes. */
  async pass(minutes: number): Promise<void> {
    await this.core.run(minutes * minute)
  }

  /** What the platform has, without the quotes of threads. */
  get texts(): string[] {
    return this.core.port.texts.map(text => text.replace(/^reply \d+\+/, ''))
  }

  get all(): Incident[] {
    return this.incidents.list({})
  }

  get only(): Incident {
    const [incident, ...others] = this.all
    if (!incident || others.length > 0) throw new Error(`${this.all.length} incidents`)
    return incident
  }

  private begin(): Incidents {
    const { core, names, recorder, directory } = this
    const incidents = new Incidents({
      clock: core.clock, relay: core.relay, recorder, names, directory, language: 'zh-CN', retention: 7 * 24 * 60 * minute,
      tell: (_: Incident, entries: readonly TimelineEntry[]) => {
        this.told.push(...entries.map(({ kind }) => kind))
        return true
      },
      logger: { info: () => undefined, warn: (line: unknown) => void this.warnings.push(String(line)) },
    })
    this.end = incidents.start()
    return incidents
  }
}
