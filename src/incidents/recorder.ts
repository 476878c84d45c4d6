import { randomInt } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Language } from '../texts/language'
import { everybody } from '../message/mentions'
import type { Address, Item, MessageRequest, ParsedItem, TargetNames } from '../message/model'
import { waysOf, writeTarget } from '../message/target'
import type { Port } from '../platform/port'
import type { Clock } from '../relay/clock'
import { messageIdsOf, threadName, type Delivery } from '../relay/delivery/delivery'
import type { Observer } from '../relay/options'
import type { Reader, Store, Writer } from '../relay/store/store'
import { begin, happen, isNews, isNewStart, isWorse, resolve, type Incident } from './incident'
import type { Called, Directory } from './people'
import { countUnresolved, findByThread, findIncident, saveIncident, saveMessage } from './table'
import { writeEnd } from './texts'
import { say } from '../texts/text'
import type { Log } from '../lib/log'

/** The door of what the relay says about incidents. */
export const incidentDoor = 'incidents'
/** The most unresolved incidents. */
export const mostIncidents = 10_000
/** How many threads of names without incidents are remembered, for whom they called. */
const mostThreads = 10_000
/** The longest title, in characters. */
const longestTitle = 200
/** Letters and digits that nobody takes for others. */
const letters = 'abcdefghjkmnpqrstuvwxyz23456789'
const idLength = 5
const callerPrefix = 'incident:'

export interface RecorderOptions {
  clock: Clock
  names: TargetNames
  directory: Directory
  /** The language of texts if a name has none. */
  language: Language
  /** Tells which bot an address would use. */
  port: Pick<Port, 'candidate'>
  /** The present store. */
  store: () => Store
  logger: Pick<Log, 'warn'>
}

/** Completes requests with mentions, and notes inside the commits of the core which incidents begin, go on and end. */
export class Recorder implements Pick<Observer, 'accepted' | 'recorded'> {
  /** What the chats of threads without an incident have heard, as in `Incident.heard`. */
  private readonly threads = new LRUCache<string, Incident['heard']>({ maxSize: mostThreads, sizeCalculation: () => 1 })
  /** Whom a completed request calls. */
  private readonly calls = new WeakMap<MessageRequest, readonly Called[]>()
  private isFull = false

  constructor(private readonly options: RecorderOptions) {}

  /** Adds whom a request calls by `@`, and to the end of an incident how long it took and who had it. @param id of the submission */
  complete(request: MessageRequest, caller: string | null, id: string): MessageRequest {
    const { names, language, store, clock } = this.options
    const { policy, severity } = request
    const isEvent = severity !== undefined && policy !== undefined && names.get(policy.name)?.ack !== undefined
    // An event without a thread is one by itself.
    const next = isEvent && request.thread === undefined ? { ...request, thread: id } : request
    const reader = store()
    const incident = reader.failure ? undefined : this.incidentOf(reader, next, caller)
    const isNew = !reader.failure && this.isNew(incident, next, caller)
    const called = isNew ? this.calledBy(next) : []
    this.note(next, caller)
    const isEnd = severity === 'ok' && incident !== undefined && incident.state !== 'resolved'
    const line = isEnd ? writeEnd(incident, clock.wall(), policy?.lang ?? language) : ''
    const isUrgent = isEvent && isNew && severity === 'critical'
    const completed = { ...next, items: withLine(withMentions(next.items, called), line), ...isUrgent && { urgent: true } }
    this.calls.set(completed, called)
    return completed
  }

  /** A completed request was refused: whom it called was not called. */
  refused(request: MessageRequest, caller: string | null): void {
    this.threads.delete(keyOf(request, caller))
  }

  accepted(writer: Writer, delivery: Delivery, request: MessageRequest): void {
    const { policy, severity, thread, begunAt } = request
    const ack = policy && this.options.names.get(policy.name)?.ack
    if (!ack || severity === undefined || thread === undefined || delivery.door === incidentDoor) return
    const { caller, createdAt: now, target } = delivery
    const known = this.incidentOf(writer, request, caller)
    const incident = known?.state === 'resolved' ? undefined : known
    if (severity === 'ok') {
      const ended = incident && resolve(incident, now)
      if (ended) saveIncident(writer, ended, ack)
      return
    }
    const called = (this.calls.get(request) ?? []).map(({ person = everybody }) => person)
    const event = { severity, begunAt, title: titleOf(request.items), chat: writeTarget(target), called }
    if (incident) saveIncident(writer, happen(incident, event, now), ack)
    else if (!isWorse(ack.from, severity) && !(known && !isNewStart(known, begunAt)) && this.hasRoom(writer)) {
      saveIncident(writer, begin({ id: newId(writer), name: policy.name, thread, caller }, event, now), ack)
    }
  }

  /** Notes the platform messages of an incident, by which people in the chat refer to it. */
  recorded(writer: Writer, delivery: Delivery): void {
    const { bot, target, door, caller, flow: { policy, thread } } = delivery
    if (policy?.durable !== true && door !== incidentDoor) return
    const own = policy && thread && findByThread(writer, policy.name, thread.name)
    const incident = own ?? findIncident(writer, caller?.startsWith(callerPrefix) ? caller.slice(callerPrefix.length) : '')
    if (incident) for (const message of messageIdsOf(delivery)) saveMessage(writer, placeOf(bot, writeTarget(target)), message, incident.id)
  }

  /** The newest incident of a thread. */
  incidentOf(reader: Reader, { policy, thread }: Pick<MessageRequest, 'policy' | 'thread'>, caller: string | null): Incident | undefined {
    return policy && thread !== undefined ? findByThread(reader, policy.name, threadName(caller, thread)) : undefined
  }

  /** Whether a request is the first message of its thread to a chat, or worse than what that chat has heard of. */
  private isNew(incident: Incident | undefined, request: MessageRequest, caller: string | null): boolean {
    const { severity = 'info', target, begunAt } = request
    const isAnew = incident?.state === 'resolved' && isNewStart(incident, begunAt)
    const heard = isAnew ? {} : incident?.heard ?? this.threads.get(keyOf(request, caller)) ?? {}
    return severity !== 'ok' && isNews({ heard }, writeTarget(target), severity)
  }

  private calledBy(request: MessageRequest): readonly Called[] {
    const { policy, severity = 'info', mention = policy && this.options.names.get(policy.name)?.mention } = request
    const words = mention?.[severity] ?? []
    return words.length > 0 ? this.whom(words, waysOf(request)) : []
  }

  /** Who is called by these words, now, at a destination with these ways. */
  whom(words: readonly string[], ways: readonly Address[]): readonly Called[] {
    const { directory, port, clock } = this.options
    const [platform = '', ...others] = new Set(ways.map(way => port.candidate(way)?.platform ?? way.platform))
    // Each platform has accounts of its own: where a fallback may be another one, everybody is written by name.
    return directory.whom(words, others.length > 0 ? '' : platform, clock.wall())
  }

  /** Notes what a chat hears of a thread. */
  private note(request: MessageRequest, caller: string | null): void {
    const { thread, severity = 'info', target } = request
    const key = keyOf(request, caller)
    if (severity === 'ok') this.threads.delete(key)
    else if (thread !== undefined) {
      const heard = this.threads.get(key) ?? {}
      if (isNews({ heard }, writeTarget(target), severity)) this.threads.set(key, { ...heard, [writeTarget(target)]: severity })
    }
  }

  private hasRoom(reader: Reader): boolean {
    const isFull = countUnresolved(reader) >= mostIncidents
    if (isFull && !this.isFull) this.options.logger.warn(say('too-many-incidents', { most: mostIncidents }))
    this.isFull = isFull
    return !isFull
  }
}

function keyOf({ policy, thread = '' }: MessageRequest, caller: string | null): string {
  return JSON.stringify([policy?.name, caller, thread])
}

/** Puts mentions before the first text or picture. Who has no account there is written by name. */
export function withMentions(items: readonly ParsedItem[], called: readonly Called[]): readonly ParsedItem[] {
  const at = items.findIndex(item => 'type' in item && (item.type === 'text' || item.type === 'image'))
  if (called.length === 0 || at < 0) return items
  const mentions = called.flatMap(({ userId }): Item[] => userId === undefined ? [] : [{ type: 'at', userId }])
  const written = called.flatMap(({ userId, name }) => userId === undefined ? [`@${name}`] : [])
  const [first, ...rest] = items.slice(at)
  // The names of accounts, which the platform writes, end without a blank.
  const names = [...mentions.length > 0 ? [''] : [], ...written]
  return [...items.slice(0, at), ...mentions, ...first ? withNames(first, names) : [], ...rest]
}

function withNames(item: ParsedItem, names: readonly string[]): ParsedItem[] {
  if ('text' in item) return [{ ...item, text: [...names, item.text].join(' ') }]
  const text = names.join(' ').trim()
  return text === '' ? [item] : [{ type: 'text', text }, item]
}

/** Adds a line to the first text. */
function withLine(items: readonly ParsedItem[], line: string): readonly ParsedItem[] {
  if (line === '') return items
  const at = items.findIndex(item => 'text' in item)
  return items.map((item, index) => index === at && 'text' in item ? { ...item, text: `${item.text}\n${line}` } : item)
}

/** What a message is about: what a digest shows of it, or else its first two lines, as the first one may not name the machine. */
export function titleOf(items: readonly ParsedItem[]): string {
  const item = items.find(each => 'text' in each)
  if (!item || !('text' in item)) return ''
  const line = item.line ?? item.text.trim().split('\n').slice(0, 2).join(' ')
  return Array.from(line).slice(0, longestTitle).join('')
}

/** A new ID, short enough to type. */
function newId(reader: Reader): string {
  for (;;) {
    const id = Array.from({ length: idLength }, () => letters[randomInt(letters.length)]).join('')
    if (!findIncident(reader, id)) return id
  }
}

/** The chat of a platform message: the `sid` of its bot and its target, as `writeTarget` has it. */
export function placeOf(bot: string, target: string): string {
  return `${bot} ${target}`
}

/** The caller of what is said about an incident outside of its own chats. */
export function callerOf({ id }: Pick<Incident, 'id'>): string {
  return callerPrefix + id
}
