import { randomBytes } from 'node:crypto'
import { Registry } from '../../lib/transient'
import { isObject, type JsonObject } from '../../message/parse'
import { SendError } from '../port'

/** What is needed of a WebSocket: one of the library `ws`, which tells of each frame by its method `emit`. Checked against 8.23.0. */
export interface WireSocket {
  readonly readyState: number
  send(data: string): void
  emit(event: string | symbol, ...args: unknown[]): boolean
  once(event: 'close', listener: () => void): unknown
}

/** States of a WebSocket, as its standard numbers them. */
export const socketState = { open: 1, closed: 3 } as const

/** A call that has not been answered. */
interface Call {
  resolve: (answer: JsonObject) => void
  reject: (error: SendError) => void
  /** When it was made, on the clock of `performance.now()`. */
  since: number
  /** About how many bytes whoever waits for the answer keeps in memory. */
  weight: number
}

/** For how long a call is waited for in any case, in milliseconds. */
const certain = 10 * 60_000
/** How much all calls of a connection may keep in memory before those that are older are given up, in bytes. */
const maxWeight = 64 * 1024 * 1024
/** What a call keeps beside its parameters, in bytes, roughly. */
const callWeight = 2048

/** Begins each `echo` of a call that is made here. The adapter counts its own calls in numbers. */
const mark = `relay-${randomBytes(6).toString('base64url')}-`
let count = 0

/** The wires by their sockets. They outlive a reload of the plugin, because the calls under way do. */
const wires = new WeakMap<object, Wire>()

/**
 * What goes over one WebSocket of a OneBot bot. It stands before the adapter: it makes calls of its own and takes their answers,
 * however late they come over this connection, and lets nothing through that the adapter could not read, because adapter-onebot 6.9.4
 * throws at such a frame where nobody can catch it. It stays for as long as the socket does, also when the plugin is unloaded.
 */
export class Wire {
  /** How many frames have come in. */
  received = 0
  /** Told why a frame was dropped. */
  onDropped: ((reason: string) => void) | undefined
  /** By the numbers in their `echo`, the oldest first. */
  private readonly calls = new Registry<Call>()
  private weight = 0

  /** The wire of a socket, which is made at the first request for it. */
  static of(socket: WireSocket): Wire {
    const wire = wires.get(socket) ?? new Wire(socket)
    wires.set(socket, wire)
    return wire
  }

  private constructor(private readonly socket: WireSocket) {
    const emit = socket.emit.bind(socket)
    socket.emit = (event, ...args) => event === 'message' && !this.passes(args[0]) ? false : emit(event, ...args)
    socket.once('close', () => this.giveUp('the connection was lost', () => true))
  }

  /** How many calls have not been answered. */
  get open(): number {
    return this.calls.size
  }

  /**
   * Makes a call. The parameters may be changed as soon as this returns.
   *
   * @returns the whole answer, unread
   * @throws SendError `unsent` when the connection is not open; `unanswered` when it closes before the answer comes. An answer that is
   *   still not there after ten minutes is given up when the calls of this connection keep more than 64 MiB in memory.
   */
  call(action: string, params: JsonObject): Promise<JsonObject> {
    if (this.socket.readyState !== socketState.open) return Promise.reject(new SendError('unsent'))
    const number = String(++count)
    const frame = JSON.stringify({ action, params, echo: mark + number })
    return new Promise((resolve, reject) => {
      const call = { resolve, reject, since: performance.now(), weight: frame.length + callWeight }
      this.calls.set(number, call)
      this.weight += call.weight
      if (this.weight > maxWeight) this.giveUp('its answer is too late', ({ since }) => this.weight > maxWeight && since < call.since - certain)
      this.socket.send(frame)
    })
  }

  /** Whether a frame is for the adapter. */
  private passes(data: unknown): boolean {
    this.received++
    const frame = parse(data)
    if (!isObject(frame)) return this.drop(frame === undefined ? 'it is not JSON' : 'it is not a JSON object')
    // The adapter tells events from answers by this field.
    if ('post_type' in frame) return isEvent(frame) || this.drop('it is an event that lacks what OneBot 11 demands')
    const { echo } = frame
    if (typeof echo === 'string' && echo.startsWith(mark)) {
      this.answer(echo.slice(mark.length), frame)
      return false
    }
    // With `"__proto__"` and the like the adapter finds what is not one of its calls.
    if (typeof echo === 'number' || (typeof echo === 'string' && /^\d+$/.test(echo))) return true
    return this.drop(typeof frame.retcode === 'number' ? `it answers no call (retcode ${frame.retcode})` : 'it answers no call')
  }

  private drop(reason: string): false {
    this.onDropped?.(reason)
    return false
  }

  private answer(number: string, frame: JsonObject): void {
    const call = this.calls.get(number)
    // It comes a second time, or was given up.
    if (!call) return
    this.remove(number, call)
    call.resolve(frame)
  }

  private giveUp(reason: string, applies: (call: Call) => boolean): void {
    for (const number of this.calls.names()) {
      const call = this.calls.get(number)
      if (!call || !applies(call)) return
      this.remove(number, call)
      call.reject(new SendError('unanswered', reason))
    }
  }

  private remove(number: string, { weight }: Call): void {
    this.calls.delete(number)
    this.weight -= weight
  }
}

/** The JSON of a frame, `undefined` when it is none. */
function parse(data: unknown): unknown {
  if (typeof data !== 'string' && !Buffer.isBuffer(data)) return
  try {
    const frame: unknown = JSON.parse(data.toString())
    return frame
  } catch {
    return undefined
  }
}

/** Whether the adapter can read an event: it reads messages without looking whether their fields are there. */
function isEvent({ post_type: type, message_id: id, message, sender }: JsonObject): boolean {
  if (type !== 'message' && type !== 'message_sent') return typeof type === 'string'
  const isReadable = typeof message === 'string' || (Array.isArray(message) && message.every(isSegment))
  return isReadable && isId(id) && isObject(sender) && (isId(sender.user_id) || isId(sender.tiny_id))
}

function isSegment(segment: unknown): boolean {
  return isObject(segment) && typeof segment.type === 'string' && (segment.type !== 'text' || (isObject(segment.data) && typeof segment.data.text === 'string'))
}

function isId(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'string'
}
