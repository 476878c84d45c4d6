import { actionsOf } from './actions'
import { ActionFailure, failed, success, type Answer } from './answers'
import type { Connection } from './connections'
import { FaultBook, sends } from './faults'
import { isRecord, parseJson } from './parse'
import type { Platform } from './platform'
import type { Reason } from './profiles'
import { targetOf } from './switches'
import type { Call, Fault } from './types'

/**
 * A received call: its connection, its number on that connection, its approximate size in bytes, and whether its message is swallowed
 * (visible to nobody).
 */
interface Received { connection: Connection, number: number, call: Call, weight: number, isSwallowed?: boolean }

/** Receives frames, executes their calls and answers them, with the scripted faults. */
export class Dispatcher {
  readonly faults = new FaultBook()
  /** The slow calls in progress. */
  readonly pending = new Set<Call>()
  private readonly perform: ReturnType<typeof actionsOf>

  constructor(private readonly platform: Platform) {
    this.perform = actionsOf(platform)
  }

  /** Receives a frame of a connection. */
  receive(connection: Connection, text: string): void {
    const number = ++connection.calls
    const frame = parseJson(text)?.value
    if (!isRecord(frame)) {
      // The echo is unknown, so that the caller cannot match the answer to a call. The real implementations answer nevertheless.
      const { profile } = this.platform
      const reason = { retcode: profile.retcodes.parameter, wording: 'json解析失败,请检查数据格式', code: 'BAD_REQUEST' }
      connection.answer(number, failed(profile, reason, undefined))
      return
    }
    const action = typeof frame.action === 'string' ? frame.action : ''
    const params = isRecord(frame.params) ? frame.params : {}
    const call = { action, params, echo: frame.echo, time: this.platform.settings.clock() }
    const received = { connection, number, call, weight: text.length }
    const fault = this.faults.strike(call) ?? this.platform.switches.strike(call)
    this.platform.record(call, text.length)
    if (fault !== null) {
      this.spoil(received, fault)
      return
    }
    this.run(received, answer => {
      this.answer(received, answer)
    })
  }

  /** Answers a call and records a refused send, because nothing else would show it on the page. */
  private answer({ connection, number, call }: Received, answer: Answer): void {
    connection.answer(number, answer)
    if (answer.status !== 'failed' || !sends.test(call.action)) return
    const { retcode, wording } = answer
    this.platform.refuse({
      target: targetOf(call),
      time: this.platform.settings.clock(),
      retcode: Number(retcode),
      wording: typeof wording === 'string' ? wording : '',
    })
  }

  /** Executes a call and passes its answer on. This is synchronous unless bytes are read, so that a plain message costs little. */
  private run(received: Received, use: (answer: Answer) => void): void {
    const answer = this.answerTo(received)
    if (answer instanceof Promise) void answer.then(use)
    else use(answer)
  }

  private answerTo({ call, weight, isSwallowed = false }: Received): Answer | Promise<Answer> {
    const { profile } = this.platform
    const fail = (error: unknown): Answer => {
      if (error instanceof ActionFailure) return failed(profile, error.reason, call.echo)
      const wording = error instanceof Error ? error.message : String(error)
      return failed(profile, { retcode: profile.retcodes.execution, wording }, call.echo)
    }
    try {
      const data = this.perform({ platform: this.platform, call, weight, isSwallowed })
      if (!(data instanceof Promise)) return success(profile, data, call.echo)
      return data.then((value: unknown) => success(profile, value, call.echo), fail)
    } catch (error) {
      return fail(error)
    }
  }

  private spoil(received: Received, fault: Fault): void {
    const { connection, number, call } = received
    const { profile } = this.platform
    const refuse = (reason: Reason): void => {
      this.answer(received, failed(profile, reason, call.echo))
    }
    switch (fault.kind) {
      case 'refuse': {
        const { retcode = profile.reasons.refused.retcode, wording } = fault
        refuse(wording === undefined ? { ...profile.reasons.refused, retcode } : { retcode, wording })
        return
      }
      case 'muted':
      case 'not-member':
      case 'too-fast':
      case 'logged-out':
        refuse(profile.reasons[fault.kind])
        return
      case 'swallowed':
        this.run({ ...received, isSwallowed: true }, answer => {
          // Not recorded as a refusal: the chat shows the message, marked as swallowed.
          if (answer.status === 'ok') connection.answer(number, failed(profile, profile.reasons.swallowed, call.echo))
          else this.answer(received, answer)
        })
        return
      case 'silent':
        return
      case 'lost-answer':
        this.run(received, () => undefined)
        return
      case 'late':
        this.delay(received, fault)
        return
      case 'timeout':
        if (fault.delivered !== true) {
          refuse(profile.reasons.timeout)
          return
        }
        this.run(received, () => {
          refuse(profile.reasons.timeout)
        })
        return
      case 'duplicate-answer':
        this.run(received, answer => {
          connection.answer(number, answer)
          connection.answer(number, answer)
        })
        return
      case 'hold':
        this.run(received, answer => {
          connection.hold(number, answer)
        })
        return
      case 'close':
        this.cut(received, fault.when)
        return
      case 'answer': {
        const { answer, delivered = true } = fault
        const tell = (): void => connection.answer(number, { ...answer, echo: call.echo })
        if (delivered) this.run(received, tell)
        else tell()
        return
      }
      case 'null-data':
        this.run(received, answer => {
          connection.answer(number, answer.status === 'ok' ? success(profile, null, call.echo) : answer)
        })
        return
    }
  }

  private cut(received: Received, when: Extract<Fault, { kind: 'close' }>['when']): void {
    const { connection, number } = received
    if (when === 'before') {
      connection.drop()
      return
    }
    this.run(received, answer => {
      if (when === 'answered') connection.answer(number, answer)
      // After an answer the connection is closed with a handshake, so that the answer is not lost.
      connection.drop(when === 'answered' ? 1001 : undefined)
    })
  }

  private delay(received: Received, { ms, delivered = 'now', answered = true }: Extract<Fault, { kind: 'late' }>): void {
    const { profile, waiters } = this.platform
    this.pending.add(received.call)
    waiters.changed()
    const answer = (late: Answer): void => {
      this.pending.delete(received.call)
      if (answered) this.answer(received, late)
      waiters.changed()
    }
    if (delivered === 'never') {
      this.platform.timers.after(ms, () => {
        answer(failed(profile, profile.reasons.refused, received.call.echo))
      })
      return
    }
    if (delivered === 'then') {
      this.platform.timers.after(ms, () => {
        this.run(received, answer)
      })
      return
    }
    const start = performance.now()
    this.run(received, early => {
      // Counted from the call, including the reading of bytes.
      this.platform.timers.after(Math.max(0, ms - (performance.now() - start)), () => {
        answer(early)
      })
    })
  }
}
