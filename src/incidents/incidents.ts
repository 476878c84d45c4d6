import { v7 as uuid } from 'uuid'
import { RelayError, type ErrorCode } from '../errors'
import type { Language } from '../texts/language'
import type { Log } from '../lib/log'
import { minute } from '../lib/time'
import { callsAll, everybody } from '../message/mentions'
import type { Ack, BotSelector, Destination, MessageRequest, Target, TargetNames } from '../message/model'
import { keyOf, parseDestinations, waysOf, writeTarget } from '../message/target'
import { every, type Clock } from '../relay/clock'
import type { Submission, Submitted } from '../relay/options'
import type { Relay } from '../relay/relay'
import type { Writer } from '../relay/store/store'
import {
  dueStep, miss, release, reminded, resolve, silence, silences, stepped, take, wake, type Action, type Actor, type Incident,
  type TimelineEntry,
} from './incident'
import type { Directory } from './people'
import { callerOf, incidentDoor, titleOf, withMentions, type Recorder } from './recorder'
import { findByChat, findByMessage, findDue, findIncident, findUntold, listIncidents, oldIncidents, removeIncident, saveIncident, type IncidentFilter } from './table'
import { describe, writeReleased, writeReminder, writeStep, writeWoken } from './texts'
import { say } from '../texts/text'

/** How often the relay looks for what is due, in milliseconds, and how many incidents it looks at then. */
const interval = 1_000
const stretch = 100
/** The wait after a step that could not be accepted, in milliseconds. */
const retryDelay = 30_000
/** How long an answer may wait, in milliseconds. */
const answerLifetime = 10 * minute
/** The reasons that pass why a chat accepts no message, and why nothing is accepted. */
const passing: ReadonlySet<ErrorCode> = new Set(['queue-full', 'unanswered'])
const general: ReadonlySet<ErrorCode> = new Set(['storage-full', 'store-down', 'standby', 'stopping'])

/** What became of an event that nobody is to hear. */
export interface Skipped { skipped: 'silenced' }

/** Hands a submission to the core, unless nobody is to hear it. @throws RelayError as `Relay.submit` */
export type Hand = (submission: Submission) => Promise<Submitted | Skipped>

/** A chat, and the bot that speaks there. */
export interface Place { bot: BotSelector, target: Target }

export interface IncidentOptions {
  clock: Clock
  relay: Pick<Relay, 'submit' | 'store' | 'isActive'>
  recorder: Recorder
  names: TargetNames
  directory: Directory
  language: Language
  /** How long resolved incidents are kept, in milliseconds. */
  retention: number
  /** Tells the plugins of the bot and the operator's callback what happened. @returns whether they know, or nobody tries again */
  tell: (incident: Incident, entries: readonly TimelineEntry[]) => boolean
  logger: Pick<Log, 'info' | 'warn'>
}

/** Incidents between the doors and the core: they see what is accepted, and say what somebody has to hear. */
export class Incidents {
  /** When an incident whose step was refused is tried again, on the monotonic clock. */
  private readonly later = new Map<string, number>()
  /** The last incident of a stretch of untold ones, so that those that cannot be told do not keep others waiting. */
  private toldUpTo = ''
  private isBusy = false
  /** Why the last round failed; empty if it did not. */
  private trouble = ''

  constructor(private readonly options: IncidentOptions) {}

  /**
   * Hands a submission of a door to the core, with the mentions of its name. An event in a silenced thread is only counted.
   *
   * @throws RelayError as `Relay.submit`
   */
  async submit(submission: Submission): Promise<Submitted | Skipped> {
    const { relay, names, recorder } = this.options
    const { request, caller = null, id } = submission
    const { ack, mention = request.mention } = (request.policy && names.get(request.policy.name)) ?? {}
    if (!ack && !mention) return relay.submit(submission)
    if (ack && request.severity !== 'ok' && this.isMissed(request, caller, ack)) {
      await relay.store.flushed()
      return { skipped: 'silenced' }
    }
    try {
      return await relay.submit({ ...submission, complete: completed => recorder.complete(completed, caller, id) })
    } catch (error) {
      recorder.refused(request, caller)
      throw error
    }
  }

  /**
   * Acts for somebody. What it changes is flushed before its chats are told. Who changes nothing hears how it is.
   *
   * @param until the end of a silence, in milliseconds since the epoch; in an hour by default
   * @param from the chat that the actor spoke in
   * @returns the incident as it is now
   * @throws RelayError `not-found`, `store-down`, `storage-full`
   */
  async act(id: string, action: Action, by: Actor, { until, from }: { until?: number, from?: Place } = {}): Promise<Incident> {
    const { relay: { store }, clock, logger } = this.options
    const now = clock.wall()
    const { incident, isChanged } = store.commit(writer => {
      const present = findIncident(writer, id)
      if (!present) throw new RelayError('not-found', say('no-such-incident'))
      const next = this.apply(present, action, by, now, until ?? now + silences.usual)
      if (next) this.save(writer, next)
      return { incident: next ?? present, isChanged: next !== undefined }
    })
    await store.flushed()
    const isReleased = action === 'release' && isChanged
    const write = (language: Language): string => (
      isReleased ? writeReleased(incident, by.name, language) : describe(incident, now, language)
    )
    if (isChanged) logger.info(say('incident-acted', { id, action, who: by.account ?? by.key ?? say('the-master-key'), way: by.way }))
    await this.answer(incident, write, from, isChanged)
    return incident
  }

  get(id: string): Incident | undefined {
    return findIncident(this.options.relay.store, id)
  }

  /** The incidents of a filter, the newest first. @throws RelayError `store-down` */
  list(filter: IncidentFilter): Incident[] {
    return listIncidents(this.options.relay.store, filter)
  }

  /** The incidents of a platform message. @param chat as `placeOf` */
  ofMessage(chat: string, message: string): Incident[] {
    return findByMessage(this.options.relay.store, chat, message)
  }

  /** The unresolved incidents of a chat. @param chat as `placeOf` */
  ofChat(chat: string): Incident[] {
    return findByChat(this.options.relay.store, chat)
  }

  /** Whether somebody in the chat may act: those whom the name lets, and those who were called by `@`. */
  mayAct({ name, called }: Incident, { person }: Actor): boolean {
    const { names, directory, clock } = this.options
    const who = names.get(name)?.ack?.who
    if (!who || callsAll(called)) return true
    return person !== undefined && (called.includes(person) || directory.includes(who, person, clock.wall()))
  }

  /** Answers in a chat how an incident is. */
  async answerIn(incident: Incident, from: Place): Promise<void> {
    const now = this.options.clock.wall()
    await this.answer(incident, language => describe(incident, now, language), from, false)
  }

  /** Does what is due, once a second. @returns a function that ends this */
  start(): () => void {
    return every(this.options.clock, interval, () => void this.work())
  }

  /** Does what is due, one incident after the other. */
  async work(): Promise<void> {
    const { relay, clock, retention, logger } = this.options
    if (this.isBusy || !relay.isActive || relay.store.failure) return
    this.isBusy = true
    try {
      const now = clock.wall()
      this.tell()
      for (const [id, time] of this.later) if (time <= clock.now()) this.later.delete(id)
      for (const incident of findDue(relay.store, now, [...this.later.keys()], stretch)) await this.advance(incident, now)
      const old = oldIncidents(relay.store, now - retention, stretch)
      if (old.length > 0) relay.store.commit(writer => old.forEach(id => removeIncident(writer, id)))
      this.trouble = ''
    } catch (error) {
      const { logText } = RelayError.from(error)
      if (String(logText) !== this.trouble) logger.warn(say('incidents-stopped', { reason: logText }))
      this.trouble = String(logText)
    } finally {
      this.isBusy = false
    }
  }

  private apply(incident: Incident, action: Action, by: Actor, now: number, until: number): Incident | undefined {
    switch (action) {
      case 'take': return take(incident, by, now, this.ackOf(incident)?.remind)
      case 'silence': return silence(incident, by, now, until)
      case 'resolve': return resolve(incident, now, by)
      case 'release': return release(incident, by, now)
    }
  }

  private ackOf({ name }: Incident): Ack | undefined {
    return this.options.names.get(name)?.ack
  }

  private save(writer: Writer, incident: Incident): void {
    saveIncident(writer, incident, this.ackOf(incident))
  }

  /** Counts an event in a silenced thread. @returns whether it is one */
  private isMissed(request: MessageRequest, caller: string | null, ack: Ack): boolean {
    const { relay: { store }, recorder } = this.options
    if (store.failure) return false
    const incident = recorder.incidentOf(store, request, caller)
    if (incident?.state !== 'silenced') return false
    const { severity = 'info', begunAt, items, target } = request
    const event = { chat: writeTarget(target), severity, begunAt, title: titleOf(items) }
    store.commit(writer => saveIncident(writer, miss(incident, event), ack))
    return true
  }

  /** What is due of one incident. A message is accepted first, by an Idempotency-Key, and then noted: a kill in between repeats nothing. */
  private async advance(incident: Incident, now: number): Promise<void> {
    const { id, state, owner, steps, silencedUntil = 0, remindAt = 0 } = incident
    const ack = this.ackOf(incident)
    const step = ack && dueStep(incident, ack, now)
    if (state === 'silenced' && silencedUntil <= now) {
      const said = await this.say(incident, { key: `wake ${silencedUntil}`, write: language => writeWoken(incident, language) })
      if (said) this.change(id, present => present.silencedUntil === silencedUntil ? wake(present, now) : present)
    } else if (state === 'taken' && owner && ack?.remind !== undefined && remindAt <= now) {
      const { remind } = ack
      const words = owner.person === undefined ? [] : [owner.person]
      const said = await this.say(incident, { key: `remind ${remindAt}`, words, write: language => writeReminder(incident, now, language) })
      if (said) this.change(id, present => present.remindAt === remindAt ? reminded(present, now, remind) : present)
    } else if (ack && step !== undefined) {
      const { mention: words, to } = ack.escalate[step] ?? {}
      const key = `step ${steps.from} ${step} ${steps.last ?? ''}`
      const said = await this.say(incident, { key, words, to, write: language => writeStep(incident, now, language) })
      const isSame = (present: Incident): boolean => present.state === 'open' && present.steps.from === steps.from
      if (said) this.change(id, present => isSame(present) ? stepped(present, step, said.called, now) : present)
    } else {
      // The rules of its name have changed: it is due at another time.
      this.change(id, present => present)
    }
  }

  /**
   * Says something in the chats of an incident, or to the target of a step, unless the incident changes meanwhile. It leaves like other
   * messages to these names: at once if it is critical.
   *
   * @returns who was called by `@`; `undefined` if it is to be tried again
   */
  private async say(incident: Incident, saying: Saying): Promise<{ called: string[] } | undefined> {
    const { key, words = [], to, write } = saying
    const { recorder, names, language, clock } = this.options
    const { id, name, severity, state } = incident
    const called = new Set<string>()
    try {
      for (const destination of parseDestinations(to ?? name, {}, names).list) {
        const whom = recorder.whom(words, waysOf(destination))
        for (const { person = everybody } of whom) called.add(person)
        await this.hand(incident, destination, {
          items: withMentions([{ type: 'text', text: write(destination.lang ?? language) }], whom),
          key: `incident ${id} ${key} ${keyOf(destination)}`,
          isUrgent: severity === 'critical',
          isStill: () => this.get(id)?.state === state,
        })
      }
    } catch (thrown) {
      const { code, logText } = RelayError.from(thrown)
      // Somebody took it in this moment.
      if (code === 'conflict') return undefined
      if (general.has(code)) throw thrown
      const isPassing = passing.has(code)
      this.options.logger.warn(say(isPassing ? 'step-tried-again' : 'step-left-out', { id, step: key, reason: logText }))
      if (isPassing) this.later.set(id, clock.now() + retryDelay)
      if (isPassing) return undefined
    }
    return { called: [...called] }
  }

  /** Tells the chats of an incident how it is now, or only the chat of who asked. */
  private async answer(
    incident: Incident, write: (language: Language) => string, from: Place | undefined, isForAll: boolean,
  ): Promise<void> {
    const { names, language, logger } = this.options
    const { id, name } = incident
    try {
      const chats: Spot[] = isForAll ? [...parseDestinations(name, {}, names).list] : []
      if (from && !chats.some(({ target }) => writeTarget(target) === writeTarget(from.target))) chats.push(from)
      for (const chat of chats) {
        const items = [{ type: 'text' as const, text: write(chat.lang ?? language) }]
        await this.hand(incident, chat, { items, isUrgent: true, expiresIn: answerLifetime })
      }
    } catch (error) {
      logger.warn(say('chats-not-told', { id, reason: RelayError.from(error).logText }))
    }
  }

  /** Hands a message about an incident to the core: in the thread of the incident where that is, else in one of its own. */
  private async hand(incident: Incident, spot: Spot, { items, key, isUrgent, isStill, expiresIn }: Handing): Promise<void> {
    const { target, bot, policy, route } = spot
    const { relay, names } = this.options
    const isOwn = incident.heard[writeTarget(target)] !== undefined
    const request: MessageRequest = {
      mode: 'single', items, target, bot, route, policy: isOwn ? names.get(incident.name)?.policy : policy,
      thread: isOwn ? incident.thread : `incident ${incident.id}`, ...isUrgent && { urgent: true },
      ...expiresIn !== undefined && { expiresIn },
    }
    await relay.submit({
      id: uuid(), door: incidentDoor, caller: isOwn ? incident.caller : callerOf(incident), request, deferred: { wait: 0 },
      ...key !== undefined && { key, event: {} },
      complete(completed) {
        if (isStill?.() === false) throw new RelayError('conflict', say('incident-changed'))
        return completed
      },
    })
  }

  private tell(): void {
    const { relay, tell } = this.options
    const found = findUntold(relay.store, this.toldUpTo, stretch)
    this.toldUpTo = found[stretch - 1]?.id ?? ''
    const told = found.filter(incident => tell(incident, incident.timeline.slice(-incident.untold)))
    if (told.length > 0) relay.store.commit(writer => told.forEach(incident => this.save(writer, { ...incident, untold: 0 })))
  }

  private change(id: string, change: (present: Incident) => Incident): void {
    this.options.relay.store.commit(writer => {
      const present = findIncident(writer, id)
      if (present) this.save(writer, change(present))
    })
  }
}

/** A chat of an incident. */
type Spot = Place & Pick<Destination, 'policy' | 'route' | 'lang'>

/** What is to be said once. */
interface Saying {
  key: string
  /** Whom to call by `@`. */
  words?: readonly string[] | undefined
  /** A target or name in place of the chats of the incident. */
  to?: string | undefined
  write: (language: Language) => string
}

interface Handing {
  items: MessageRequest['items']
  key?: string
  isUrgent: boolean
  /** Whether it is still to be said, asked in the tick in which it is accepted. */
  isStill?: () => boolean
  expiresIn?: number
}
