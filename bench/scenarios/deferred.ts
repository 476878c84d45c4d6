import { join } from 'node:path'
import { startRelay } from '../lib/apps'
import { atLeast, atMost, withinSpread } from '../lib/goals'
import { runLoad, textsTo, type Load, type LoadResult } from '../lib/load'
import { alternate, pick } from '../lib/rounds'
import type { Bench, Row, Scenario } from '../lib/scenario'
import type { Stage } from '../lib/stage'
import { numberOf } from '../lib/values'

/** Accepting deferred messages while earlier ones are delivered. */
export const accepting: Scenario = {
  name: 'deferred',
  async run({ stage, extent }): Promise<Row[]> {
    const relay = await startRelay(stage, { database: await newDatabase(stage) })
    const driver = await startDriver(stage, await newDatabase(stage))
    const generator = await stage.start('load')
    const load: Load = {
      url: `${relay.url}/webhook`, bodies: textsTo(50), connections: 50, status: 202, headers: { prefer: 'respond-async' },
    }
    try {
      const results = await alternate(
        extent.rounds,
        async () => (await runLoad(generator, load, extent)).rate,
        async () => numberOf(await driver.ask('insert', { seconds: extent.window.seconds }), 'rate'),
      )
      return [{
        what: 'accepted to be sent later (SQLite), 50 connections', unit: 'requests/s', rival: 'one bare insert of the same row',
        goal: atLeast(0.7), pairs: pick(results, rate => rate),
      }]
    } finally {
      await Promise.all([relay.end(), driver.end(), generator.end()])
    }
  },
}

/** Sends of waiting callers, with few and with many records in the database. */
export const records: Scenario = {
  name: 'records',
  async run(bench): Promise<Row[]> {
    const { extent } = bench
    const many = extent.isQuick ? 20_000 : 1_000_000
    const count = many.toLocaleString('en-US')
    const flat = atMost(1.1)
    const row = { unit: 'ms', digits: 2, rival: '1,000 records', goal: flat }
    const results = await measure(bench, many, 1_000)
    return [{ what: `median latency of a send with ${count} records, 1 connection`, ...row, pairs: pick(results, ({ median }) => median) }]
  },
}

/** Sends that are recorded in a database when they have ended, against sends that only memory keeps. */
export const recording: Scenario = {
  name: 'recording',
  async run({ stage, extent }): Promise<Row[]> {
    const [written, kept] = [await startRelay(stage, { database: await newDatabase(stage) }), await startRelay(stage)]
    const generator = await stage.start('load')
    const run = (load: Pick<Load, 'bodies' | 'connections'>): Promise<{ relay: LoadResult, rival: LoadResult }[]> => alternate(
      extent.rounds,
      () => runLoad(generator, { url: `${written.url}/webhook`, ...load }, extent),
      () => runLoad(generator, { url: `${kept.url}/webhook`, ...load }, extent),
    )
    const rival = 'without a database'
    try {
      return [
        {
          what: 'single texts with records in SQLite, 50 groups, 50 connections', unit: 'requests/s', rival, goal: atLeast(0.75),
          pairs: pick(await run({ bodies: textsTo(50), connections: 50 }), ({ rate }) => rate),
        },
        {
          what: 'the same, 1 connection, median latency', unit: 'ms', digits: 2, rival, goal: withinSpread('lower'),
          pairs: pick(await run({ bodies: textsTo(1), connections: 1 }), ({ median }) => median),
        },
      ]
    } finally {
      await Promise.all([written.end(), kept.end(), generator.end()])
    }
  },
}

async function measure({ stage, extent }: Bench, many: number, few: number): Promise<{ relay: LoadResult, rival: LoadResult }[]> {
  const [large, small] = [await newDatabase(stage), await newDatabase(stage)]
  await fill(stage, large, many)
  await fill(stage, small, few)
  const [withMany, withFew] = [await startRelay(stage, { database: large }), await startRelay(stage, { database: small })]
  const generator = await stage.start('load')
  const load = { bodies: textsTo(1), connections: 1 }
  try {
    return await alternate(
      extent.rounds,
      () => runLoad(generator, { url: `${withMany.url}/webhook`, ...load }, extent),
      () => runLoad(generator, { url: `${withFew.url}/webhook`, ...load }, extent),
    )
  } finally {
    await Promise.all([withMany.end(), withFew.end(), generator.end()])
  }
}

async function newDatabase(stage: Stage): Promise<string> {
  return join(await stage.newFolder(), 'koishi.db')
}

async function startDriver(stage: Stage, database: string) {
  const driver = await stage.start('insert')
  await driver.ask('start', { database })
  return driver
}

async function fill(stage: Stage, database: string, count: number): Promise<void> {
  const driver = await startDriver(stage, database)
  await driver.ask('fill', { count }, 300_000)
  await driver.end()
}
