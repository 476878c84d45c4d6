import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { Simulator } from '../../../simulator'
import { until } from '../../support/until'
import { missing, MariaDb, type Access } from '../several-relays/mariadb'
import { Checkout, type StartedBot } from './support'

describe('the bot of the image, with a database server', { skip: missing }, () => {
  let checkout: Checkout
  let simulator: Simulator
  let server: MariaDb
  let access: Access

  before(async () => {
    checkout = await Checkout.create()
    const koishi = await readFile(join(__dirname, '../../../container/koishi.yml'), 'utf8')
    await writeFile(join(checkout.repository, 'koishi.yml'), koishi.replace(/^ {2}message-relay:/m, '  ./lib/index:'))
    simulator = await Simulator.start()
    server = await MariaDb.start()
    access = await server.create()
  })
  afterEach(() => checkout.endAll())
  after(async () => {
    await checkout.remove()
    await server.stop()
    await simulator.close()
  })

  function start(): Promise<StartedBot> {
    const { host, port, user, database } = access
    return checkout.start({
      WEBHOOK_API_KEY: 'k', ONEBOT_ENDPOINT: simulator.endpoint, ONEBOT_SELF_ID: simulator.selfId,
      // As a secret that was written to a file by `echo`.
      DATABASE_HOST: host, DATABASE_PORT: String(port), DATABASE_USER: user, DATABASE_NAME: `${database}\n`,
    })
  }

  /** @returns the status of a message to be sent later, which only a database takes */
  async function sendLater(bot: StartedBot): Promise<number> {
    const headers = { 'x-api-key': 'k', 'prefer': 'respond-async' }
    return (await fetch(`${bot.url}/send/group:123456`, { method: 'POST', headers, body: 'later' })).status
  }

  test('that comes later than the bot: it is waited for, and used from then on', async () => {
    await server.halt()
    const bot = await start()
    await bot.line(/\[W\] mysql the database server cannot be used \(ECONNREFUSED\): trying again every 5 seconds/)
    assert.equal(await sendLater(bot), 503)
    assert(!bot.log.includes('    at '), bot.log)
    await server.resume()
    await until('the database is used', async () => await sendLater(bot) === 202, 20_000)
  })

  test('that does not come: a signal ends the bot all the same', async () => {
    await server.halt()
    const bot = await start()
    await bot.line(/trying again/)
    assert(await bot.end('SIGTERM') < 5_000)
    assert.equal(await bot.exit(), 0)
  })
})
