import { join } from 'node:path'
import { v7 as uuid } from 'uuid'
import { createDelivery } from '../../src/relay/delivery/delivery'
import { columns, toRow } from '../../src/relay/delivery/row'
import { Connection } from '../../src/relay/store/connection'
import { startRelay } from '../lib/apps'
import { atLeast, atMost } from '../lib/goals'
import { runLoad, textsTo, type Load, type LoadResult } from '../lib/load'
import { alternate, pick } from '../lib/rounds'
import type { Bench, Goal, Row, Scenario } from '../lib/scenario'
import type { Stage } from '../lib/stage'

/** Accepting deferred messages while earlier ones are delivered: each is safe from a power cut before its answer. */
export const accepting: Scenario = {
  name: 'deferred',
  run: bench => besidePlain(bench, 'accepted to be sent later', atLeast(0.4), { status: 202, headers: { prefer: 'respond-async' } }),
}

/** Sends with an Idempotency-Key, which are safe from a power cut before they leave. */
export const keyed: Scenario = {
  name: 'keyed',
  run: bench => besidePlain(bench, 'single texts with an Idempotency-Key', atLeast(0.3), { isKeyed: true }),
}

/** Sends of waiting callers, with few and with many records in the data file. */
export const records: Scenario = {
  name: 'records',
  async run(bench): Promise<Row[]> {
    const { stage, extent } = bench
    const many = extent.isQuick ? 20_000 : 1_000_000
    const load = { bodies: textsTo(1), connections: 1 }
    const results = await sideBySide(bench, [await filled(stage, many), await filled(stage, 1_000)], [load, load])
    return [{
      what: `median latency of a send with ${many.toLocaleString('en-US')} records, 1 connection`, unit: 'ms', digits: 2, rival: '1,000 records',
      goal: atMost(1.1), pairs: pick(results, ({ median }) => median),
    }]
  },
}

async function besidePlain(bench: Bench, what: string, goal: Goal, more: Partial<Load>): Promise<Row[]> {
  const plain = { bodies: textsTo(50), connections: 50 }
  const results = await sideBySide(bench, [{}, {}], [{ ...plain, ...more }, plain])
  return [{
    what: `${what}, 50 groups, 50 connections`, unit: 'requests/s', rival: 'the same texts without', goal, pairs: pick(results, ({ rate }) => rate),
  }]
}

/** Puts two relays with these settings under these loads, in turn. */
async function sideBySide(
  { stage, extent }: Bench, configs: readonly [object, object], [own, other]: readonly [Omit<Load, 'url'>, Omit<Load, 'url'>],
): Promise<{ relay: LoadResult, rival: LoadResult }[]> {
  const [relay, rival] = [await startRelay(stage, { config: configs[0] }), await startRelay(stage, { config: configs[1] })]
  const generator = await stage.start('load')
  try {
    return await alternate(
      extent.rounds,
      () => runLoad(generator, { url: `${relay.url}/webhook`, ...own }, extent),
      () => runLoad(generator, { url: `${rival.url}/webhook`, ...other }, extent),
    )
  } finally {
    await Promise.all([relay.end(), rival.end(), generator.end()])
  }
}

/** The settings for a data folder with so many records of the last minutes. */
async function filled(stage: Stage, count: number): Promise<object> {
  const dataDir = await stage.newFolder()
  const connection = new Connection(join(dataDir, 'relay.db'), ['PRAGMA locking_mode=EXCLUSIVE'])
  connection.migrate()
  const origin = { id: uuid(), caller: null, door: 'webhook', recordContent: 'preview' } as const
  const items = [{ type: 'text', text: 'build #4711 of main passed in 2 min 13 s' }] as const
  const delivery = createDelivery(origin, 1, Date.now(), { mode: 'single', target: { kind: 'group', id: '200001' }, items, bot: {} })
  const row = toRow({ ...delivery, bot: 'onebot:10000', state: 'sent', results: [{ success: true, messageIds: ['1'] }] })
  connection.run([
    'WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < ?)',
    `INSERT INTO deliveries (${columns.join(', ')}) SELECT ? || printf('%012d', n), ?, ?, ?, ?, ?, ?, 'key-' || n, ?, ?, ? FROM counter`,
  ].join(' '), count, `${row.id.slice(0, 13)}-7000-8000-`, row.state, row.target, row.bot, row.caller, row.door, row.thread, row.updated_at, row.summary, row.record)
  connection.close()
  return { dataDir, recordLimit: 10_000_000 }
}
