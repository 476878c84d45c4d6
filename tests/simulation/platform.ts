import { RelayError } from '../../src/errors'
import type { BotSelector, Target } from '../../src/message/model'
import {
  SendError, type Account, type Closure, type HistoryPage, type Limit, type LoadedItem, type Message, type Port, type Receipt, type Report,
} from '../../src/platform/port'
import type { Random } from '../faults/random'
import type { ProcessClock, Timeline } from './clock'

/** Separates a text from its mark in a message. Only the judges read marks. */
export const markSign = '\u2063'
const markPattern = new RegExp(`${markSign}([\\d.]+)`, 'g')

/** How long the adapter waits for an answer about the history, in milliseconds. */
const longestQuestion = 30_000

/** The course of one call. All times are in milliseconds since the call. */
export interface CallFault {
  /** `nameless` is a success without an ID. A call with `none` is never answered. */
  answer: 'sent' | 'nameless' | 'none' | 'limited' | keyof typeof failures
  answerAfter: number
  /** The rate limit of a `limited` call. */
  limit?: Limit
  /** When the message is in the chat; absent if never. */
  carriedAfter?: number
  /** `carriedAfter` as a multiple of the settling time. */
  carriedAfterSettling?: number
  /** When the connection breaks. */
  cutAfter?: number
  /** How long another plugin of the bot holds the message before the call. */
  heldFor?: number
}

/** The course of one request for the history. */
export interface HistoryFault {
  answer: 'page' | 'refused' | 'unanswered' | 'none' | 'unreadable'
  answerAfter: number
  /** When the platform reads the history, between the request and its answer. */
  readAfter: number
}

/** The faults of a chat, by the numbers of the calls and of the requests for the history. */
export interface ChatFaults {
  calls: readonly (CallFault | undefined)[]
  questions: readonly (HistoryFault | undefined)[]
}

/** The options of a platform without faults. */
export interface PlatformOptions {
  hasHistory: boolean
  /** Whether the platform reports messages of the bot's own account; `undefined` if such a platform never does. */
  reports: boolean | undefined
  /** Whether texts are resent if nothing can tell whether they arrived. */
  retriesUnanswered: boolean
  /** For how long after the first call a repeated one creates no second message; absent if it always does. */
  idempotentFor?: number
  /** Whether the platform's times are whole seconds. */
  isCoarse: boolean
  /** How far the platform's clock is ahead, in milliseconds. */
  offset: number
  /** Whether the platform can tell if a chat is muted. */
  tellsMutes: boolean
  accounts: readonly string[]
}

/** A temporary problem of a chat or an account. `logged-out` shows in the status of the account, `unknown-login` only in answers. */
export type Trouble = 'muted' | 'logged-out' | 'unknown-login' | 'swallowed'

/** A call: `begin` was called. */
export interface Call {
  readonly process: ProcessClock
  readonly chat: string
  /** The relay's name of the message. */
  readonly name: string
  /** The marks of the items in the message. */
  readonly marks: readonly string[]
  readonly likeness: string
  readonly begunAt: number
  /** `begunAt` by the machine's clock. */
  readonly wall: number
  /** How long the platform may carry out the call at most, in milliseconds. */
  readonly settle: number
  readonly fault: CallFault | undefined
  /** When the relay got the answer, or lost the connection. */
  answeredAt?: number
  /** When the account was logged out before the answer. */
  leftAt?: number
  outcome?: string
}

/** A request for the history of a chat. */
export interface Question {
  readonly process: ProcessClock
  readonly chat: string
  readonly begunAt: number
  answeredAt?: number
}

/** A message in a chat. */
export interface Entry {
  readonly id: string
  readonly time: number
  readonly call: Call
}

interface Chat {
  /** The history, oldest first: messages of the account, which others may not see, and numbers of messages of others. */
  log: (Entry & { isSeen: boolean } | { others: number, time: number })[]
  calls: number
  questions: number
}

interface Connection {
  readonly process: ProcessClock
  readonly sid: string
  reports: Map<string, Report[]>
  readonly watches: Set<Parameters<Port['onHealth']>[0]>
  /** Called when the connection breaks. */
  readonly open: Set<(error: SendError) => void>
}

/** The scripted platform. Its ledger contains the messages that were carried out, with their calls and times. */
export class Platform {
  readonly ledger: Entry[] = []
  readonly calls: Call[] = []
  /** When the platform told that a chat was open again, in a report or an answer. */
  readonly openings: { chat: string, at: number }[] = []
  /** The requests for histories. */
  readonly questions: Question[] = []
  private readonly chats = new Map<string, Chat>()
  private readonly offline = new Set<string>()
  /** The ends of present troubles, by trouble and chat or account. */
  private readonly troubles = new Map<string, number>()
  private readonly listeners = new Set<{ process: ProcessClock, callback: Parameters<Port['onChat']>[0] }>()
  private readonly connections: Connection[] = []
  /** The last message that was carried out, by the relay's name for it. */
  private readonly named = new Map<string, Entry>()
  /** Cancels work that has not been carried out yet. */
  private readonly pending = new Map<string, Set<() => void>>()

  constructor(
    private readonly timeline: Timeline, private readonly random: Random, private readonly options: PlatformOptions,
    private readonly faults: (chat: string) => ChatFaults,
    private readonly settleOf: (items: readonly LoadedItem[]) => number,
    private readonly onCall: (call: Call) => void,
  ) {}

  /** Adds messages of others to a chat. */
  chatter(chat: string, others: number, time = this.timeline.now): void {
    if (others > 0) this.chatOf(chat).log.push({ others, time })
  }

  /** Breaks the connections of an account, in all processes. They are back after `away` milliseconds. */
  cut(sid: string, away: number): void {
    this.offline.add(sid)
    for (const connection of this.connections) {
      if (connection.sid !== sid) continue
      for (const fail of [...connection.open]) fail(new SendError('unanswered', 'the connection was lost'))
    }
    this.tellStatus(sid)
    this.timeline.at(this.timeline.now + away, () => {
      if (this.offline.delete(sid)) this.tellStatus(sid)
    })
  }

  /** Puts an account into trouble until a time, in all its chats. */
  trouble(sid: string, what: Trouble, until: number): void {
    this.set(what, sid, until, () => what === 'logged-out' && this.tellStatus(sid))
    if (what !== 'logged-out') return
    for (const call of this.calls) if (call.answeredAt === undefined && call.chat.startsWith(`${sid} `)) call.leftAt ??= this.timeline.now
    this.tellStatus(sid)
  }

  /** Mutes a chat until a time. */
  mute(sid: string, target: Target, until: number, { isReported, isLifted }: { isReported: boolean, isLifted: boolean }): void {
    const tell = (state: 'muted' | 'open'): void => {
      if (!this.isOnline(sid)) return
      if (state === 'open') this.openings.push({ chat: chatName(sid, target), at: this.timeline.now })
      for (const listener of this.listeners) {
        const { process, callback } = listener
        process.deliver(this.timeline.now + 30, () => {
          const left = (this.troubles.get(`muted ${chatName(sid, target)}`) ?? 0) - this.timeline.now
          if (this.listeners.has(listener)) callback(sid, target, state === 'open' ? state : { cause: state, until: process.wall() + left })
        })
      }
    }
    this.set('muted', chatName(sid, target), until, () => isLifted && tell('open'))
    if (!isReported) return
    tell('muted')
    this.openings.push({ chat: chatName(sid, target), at: until })
  }

  /** Restarts the platform. Work in progress is lost, and the history may become shorter. */
  restart(sid: string, away: number, kept: number): void {
    for (const cancel of this.pending.get(sid) ?? []) cancel()
    for (const [name, chat] of this.chats) if (name.startsWith(sid)) chat.log = kept > 0 ? chat.log.slice(-kept) : []
    this.cut(sid, away)
  }

  isOnline(sid: string): boolean {
    return !this.offline.has(sid) && !this.has('logged-out', sid)
  }

  private has(what: Trouble, where: string): boolean {
    return (this.troubles.get(`${what} ${where}`) ?? -1) > this.timeline.now
  }

  private set(what: Trouble, where: string, until: number, onEnd: () => unknown): void {
    const key = `${what} ${where}`
    this.troubles.set(key, Math.max(until, this.troubles.get(key) ?? 0))
    this.timeline.at(until, () => this.has(what, where) || onEnd())
  }

  /** Notifies all processes of the status of an account. */
  private tellStatus(sid: string): void {
    const isOnline = this.isOnline(sid)
    for (const { process, sid: told, watches } of this.connections) {
      if (told === sid) process.deliver(this.timeline.now, () => watches.forEach(watch => watch(sid, isOnline)))
    }
  }

  /** Converts a time of the timeline to the platform's clock, in milliseconds since the epoch. */
  private shownAt(time: number): number {
    return this.timeline.wall - this.timeline.now + time + this.options.offset
  }

  /** The platform's port for a process. */
  port(process: ProcessClock): Port {
    const accounts = this.options.accounts.map(sid => this.account(process, sid))
    const fits = ({ selfId }: BotSelector) => (account: Account): boolean => selfId === undefined || account.selfId === selfId
    const candidate = (selector: BotSelector): Account | undefined => {
      return accounts.find(account => account.isOnline && fits(selector)(account)) ?? accounts.find(fits(selector))
    }
    const choose: Port['choose'] = (selector, mayWait = false) => {
      const chosen = candidate(selector)
      if (!chosen || (!chosen.isOnline && !mayWait)) throw new RelayError('unsent')
      return chosen
    }
    const onHealth: Port['onHealth'] = callback => {
      const own = this.connections.filter(connection => connection.process === process)
      for (const { watches } of own) watches.add(callback)
      return () => own.forEach(({ watches }) => watches.delete(callback))
    }
    const onChat: Port['onChat'] = callback => {
      const listener = { process, callback }
      this.listeners.add(listener)
      return () => this.listeners.delete(listener)
    }
    return { candidate, choose, find: sid => accounts.find(account => account.sid === sid), onHealth, onChat }
  }

  private account(process: ProcessClock, sid: string): Account {
    const connection: Connection = { process, sid, reports: new Map(), watches: new Set(), open: new Set() }
    this.connections.push(connection)
    const isOnline = (): boolean => this.isOnline(sid)
    const isLoggedOut = (): boolean => this.has('logged-out', sid)
    return {
      canUpdate: false,
      sid, platform: 'onebot', selfId: sid.slice('onebot:'.length), name: sid,
      get health() {
        const cause = isLoggedOut() ? { cause: 'logged-out' } as const : {}
        return { state: isOnline() ? 'online' as const : 'offline' as const, since: 0, ...cause }
      },
      get isOnline() {
        return isOnline()
      },
      readsFiles: false,
      takesFiles: true,
      longestText: Infinity,
      retriesUnanswered: this.options.retriesUnanswered,
      check: (_, items) => items,
      message: (target, items, name) => this.message(connection, chatName(sid, target), items, name),
      recallableFor: Infinity,
      recall: () => Promise.resolve(),
      closure: target => this.closure(connection, chatName(sid, target)),
      groups: () => Promise.resolve([]),
      friends: () => Promise.resolve([]),
    }
  }

  private closure({ process, sid }: Connection, chat: string): Promise<Closure | 'open' | undefined> {
    return new Promise((resolve, reject) => {
      process.deliver(this.timeline.now + 20, () => {
        const until = this.shownAt(this.troubles.get(`muted ${chat}`) ?? 0)
        if (!this.isOnline(sid)) reject(failures.unsent)
        else if (!this.options.tellsMutes) resolve(undefined)
        else if (this.has('muted', chat)) resolve({ cause: 'muted', until })
        else {
          this.openings.push({ chat, at: this.timeline.now })
          resolve('open')
        }
      })
    })
  }

  /** The fault that the troubles of a chat and its account cause for a call. */
  private troubleOf(sid: string, chat: string): CallFault | undefined {
    if (this.has('logged-out', sid) || this.has('unknown-login', sid)) return { answer: 'logged-out', answerAfter: 10 }
    if (this.has('muted', chat)) return { answer: 'muted', answerAfter: 10 }
    return this.has('swallowed', sid) ? { answer: 'swallowed', answerAfter: 100, carriedAfter: 10 } : undefined
  }

  private message(connection: Connection, chat: string, items: readonly LoadedItem[], name: string): Message {
    const { idempotentFor, reports } = this.options
    const likeness = items.map(likenessOf).join(' ')
    const marks = items.flatMap(marksOf)
    const settle = this.settleOf(items)
    return {
      likeness,
      send: begin => new Promise((resolve, reject) => {
        const { calls } = this.faults(chat)
        const fault = calls[this.chatOf(chat).calls++]
        const start = (): void => {
          if (!this.isOnline(connection.sid)) {
            reject(new SendError('unsent'))
            return
          }
          try {
            begin()
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)))
            return
          }
          const met = this.troubleOf(connection.sid, chat) ?? fault
          const call: Call = {
            process: connection.process, chat, name, marks, likeness,
            begunAt: this.timeline.now, wall: connection.process.wall(), settle, fault: met,
          }
          this.calls.push(call)
          this.carryOut(connection, call, { resolve, reject })
          this.onCall(call)
        }
        if (fault?.heldFor === undefined) start()
        else connection.process.deliver(this.timeline.now + fault.heldFor, start)
      }),
      ...idempotentFor !== undefined && { idempotentFor },
      ...reports !== undefined && { reports: () => connection.reports.get(`${chat} ${likeness}`) ?? [] },
      history: count => this.history(connection, chat, likeness, count),
    }
  }

  private carryOut(
    connection: Connection, call: Call, { resolve, reject }: { resolve: (receipt: Receipt) => void, reject: (error: Error) => void },
  ): void {
    const { now } = this.timeline
    const took = this.random.between(5, 300)
    const fault = call.fault ?? { answer: 'sent', answerAfter: took, carriedAfter: this.random.between(1, took) }
    const carriedAfter = fault.carriedAfterSettling === undefined ? fault.carriedAfter : fault.carriedAfterSettling * call.settle
    let entry: Entry | undefined
    if (carriedAfter !== undefined) this.later(connection.sid, carriedAfter, () => entry = this.carry(call))
    const end = (outcome: string, tell: () => void): void => {
      if (!connection.open.delete(fail)) return
      call.answeredAt = this.timeline.now
      call.outcome = outcome
      tell()
    }
    const fail = (error: SendError): void => {
      connection.process.deliver(this.timeline.now, () => end('lost', () => reject(error)))
    }
    connection.open.add(fail)
    if (fault.cutAfter !== undefined) this.timeline.at(now + fault.cutAfter, () => this.cut(connection.sid, this.random.between(100, 5000)))
    const { answer } = fault
    if (answer === 'none') return
    const isYes = answer === 'sent' || answer === 'nameless'
    // The answer uses the connection of the call, which may have broken.
    this.later(connection.sid, Math.max(fault.answerAfter, isYes ? carriedAfter ?? 0 : 0), () => {
      connection.process.deliver(this.timeline.now, () => end(answer, () => {
        if (isYes) resolve({ messageIds: entry && answer === 'sent' && !call.likeness.startsWith('[file') ? [entry.id] : [] })
        else reject(answer === 'limited' ? new SendError('unsent', 'limited', { causeId: 'rate-limited', limit: fault.limit }) : failures[answer])
      }))
    })
  }

  private carry(call: Call): Entry {
    const { idempotentFor = 0 } = this.options
    const known = this.named.get(call.name)
    if (known && call.begunAt < known.call.begunAt + idempotentFor) return known
    const { log } = this.chatOf(call.chat)
    const isSeen = call.fault?.answer !== 'swallowed'
    const entry = { id: `m${this.ledger.length + 1}${isSeen ? '' : ` ${log.length}`}`, time: this.timeline.now, call, isSeen }
    log.push(entry)
    if (isSeen) {
      this.ledger.push(entry)
      this.named.set(call.name, entry)
    }
    if (!isSeen || !this.options.reports) return entry
    for (const { process, sid, reports } of this.connections) {
      if (!call.chat.startsWith(`${sid} `) || !this.isOnline(sid)) continue
      process.deliver(this.timeline.now + this.random.between(0, 400), () => {
        const key = `${call.chat} ${call.likeness}`
        reports.set(key, [...reports.get(key) ?? [], { id: entry.id, heardAt: process.now() }])
      })
    }
    return entry
  }

  /** Schedules work that a restart of the platform cancels. */
  private later(sid: string, ms: number, what: () => void): void {
    const pending = this.pending.get(sid) ?? new Set()
    this.pending.set(sid, pending)
    const cancel = this.timeline.at(this.timeline.now + ms, () => {
      pending.delete(cancel)
      what()
    })
    pending.add(cancel)
  }

  private history(connection: Connection, chat: string, likeness: string, count: number): Promise<HistoryPage | undefined> {
    const { questions } = this.faults(chat)
    const fault = questions[this.chatOf(chat).questions++] ?? { answer: 'page', answerAfter: this.random.between(2, 100), readAfter: 1 }
    return new Promise((resolve, reject) => {
      if (!this.isOnline(connection.sid)) {
        reject(new SendError('unsent'))
        return
      }
      const question: Question = { process: connection.process, chat, begunAt: this.timeline.now }
      this.questions.push(question)
      const fail = (error: SendError): void => {
        question.answeredAt = this.timeline.now
        connection.process.deliver(this.timeline.now, () => connection.open.delete(fail) && reject(error))
      }
      connection.open.add(fail)
      let page: HistoryPage | undefined
      this.timeline.at(this.timeline.now + fault.readAfter, () => page = this.page(chat, likeness, count))
      const answerAfter = fault.answer === 'none' ? longestQuestion : Math.max(fault.answerAfter, fault.readAfter)
      connection.process.deliver(this.timeline.now + answerAfter, () => {
        if (!connection.open.delete(fail)) return
        question.answeredAt = this.timeline.now
        if (!this.options.hasHistory) resolve(undefined)
        else if (fault.answer === 'none') reject(failures.unanswered)
        else if (fault.answer === 'refused' || fault.answer === 'unanswered') reject(failures[fault.answer])
        else resolve(page && { ...page, isReadable: fault.answer === 'page' })
      })
    })
  }

  private page(chat: string, likeness: string, count: number): HistoryPage {
    const { log } = this.chatOf(chat)
    const timeOf = (time: number): number => {
      const shown = this.shownAt(time)
      return this.options.isCoarse ? Math.floor(shown / 1000) * 1000 : shown
    }
    const own: HistoryPage['own'][number][] = []
    let oldest = Infinity
    let left = count
    for (let place = log.length - 1; place >= 0 && left > 0; place--) {
      const said = log[place]
      if (!said) break
      left -= 'others' in said ? said.others : 1
      oldest = timeOf(said.time)
      if ('id' in said) own.push({ id: said.id, time: oldest, isEqual: said.call.likeness === likeness, isSeen: said.isSeen })
    }
    return { own, oldest, isReadable: true }
  }

  private chatOf(name: string): Chat {
    const chat = this.chats.get(name) ?? { log: [], calls: 0, questions: 0 }
    this.chats.set(name, chat)
    return chat
  }
}

export function chatName(sid: string, { kind, id }: Target): string {
  return `${sid} ${kind}:${id}`
}

/** The content of an item as a history shows it. Pictures look alike, as do videos, and files of one name. */
function likenessOf(item: LoadedItem): string {
  if (item.type === 'text') return item.text.replaceAll(markPattern, '')
  return item.type === 'file' ? `[file ${item.name}]` : `[${item.type}]`
}

/** The marks of an item. That of media is part of the link. The text of a digest contains those of its members. */
function marksOf(item: LoadedItem): string[] {
  if (item.type === 'text') return Array.from(item.text.matchAll(markPattern), ([, mark = '']) => mark)
  if (!('src' in item)) return []
  const [, base64] = item.src.split(';base64,')
  return /mark-([\d.]+)-/.exec(base64 === undefined ? item.src : Buffer.from(base64, 'base64').toString())?.slice(1) ?? []
}

/** The failures of calls, as the port throws them. */
const failures = {
  'refused': new SendError('refused', 'refused'),
  'about-target': new SendError('refused', 'muted', { causeId: 'muted' }),
  'muted': new SendError('refused', 'muted', { causeId: 'muted' }),
  'final': new SendError('refused', 'no', { isFinal: true }),
  'suppressed': new SendError('suppressed', 'suppressed'),
  'unsent': new SendError('unsent', 'unsent', { causeId: 'unreachable' }),
  'logged-out': new SendError('unsent', 'logged out', { causeId: 'logged-out' }),
  'unanswered': new SendError('unanswered', 'unanswered'),
  'swallowed': new SendError('unanswered', 'swallowed', { causeId: 'swallowed' }),
} as const
