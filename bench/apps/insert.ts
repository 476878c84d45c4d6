// The rival for accepting deferred messages: the driver only inserts the same row. This program also fills the table.
import Sqlite from 'koishi-plugin-database-sqlite'
import { Context } from 'koishi'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { v7 as uuid } from 'uuid'
import type { ParsedItem } from '../../src/message/model'
import { writeItems } from '../../src/message/parse'
import { systemClock } from '../../src/relay/clock'
import { createDelivery, type Delivery } from '../../src/relay/delivery/delivery'
import { DatabaseJournal } from '../../src/relay/journal-database'
import { toRow } from '../../src/relay/journal'
import { UploadStore } from '../../src/uploads/store'
import { numberOf, textOf } from '../lib/values'
import { serve } from './serve'

const day = 24 * 60 * 60 * 1000

const app = new Context()

serve({
  async start(options) {
    app.plugin(Sqlite, { path: textOf(options, 'database') })
    // The journal declares its table.
    const ready = new Promise<void>((resolve, reject) => {
      app.inject(['database'], inner => {
        new DatabaseJournal(inner, {
          clock: systemClock, logger: inner.logger('insert'), files: new UploadStore(tmpdir()), retention: day, recordLimit: 1e9, recordContent: 'preview',
        }).ping().then(resolve, reject)
      })
    })
    await app.start()
    await ready
    return {}
  },
  insert,
  fill,
})

/** @returns inserts per second, one after another */
async function insert(argument: unknown): Promise<object> {
  const time = numberOf(argument, 'seconds') * 1000
  const started = performance.now()
  let count = 0
  for (; performance.now() - started < time; count++) {
    await app.database.create('message_relay_journal', rowOf(count))
    // Lets other tasks of the process run, as a server does.
    if (count % 50 === 49) await new Promise(resolve => setImmediate(resolve))
  }
  return { rate: count / (performance.now() - started) * 1000 }
}

/** Fills the table with finished deliveries in one statement. */
async function fill(argument: unknown): Promise<object> {
  const count = numberOf(argument, 'count')
  const sent = { success: true, messageIds: [randomBytes(4).readUInt32BE().toString()] } as const
  await app.database.create('message_relay_journal', { ...rowOf(0, { state: 'sent', results: [sent] }), items: null })
  const [driver] = app.database.drivers
  if (!(driver instanceof Sqlite)) throw new Error('the driver is not the one of SQLite')
  const table: unknown = driver._all('PRAGMA table_info(message_relay_journal)')
  if (!Array.isArray(table)) throw new Error('the table has no columns')
  // Every column as in the first row, except the unique ones.
  const columns = table.map(column => textOf(column, 'name')).filter(name => name !== 'id' && name !== 'key').map(name => `\`${name}\``)
  // IDs of the last minutes, so that the deliveries have not expired.
  const prefix = uuid().slice(0, 13)
  driver._run([
    'WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < ?)',
    `INSERT INTO message_relay_journal (id, key, ${columns.join(', ')})`,
    `SELECT '${prefix}-7000-8000-' || printf('%012d', n), 'key-' || n, ${columns.join(', ')}`,
    'FROM counter, message_relay_journal WHERE message_relay_journal.key IS NULL',
  ].join(' '), [count])
  return {}
}

/** The row of a text to one of 50 groups, waiting to be sent by default. */
function rowOf(index: number, change: Partial<Delivery> = { deferred: true, expiresAt: Date.now() + day }) {
  const items: ParsedItem[] = [{ type: 'text', text: `build #4711 of main passed in 2 min 13 s (${index % 50})` }]
  const target = { kind: 'group', id: String(200_001 + index % 50) } as const
  const delivery = createDelivery(
    { id: uuid(), caller: null, door: 'webhook', recordContent: 'preview' }, index + 1, Date.now(), { mode: 'single', target, items, bot: {} },
  )
  const row = toRow({ ...delivery, bot: 'onebot:10000', ...change })
  return { ...row, version: index + 1, items: JSON.stringify(writeItems(items)) }
}
