import { randomUUID } from 'node:crypto'
import { v7 as uuid } from 'uuid'
import type { Listed, Made } from '../access/made'
import { RelayError } from '../errors'
import type { Language } from '../texts/language'
import type { Log } from '../lib/log'
import { minute } from '../lib/time'
import type { TargetNames } from '../message/model'
import { keyOf, parseDestinations, toName } from '../message/target'
import type { Clock } from '../relay/clock'
import type { Submission } from '../relay/options'
import type { Store, Writer } from '../relay/store/store'
import { catchUp, createBeat, expire, pause, receive, resume, type Beat, type Notice, type Sign } from './beat'
import { scheduleOf, type BeatRule } from './rule'
import { readRows, saveRow, type Row } from './table'
import { writeNotice } from './texts'
import { say, words, type Text } from '../texts/text'

/** The door of their alerts. */
export const beatDoor = 'beats'

export interface BeatOptions {
  clock: Pick<Clock, 'wall'>
  rules: Pick<Made<BeatRule>, 'get' | 'inForce' | 'put' | 'remove'>
  /** Returns the present store. */
  store: () => Store
  /** Hands an alert to the core. */
  submit: (submission: Submission) => Promise<unknown>
  names: TargetNames
  /** The language of alerts to targets without one. */
  language: Language
  logger: Pick<Log, 'info' | 'warn'>
}

/** Notices jobs that do not report. Each beat is a row; a check each second looks for those whose time is over. */
export class Beats {
  readonly rules: BeatOptions['rules']
  /** The store that was looked at last, and when. */
  private last: { store: Store, at: number } | undefined
  private isBusy = false
  /** Why the alert of a beat could not be submitted, so that the log says it once. */
  private readonly failures = new Map<string, string>()

  constructor(private readonly options: BeatOptions) {
    this.rules = options.rules
  }

  /** A job reports. It is safe from a power cut when this resolves. @throws RelayError `not-found`, `store-down`, `storage-full` */
  sign(name: string, sign: Sign): Promise<Row> {
    return this.change(name, (beat, rule, now) => receive(beat, rule, sign, now))
  }

  /** Stops watching, or begins again. @throws as `sign` */
  setPaused(name: string, isPaused: boolean): Promise<Row> {
    return this.change(name, (beat, rule, now) => isPaused ? pause(beat) : resume(beat, rule, now))
  }

  /** Gives a beat another secret. @throws as `sign` */
  rotate(name: string): Promise<Row> {
    return this.change(name, beat => beat, randomUUID())
  }

  /** Makes or changes a rule. @throws as `Made.put` */
  async put(name: string, value: unknown): ReturnType<Made<BeatRule>['put']> {
    const put = await this.rules.put(name, value)
    await this.change(put.listed.name, (beat, rule, now) => beat.schedule === scheduleOf(rule) ? beat : catchUp(beat, rule, now))
    return put
  }

  /** Removes a beat. @throws as `Made.remove` */
  async remove(name: string): Promise<void> {
    await this.rules.remove(name)
    const store = this.store()
    store.commit(writer => writer.run('DELETE FROM signs WHERE name = ?', toName(name)))
    await store.flushed()
  }

  /** The name of the beat with a secret. @throws RelayError `not-found`, `store-down` */
  find(secret: string): string {
    const [row] = readRows(this.store(), 'secret = ?', secret)
    if (!row || !this.rules.get(row.name)) throw new RelayError('not-found', say('not-found-plain'), { logText: say('no-beat-secret') })
    return row.name
  }

  /** @throws RelayError `not-found`, `store-down` */
  read(name: string): Row {
    const [row] = readRows(this.store(), 'name = ?', name)
    if (!row) throw new RelayError('not-found', say('no-such-beat'))
    return row
  }

  /** Adds their rows to rules. @throws RelayError `store-down` */
  withRows(rules: readonly Listed<BeatRule>[]): [Listed<BeatRule>, Row][] {
    const rows = new Map(readRows(this.store(), 'TRUE').map(row => [row.name, row]))
    return rules.flatMap((listed): [Listed<BeatRule>, Row][] => {
      const row = rows.get(listed.name)
      return row ? [[listed, row]] : []
    })
  }

  /** The number of beats in each state. @throws RelayError `store-down` */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const [, { beat: { state } }] of this.withRows(this.rules.inForce())) counts.set(state, (counts.get(state) ?? 0) + 1)
    return counts
  }

  /** The beats that tell a name, for errors. */
  thatTell(name: string): Text[] {
    return this.rules.inForce().filter(({ entry }) => entry.to.includes(name)).map(each => say('the-beat', { name: JSON.stringify(each.name) }))
  }

  /** Looks for beats whose time is over, and submits what people are to hear. To be called each second. */
  async check(): Promise<void> {
    const { clock, logger } = this.options
    const isFree = !this.isBusy
    this.isBusy = true
    try {
      const store = this.store()
      const now = clock.wall()
      if (isFree) await Promise.all(readRows(store, 'due_at <= ?', now).map(row => this.attend(store, row, now)))
    } catch (error) {
      const { code, logText } = RelayError.from(error)
      // The store itself tells why it cannot be used.
      if (code !== 'store-down' && code !== 'storage-full') logger.warn(say('beats-unchecked', { reason: logText }))
    } finally {
      if (isFree) this.isBusy = false
    }
  }

  /**
   * The present store, with a row for each beat. After a start, and when the machine has slept, what was due meanwhile is awaited at its
   * next time.
   *
   * @throws RelayError `store-down`
   */
  private store(): Store {
    const store = this.options.store()
    if (store.failure) throw store.failure
    const now = this.options.clock.wall()
    if (this.last?.store !== store || now - this.last.at > minute) {
      store.commit(writer => this.rules.inForce().forEach(({ entry }) => write(writer, entry, beat => catchUp(beat, entry, now))))
    }
    this.last = { store, at: now }
    return store
  }

  private async attend(store: Store, row: Row, now: number): Promise<void> {
    const rule = this.rules.get(row.name)
    if (!rule) {
      store.commit(writer => saveRow(writer, row, undefined))
      return
    }
    const { untold } = row.beat.untold.length > 0 ? row.beat : store.commit(writer => write(writer, rule, beat => expire(beat, now))).beat
    for (const notice of untold) {
      if (!await this.tell(rule, notice)) return
      store.commit(writer => write(writer, rule, beat => told(beat, notice)))
    }
  }

  /** Submits a notice. @returns whether it is accepted everywhere; it is tried again otherwise */
  private async tell(rule: BeatRule, notice: Notice): Promise<boolean> {
    const { submit, names, language, logger } = this.options
    const { name, severity } = rule
    const { at, isOver, trouble } = notice
    const what = `beat ${name} ${isOver ? 'over' : trouble.kind}`
    try {
      await Promise.all(parseDestinations(rule.to, {}, names).list.map(destination => {
        const { target, bot, policy, route, lang = language } = destination
        return submit({
          // Its blanks keep the key apart from those of callers. A kill before the notice is removed repeats the key, and sends nothing.
          id: uuid(), door: beatDoor, key: `${what} ${at} ${keyOf(destination)}`, event: {}, deferred: { wait: 0 },
          request: {
            mode: 'single', target, bot, policy, route, items: [{ type: 'text', text: writeNotice(notice, rule, lang) }],
            thread: `beat:${name}`, threadPhase: isOver ? 'over' : 'on', severity: isOver ? 'ok' : severity, begunAt: new Date(trouble.at).toISOString(),
          },
        })
      }))
      this.failures.delete(name)
      logger.info(words(what))
      return true
    } catch (error) {
      const { logText } = RelayError.from(error)
      if (this.failures.get(name) !== String(logText)) logger.warn(say('beat-not-sent', { what, reason: logText }))
      this.failures.set(name, String(logText))
      return false
    }
  }

  private async change(name: string, next: (beat: Beat, rule: BeatRule, now: number) => Beat, secret?: string): Promise<Row> {
    const store = this.store()
    const rule = this.rules.get(name)
    if (!rule) throw new RelayError('not-found', say('no-such-beat'))
    const row = store.commit(writer => write(writer, rule, beat => next(beat, rule, this.options.clock.wall()), secret))
    await store.flushed()
    return row
  }
}

/** Changes the row of a beat, which is made if there is none. */
function write(writer: Writer, rule: BeatRule, next: (beat: Beat) => Beat, secret?: string): Row {
  const { name } = rule
  const [row = { secret: randomUUID(), beat: createBeat(rule) }] = readRows(writer, 'name = ?', name)
  const changed = { name, secret: secret ?? row.secret, beat: next(row.beat) }
  saveRow(writer, changed, rule)
  return changed
}

function told(beat: Beat, { at, isOver }: Notice): Beat {
  return { ...beat, untold: beat.untold.filter(each => each.at !== at || each.isOver !== isOver) }
}
