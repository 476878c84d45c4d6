import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { Writable } from 'node:stream'
import { parseJson } from '../../lib/json'
import { fieldsOf, isObject, toText, type JsonObject } from '../../lib/shape'
import { say, type Text } from '../../texts/text'

/** The parts of a WebSocket of the library `ws` that the relay uses. It reports each frame by its method `emit`. Checked against 8.23.0. */
export interface Socket {
  readonly readyState: number
  /** Bytes that have not left yet. */
  readonly bufferedAmount: number
  send(data: string): void
  ping(): void
  close(): void
  terminate(): void
  emit(event: string | symbol, ...args: unknown[]): boolean
  on(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
}

const methods = ['send', 'ping', 'close', 'terminate', 'emit', 'on', 'off']

/** States of a WebSocket, by the numbers of its standard. */
export const socketState = { open: 1, closed: 3 } as const

/** A call that will have no answer. */
export class LostCall extends Error {
  override readonly name = 'LostCall'

  /** @param hasLeft whether it was made, so that it may be carried out. @param reason why, if more is known */
  constructor(readonly hasLeft: boolean, readonly reason?: Text) {
    super(reason?.toString() ?? 'the connection is not open')
    // The frames of a stack would keep the message, with its pictures, in memory for as long as the error is kept.
    this.stack = `${this.name}: ${this.message}`
  }
}

/** A call without an answer. */
interface Call {
  resolve: (answer: JsonObject) => void
  reject: (error: LostCall) => void
  /** When it was made, on the monotonic clock. */
  since: number
  /** How many bytes it keeps in memory, roughly. */
  weight: number
}

/** How long a call may wait for its answer in any case, in milliseconds. */
const guaranteedWait = 10 * 60_000
/** How many bytes the calls of a connection may keep in memory before the relay gives up older ones. */
const maxWeight = 64 * 1024 * 1024
/** How many bytes a call keeps beside its parameters, roughly. */
const callWeight = 2048

/** Begins the `echo` of each call made here. The adapter numbers its own calls. */
const mark = `relay-${randomBytes(6).toString('base64url')}-`
let count = 0

/** The wires by their sockets. They outlive a reload of the plugin, because calls under way do. */
const wires = new WeakMap<object, Wire>()

/** Reports each event that comes in over a wire, each frame that a wire drops, and a refusal of the access token. */
export const wireEvents = new EventEmitter<{
  event: [wire: Wire, event: JsonObject]
  drop: [owner: string, fault: Text]
  refused: [owner: string]
}>()

/**
 * Handles the frames of a OneBot bot's WebSocket before the adapter. A wire makes calls of its own and receives their answers, however late
 * they come over this connection. It drops frames that the adapter cannot read, because adapter-onebot 6.9.4 throws at such a frame
 * where nothing catches the error. A wire stays as long as its socket, also when the plugin is unloaded.
 */
export class Wire {
  /** How many frames have come in. */
  received = 0
  /** By their `echo`, the oldest first. */
  private readonly calls = new Map<string, Call>()
  private weight = 0
  /** Whether what is written waits for the end of this turn of the event loop. */
  private isGathering = false

  /** The wire of a socket and the `sid` of its bot; `undefined` when it is not a WebSocket of the library `ws`. */
  static of(socket: unknown, owner: string): Wire | undefined {
    const known = wires.get(fieldsOf(socket))
    if (known || !isSocket(socket)) return known
    const wire = new Wire(socket, owner)
    wires.set(socket, wire)
    return wire
  }

  private constructor(readonly socket: Socket, private readonly owner: string) {
    const emit = socket.emit.bind(socket)
    socket.emit = (event, ...args) => event === 'message' && !this.passes(args[0]) ? false : emit(event, ...args)
    socket.on('close', () => this.giveUp(say('connection-lost'), () => true))
  }

  /**
   * Makes a call.
   *
   * @returns the whole answer, unread
   * @throws LostCall when the connection is not open, or closes before the answer. A call that is older than ten minutes is given up when
   *   the calls of this connection keep more than 64 MiB in memory.
   */
  call(action: string, params: JsonObject): Promise<JsonObject> {
    if (this.socket.readyState !== socketState.open) return Promise.reject(new LostCall(false))
    const echo = mark + String(++count)
    const frame = JSON.stringify({ action, params, echo })
    return new Promise((resolve, reject) => {
      const call = { resolve, reject, since: performance.now(), weight: frame.length + callWeight }
      this.calls.set(echo, call)
      this.weight += call.weight
      if (this.weight > maxWeight) this.giveUp(say('answer-too-late'), ({ since }) => this.weight > maxWeight && since < call.since - guaranteedWait)
      this.gather()
      this.socket.send(frame)
    })
  }

  /**
   * Lets the frames of one turn of the event loop leave in one write: under load, a system call for each would be a fifth of all work. The
   * connection is a private field of ws 8.23.0; without it each frame leaves by itself.
   */
  private gather(): void {
    const connection: unknown = Reflect.get(this.socket, '_socket')
    if (this.isGathering || !(connection instanceof Writable)) return
    this.isGathering = true
    connection.cork()
    setImmediate(() => {
      this.isGathering = false
      connection.uncork()
    })
  }

  /** Whether a frame is for the adapter. */
  private passes(data: unknown): boolean {
    this.received++
    const frame = parseJson(String(data))
    const fields = fieldsOf(frame)
    if (typeof fields.echo === 'string' && fields.echo.startsWith(mark)) {
      // There is no call for a second answer, or when the call was given up.
      this.take(fields.echo)?.resolve(fields)
      return false
    }
    const fault = faultOf(frame)
    if (isRefusal(fields)) wireEvents.emit('refused', this.owner)
    else if (fault !== undefined) wireEvents.emit('drop', this.owner, fault)
    else if ('post_type' in fields) wireEvents.emit('event', this, fields)
    return fault === undefined
  }

  /** Gives up the oldest calls, up to the first one that the condition spares. */
  private giveUp(reason: Text, applies: (call: Call) => boolean): void {
    for (const [echo, call] of this.calls) {
      if (!applies(call)) return
      this.take(echo)?.reject(new LostCall(true, reason))
    }
  }

  /** Removes a call, to settle it. */
  private take(echo: string): Call | undefined {
    const call = this.calls.get(echo)
    this.calls.delete(echo)
    this.weight -= call?.weight ?? 0
    return call
  }
}

/** Whether this is the frame by which NapCat and others refuse a connection. NapCat has `null` as its `echo`. */
function isRefusal({ echo, retcode }: JsonObject): boolean {
  return retcode === 1403 && typeof echo !== 'string' && typeof echo !== 'number'
}

/** Why the adapter cannot read a frame, `undefined` when it can. */
function faultOf(frame: unknown): Text | undefined {
  if (frame === undefined) return say('frame-not-json')
  if (!isObject(frame)) return say('frame-not-object')
  // The adapter tells events from answers by this field.
  if ('post_type' in frame) return isEvent(frame) ? undefined : say('frame-event-lacks')
  // The adapter looks up any other `echo` in a plain object, where `"__proto__"` and the like are no calls.
  const { echo, retcode } = frame
  if (typeof echo === 'number' || (typeof echo === 'string' && /^\d+$/.test(echo))) return
  return typeof retcode === 'number' ? say('frame-answers-nothing-code', { code: retcode }) : say('frame-answers-nothing')
}

/** Whether the adapter can read an event: it reads the fields of a message unchecked. */
function isEvent({ post_type: type, message_id: id, message, sender }: JsonObject): boolean {
  if (type !== 'message' && type !== 'message_sent') return typeof type === 'string'
  const { user_id: userId, tiny_id: tinyId } = fieldsOf(sender)
  const isReadable = typeof message === 'string' || (Array.isArray(message) && message.every(isSegment))
  return isReadable && [id, userId ?? tinyId].every(value => toText(value) !== '')
}

function isSegment(segment: unknown): boolean {
  const { type, data } = fieldsOf(segment)
  return type === 'text' ? typeof fieldsOf(data).text === 'string' : typeof type === 'string'
}

function isSocket(value: unknown): value is Socket {
  return typeof value === 'object' && value !== null && methods.every(name => typeof Reflect.get(value, name) === 'function')
}
