import type { RawData, WebSocket } from 'ws'
import type { Answer } from './answers'

/** What a connection carries: calls and their answers, events, or both. */
export type Role = 'both' | 'calls' | 'events'

/** A bot's connection, forward or reverse. */
export class Connection {
  /** The number of calls received. */
  calls = 0
  private answered = 0
  private held: string[] = []

  /** @param leave removes the connection from the list at once, before the closing handshake ends */
  constructor(private readonly socket: WebSocket, readonly role: Role, private readonly leave: (connection: Connection) => void) {}

  /** Answers call number `call`, then sends the answers that were held until then. */
  answer(call: number, answer: Answer): void {
    this.send(JSON.stringify(answer))
    this.answered = Math.max(this.answered, call)
    if (this.held.length === 0) return
    for (const frame of this.held.splice(0)) this.send(frame)
  }

  /** Holds an answer until a later call has been answered. */
  hold(call: number, answer: Answer): void {
    if (this.answered > call) this.send(JSON.stringify(answer))
    else this.held.push(JSON.stringify(answer))
  }

  /** Sends a frame. It is lost if the connection is closed. */
  send(frame: string): void {
    if (this.socket.readyState === this.socket.OPEN) this.socket.send(frame)
  }

  /** Closes the connection: with a handshake if a code is given, so that sent frames still arrive, or else abruptly. */
  drop(code?: number): void {
    this.leave(this)
    this.held = []
    if (code === undefined) this.socket.terminate()
    else this.socket.close(code)
  }
}

/** Receives the frames and changes of the connections. */
export interface ConnectionListener {
  onFrame(connection: Connection, text: string): void
  onChange(): void
}

/** The open connections of bots. */
export class Connections {
  private readonly open = new Set<Connection>()

  constructor(private readonly listener: ConnectionListener) {}

  get size(): number {
    return this.open.size
  }

  /** Registers an open socket and sends it the first frames, unless it carries no events. */
  attach(socket: WebSocket, greeting: readonly string[], role: Role): Connection {
    const leave = (connection: Connection): void => {
      if (this.open.delete(connection)) this.listener.onChange()
    }
    const connection = new Connection(socket, role, leave)
    socket.on('message', data => {
      // Ignores frames that arrive during a closing handshake.
      if (this.open.has(connection) && role !== 'events') this.listener.onFrame(connection, textOf(data))
    })
    socket.on('close', () => {
      leave(connection)
    })
    // A broken frame or a reset also closes the socket, so that nothing else is needed.
    socket.on('error', () => undefined)
    this.open.add(connection)
    if (role !== 'calls') for (const frame of greeting) connection.send(frame)
    this.listener.onChange()
    return connection
  }

  broadcast(event: object): void {
    if (this.open.size > 0) this.broadcastFrame(JSON.stringify(event))
  }

  /** Sends a raw frame over every connection that carries events. */
  broadcastFrame(frame: string): void {
    for (const connection of this.open) if (connection.role !== 'calls') connection.send(frame)
  }

  dropAll(code?: number): void {
    for (const connection of [...this.open]) connection.drop(code)
  }
}

function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString()
  return data instanceof ArrayBuffer ? Buffer.from(data).toString() : data.toString()
}
