// The rival of what accepts messages to be sent later: the driver inserts the same row, and nothing else is done. It also fills the table.
import Sqlite from 'koishi-plugin-database-sqlite'
import { Context } from 'koishi'
import { randomBytes } from 'node:crypto'
import { v7 as uuid } from 'uuid'
import type { ParsedItem } from '../../src/message/model'
import { aboutOf } from '../../src/relay/delivery/about'
import type { Delivery } from '../../src/relay/delivery/delivery'
import { Clock } from '../../src/relay/store/clock'
import { DatabaseStore, toRow } from '../../src/relay/store/database-store'
import { noPosition } from '../../src/relay/store/store'
import { numberOf, textOf } from '../lib/values'
import { serve } from './serve'

const app = new Context()
const owner = uuid()
let store: DatabaseStore | undefined

serve({
  async start(options) {
    app.plugin(Sqlite, { path: textOf(options, 'database') })
    app.inject(['database'], inner => {
      store = new DatabaseStore(inner, new Clock(), owner)
    })
    await app.start()
    while (!store) await new Promise(resolve => setTimeout(resolve, 10))
    await store.ping()
    return {}
  },
  insert,
  fill,
})

/** @returns inserts a second, one after the other */
async function insert(argument: unknown): Promise<object> {
  const time = numberOf(argument, 'seconds') * 1000
  const started = performance.now()
  let count = 0
  for (; performance.now() - started < time; count++) {
    await app.database.create('message_relay_delivery', toRow(createDelivery(count, 'queued'), { position: count + 1, owner }, createItems(count)))
    // Lets whatever else the process has to do take its turn, as a server does.
    if (count % 50 === 49) await new Promise(resolve => setImmediate(resolve))
  }
  return { rate: count / (performance.now() - started) * 1000 }
}

/** Fills the table with finished deliveries, by one statement for all. */
async function fill(argument: unknown): Promise<object> {
  const count = numberOf(argument, 'count')
  await store?.insert(createDelivery(0, 'sent'), noPosition, [])
  const [driver] = app.database.drivers
  if (!(driver instanceof Sqlite)) throw new Error('the driver is not the one of SQLite')
  const table: unknown = driver._all('PRAGMA table_info(message_relay_delivery)')
  if (!Array.isArray(table)) throw new Error('the table has no columns')
  // All as in the first row, but for what has to be unique.
  const columns = table.map(column => textOf(column, 'name')).filter(name => name !== 'id' && name !== 'key').map(name => `\`${name}\``)
  // IDs of the last minutes, so that they are not past their time.
  const prefix = uuid().slice(0, 13)
  driver._run([
    'WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < ?)',
    `INSERT INTO message_relay_delivery (id, key, ${columns.join(', ')})`,
    `SELECT '${prefix}-7000-8000-' || printf('%012d', n), 'key-' || n, ${columns.join(', ')}`,
    'FROM counter, message_relay_delivery WHERE message_relay_delivery.key IS NULL',
  ].join(' '), [count])
  return {}
}

function createDelivery(index: number, state: Delivery['state']): Delivery {
  const now = Date.now()
  return {
    id: uuid(), state, mode: 'single', deferred: state === 'queued', target: { kind: 'group', id: String(200_001 + index % 50) },
    caller: null, bot: 'onebot:10000', createdAt: now, updatedAt: now, expiresAt: now + 86_400_000, attempts: 0,
    results: state === 'sent' ? [{ success: true, messageIds: [randomBytes(4).readUInt32BE().toString()] }] : [undefined],
    inDoubt: null, key: null, fingerprint: null, door: 'webhook', about: aboutOf(createItems(index), 'preview'),
  }
}

function createItems(index: number): ParsedItem[] {
  return [{ type: 'text', text: `build #4711 of main passed in 2 min 13 s (${index % 50})` }]
}
