// A process that has a store, and does what it reads from its input, a JSON line each. It answers each by a line; its log has lines, too.
import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { codeOf, RelayError } from '../../../../src/errors'
import { isNumber, objectOf } from '../../../../src/lib/shape'
import { fileStorage } from '../../../../src/relay/store/file-storage'
import type { Store } from '../../../../src/relay/store/store'
import type { Text } from '../../../../src/texts/text'

/** What the process is to do. */
export type Order
  /** Stores a row of so many bytes under a number. */
  = | { kind: 'store', at: number, bytes: number }
    | { kind: 'count' | 'purge' | 'flush' | 'isFull' | 'close' }
  /** Fills the disk, or removes what has filled it. */
    | { kind: 'fill' | 'free' }

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const log = (line: Text): void => say(String(line))
const logger = { info: log, warn: log, error: log }

const folder = process.argv[2] ?? ''
const ballast = join(folder, 'ballast')

function fill(): string {
  try {
    for (;;) appendFileSync(ballast, Buffer.alloc(100_000))
  } catch (error) {
    return codeOf(error)
  }
}

async function obey(store: Store, order: Order): Promise<unknown> {
  switch (order.kind) {
    case 'store':
      return store.commit(writer => writer.run(`INSERT INTO payloads VALUES (?, ?, ?)`, String(order.at), order.at, 'x'.repeat(order.bytes)))
    case 'count':
      return store.first(objectOf({ count: isNumber }), 'SELECT count(*) AS count FROM payloads')?.count
    case 'purge':
      return store.commit(writer => writer.run('DELETE FROM payloads WHERE at % 2 = 0'))
    case 'flush':
      return store.flushed()
    case 'isFull':
      return store.isFull
    case 'close':
      return store.close()
    case 'fill':
      return fill()
    case 'free':
      rmSync(ballast)
  }
}

async function run(): Promise<void> {
  const store = await fileStorage({ dataDir: folder, logger }).open(new AbortController().signal)
  say(store.failure ? store.failure.message : 'open')
  for await (const line of createInterface({ input: process.stdin })) {
    try {
      say(JSON.stringify(await obey(store, JSON.parse(line) as Order) ?? 'done'))
    } catch (error) {
      say(error instanceof RelayError ? error.code : String(error))
    }
  }
}

void run()
