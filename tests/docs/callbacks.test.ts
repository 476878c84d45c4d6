import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { signatureHeaders } from '../../src/lib/webhook-signature'
import { end, freePort } from '../support/process'
import { startRelay } from '../support/relay'
import { until } from '../support/until'
import { record, records } from './support/json'
import { marked, pageAt, versions, type Page } from './support/pages'
import { has, Reader, Workplace } from './support/reader'

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

describe('the callback that checks signatures', { timeout: 120_000 }, () => {
  let place: Workplace

  before(async () => {
    place = await Workplace.open()
  })
  after(() => place.close())

  const languages = [
    { language: 'TypeScript', mark: 'callback-signed-typescript', file: 'callback.ts', program: 'node_modules/.bin/tsx', skip: false },
    {
      language: 'Python', mark: 'callback-signed-python', file: 'callback.py', program: 'python3',
      skip: has('python3') ? false : 'there is no Python',
    },
  ]
  for (const page of versions('commands')) {
    for (const { language, mark, file, program, skip } of languages) {
      for (const secret of ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', '任意 text']) {
        test(`in ${language} of ${page.path} takes what the relay signs with ${secret}, and nothing else`, { skip }, async t => {
          const port = await freePort()
          const address = `http://127.0.0.1:${port}/command`
          await writeFile(join(place.folder, file), marked(page, mark).replace('3000', String(port)))
          const callback = place.run(program.includes('/') ? join(place.folder, program) : program, [file], { COMMAND_CALLBACK_SECRET: secret })
          await until('the callback listens', () => answers(address), 15_000)

          const relay = await startRelay({ config: { commandCallbackUrl: address, commandCallbackSecret: secret } })
          t.after(() => relay.stop())
          relay.simulator.say({ group: '123456', user: '10001', text: '#ping 你好' })
          await relay.simulator.until(({ ledger }) => ledger.some(({ text }) => text === 'pong 你好'))

          await checkSignatures(page, address, secret)
          await end(callback)
        })
      }
    }
  }
})

/** Posts the command that the page shows with a right signature, and with each of those that a callback has to refuse. */
async function checkSignatures(page: Page, address: string, secret: string): Promise<void> {
  const id = '01a1f888-79c5-74b1-9d3e-5a1f0c7be286'
  const body = marked(page, 'command')
  const sign = (offset = 0, key = secret) => ({ 'webhook-id': id, ...signatureHeaders(key, { id, time: Date.now() + offset, body }) })
  const right = sign()
  const post = async (headers: Record<string, string>, sent = body) => (await fetch(address, { method: 'POST', headers, body: sent })).status
  assert.equal(await post(right), 200)
  assert.equal(await post({ ...right, 'webhook-signature': `v1,AAAA v2,x ${right['webhook-signature']}` }), 200, 'one of several suffices')
  for (const [what, headers] of Object.entries<Record<string, string>>({
    'no header': {},
    'another secret': sign(0, 'another secret'),
    'a time long past': sign(-6 * 60_000),
    'a time to come': sign(6 * 60_000),
    'another ID': { ...right, 'webhook-id': 'another' },
    'no ID': { ...right, 'webhook-id': '' },
    'another time': { ...right, 'webhook-timestamp': String(Number(right['webhook-timestamp']) - 1) },
    'no time': { ...right, 'webhook-timestamp': 'now' },
    'no signature': { ...right, 'webhook-signature': '' },
    'another version': { ...right, 'webhook-signature': right['webhook-signature'].replace('v1', 'v2') },
  })) assert.equal(await post(headers), 401, what)
  assert.equal(await post(right, body.replace('ping', 'pong')), 401, 'another body')
}

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
