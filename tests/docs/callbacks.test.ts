import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { signatureHeaders } from '../../src/lib/webhook-signature'
import { end, freePort } from '../support/process'
import { until } from '../support/until'
import { record, records } from './support/json'
import { marked, pageAt, repository } from './support/pages'
import { has, Reader, Workplace } from './support/reader'

const page = pageAt('docs/commands.md')

interface Language {
  name: string
  file: string
  program: string
  skip: string | false
}

const node: Language = { name: 'Node.js', file: 'callback.mjs', program: 'node', skip: false }
const python: Language = { name: 'Python', file: 'callback.py', program: 'python3', skip: has('python3') ? false : 'there is no Python' }

describe('the callback', { timeout: 120_000 }, () => {
  let reader: Reader

  before(async () => {
    reader = await Reader.start(marked(page, 'start-with-callback'))
  })
  after(() => reader.stop())

  test('in Node.js answers a command in the chat', async () => {
    const { place } = reader
    const { address } = await start(place, node, place.callbackPort)
    await check(address)
    const earlier = (await reader.messages()).length
    await reader.say('#ping hello')
    await until('the bot has replied', async () => (await reader.messages()).length === earlier + 2)
    const reply = (await reader.messages()).at(-1)
    assert.deepEqual([reply?.self, reply?.parts[0]?.text], [true, 'pong hello'])
  })

  test('in Python answers alike', { skip: python.skip }, async () => {
    await check((await start(reader.place, python, await freePort())).address)
  })
})

describe('the callback that checks signatures', { timeout: 120_000 }, () => {
  let place: Workplace

  before(async () => {
    place = await Workplace.open()
  })
  after(() => place.close())

  for (const language of [node, python]) {
    for (const secret of ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', '任意 text']) {
      test(`in ${language.name} takes what the relay signs with ${secret}, and nothing else`, { skip: language.skip }, async () => {
        const { address, callback } = await start(place, language, await freePort(), { COMMAND_CALLBACK_SECRET: secret })
        await checkSignatures(address, secret)
        await end(callback)
      })
    }
  }
})

/** Starts a callback of the documents, on another port than it has there. */
async function start(place: Workplace, { file, program }: Language, port: number, environment: Record<string, string> = {}) {
  const source = await readFile(join(repository, 'docs', file), 'utf8')
  await writeFile(join(place.folder, file), source.replace('3000', String(port)))
  const callback = place.run(program, [file], environment)
  const address = `http://127.0.0.1:${port}/command`
  await until('the callback listens', () => fetch(address).then(() => true, () => false), 15_000)
  return { callback, address }
}

/** Posts the command that the page shows with a right signature, and with each of those that a callback has to refuse. */
async function checkSignatures(address: string, secret: string): Promise<void> {
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
async function check(address: string): Promise<void> {
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
