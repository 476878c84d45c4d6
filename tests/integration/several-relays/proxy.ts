import { connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { listen } from '../../support/listen'

interface Hold {
  pattern: RegExp
  what: 'statement' | 'answer'
  isSeen: boolean
  released: Promise<void>
}

/** Stands between relays and their database server, and holds back single statements or their answers. */
export class Proxy {
  private readonly holds: Hold[] = []

  private constructor(private readonly target: number, readonly port: number) {}

  /** @param target the port of the server */
  static async start(t: TestContext, target: number): Promise<Proxy> {
    const server = createServer(client => proxy.join(client))
    t.after(() => server.close())
    const proxy = new Proxy(target, await listen(server))
    return proxy
  }

  /** Holds back the next statement that is like this, or its answer. A statement is carried out although its client has gone meanwhile. */
  hold(what: Hold['what'], pattern: RegExp): { readonly isSeen: boolean, release: () => void } {
    let release = (): void => undefined
    const released = new Promise<void>(resolve => {
      release = resolve
    })
    const hold = { pattern, what, isSeen: false, released }
    this.holds.push(hold)
    return {
      get isSeen() {
        return hold.isSeen
      },
      release,
    }
  }

  private join(client: Socket): void {
    const server = connect(this.target, '127.0.0.1')
    let statements = Promise.resolve()
    let answers = Promise.resolve()
    client.on('data', chunk => {
      const text = chunk.toString('latin1')
      const hold = this.holds.find(({ pattern, isSeen }) => !isSeen && pattern.test(text))
      if (hold) hold.isSeen = true
      if (hold?.what === 'answer') answers = answers.then(() => hold.released)
      statements = statements.then(() => hold?.what === 'statement' ? hold.released : undefined).then(() => void server.write(chunk))
    })
    server.on('data', chunk => {
      answers = answers.then(() => void client.write(chunk))
    })
    client.on('close', () => void statements.then(() => server.end()))
    server.on('close', () => void answers.then(() => client.end()))
    for (const socket of [client, server]) socket.on('error', () => undefined)
  }
}
