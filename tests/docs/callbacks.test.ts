import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { end, freePort } from '../support/process'
import { until } from '../support/until'
import { record, records } from './support/json'
import { marked, pageAt, versions, type Page } from './support/pages'
import { has, Reader } from './support/reader'

describe('the callback', { timeout: 120_000 }, () => {
  let reader: Reader

  before(async () => {
    reader = await Reader.start(marked(pageAt('docs/commands.md'), 'start-with-callback'))
  })
  after(() => reader.stop())

  for (const page of versions('commands')) {
    test(`in TypeScript of ${page.path} answers a command in the chat`, async () => {
      const { folder, callbackPort } = reader.place
      await writeFile(join(folder, 'callback.ts'), marked(page, 'callback-typescript').replace('3000', String(callbackPort)))
      // What `npx tsx` runs; npx itself does not pass signals on.
      const callback = reader.place.run(join(folder, 'node_modules/.bin/tsx'), ['callback.ts'])
      const address = `http://127.0.0.1:${callbackPort}/command`
      await until('the callback listens', () => answers(address), 15_000)
      await check(page, address)

      const earlier = (await reader.messages()).length
      await reader.say('#ping hello')
      await until('the bot has replied', async () => (await reader.messages()).length === earlier + 2)
      const reply = (await reader.messages()).at(-1)
      assert.deepEqual([reply?.self, reply?.parts[0]?.text], [true, 'pong hello'])
      await end(callback)
      await until('the callback has ended', async () => !await answers(address))
    })

    test(`in Python of ${page.path} answers alike`, { skip: has('python3') ? false : 'there is no Python' }, async () => {
      const port = await freePort()
      await writeFile(join(reader.place.folder, 'callback.py'), marked(page, 'callback-python').replace('3000', String(port)))
      const callback = reader.place.run('python3', ['callback.py'])
      const address = `http://127.0.0.1:${port}/command`
      await until('the callback listens', () => answers(address), 15_000)
      await check(page, address)
      await end(callback)
    })
  }
})

/** Asks a callback with the request that the page shows. */
async function check(page: Page, address: string): Promise<void> {
  const command = record(JSON.parse(marked(page, 'command')))
  assert.deepEqual(await ask(address, command), { reply: 'pong hello' })
  const [item, ...others] = records(record(await ask(address, { ...command, command: 'whoi' })).messages)
  assert.deepEqual(others, [])
  assert.match(String(item?.msg), / 10001$/)
  assert.deepEqual(await ask(address, { ...command, command: 'what' }), {})
  const refused = await fetch(address, { method: 'POST', body: '{' })
  assert.equal(refused.status, 400)
}

async function ask(address: string, body: object): Promise<unknown> {
  const response = await fetch(address, { method: 'POST', body: JSON.stringify(body) })
  return response.json()
}

async function answers(address: string): Promise<boolean> {
  return fetch(address).then(() => true, () => false)
}
