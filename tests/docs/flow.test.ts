import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parseNames } from '../../src/message/names'
import { PlatformServer } from '../platforms/server'
import { until } from '../support/until'
import { record } from './support/json'
import { marked, pageAt, versions } from './support/pages'
import { Reader } from './support/reader'

const recipes = pageAt('docs/recipes.md')
const page = pageAt('docs/flow.md')

/** What the commands of a block say. */
const saidIn = (mark: string): string[] => [...marked(page, mark).matchAll(/(?:-d |"msg": )"([^"]+)"/g)].map(([, text = '']) => text)

/** A time of the day in UTC, so many hours from now. */
const clockIn = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16)

describe('a recipe for digests, quiet hours and fallbacks', { timeout: 120_000 }, () => {
  let reader: Reader

  before(async () => {
    reader = await Reader.start('npm start')
  })
  after(() => reader.stop())

  /** Runs a block as somebody does who has set the variables. */
  function run(mark: string, change = (script: string) => script): Promise<string> {
    return reader.place.paste(`${marked(recipes, 'recipe-variables')}\n${change(marked(page, mark))}`)
  }

  /** The messages that come into the group while something is done, until there are so many. */
  async function arriving(count: number, work: () => Promise<unknown>): Promise<Record<string, unknown>[][]> {
    const earlier = (await reader.messages()).length
    await work()
    await until('they are there', async () => (await reader.messages()).length >= earlier + count, 30_000)
    const found = (await reader.messages()).slice(earlier).map(({ parts }) => parts)
    assert.equal(found.length, count)
    return found
  }

  test('makes one message of many', async () => {
    const messages = await arriving(2, () => run('flow-digest', script => script.replace('"digest": 60', '"digest": 15')))
    const [first, digest] = messages.map(([part]) => String(part?.text))
    assert.equal(first, 'web-1 is down')
    for (let n = 2; n <= 50; n++) assert.match(digest ?? '', new RegExp(`web-${n} is down`))
  })

  test('answers the alarm', async () => {
    const messages = await arriving(2, () => run('flow-thread'))
    assert.deepEqual(messages.map(parts => parts.map(({ type, text }) => text ?? type)), [[saidIn('flow-thread')[0]], ['reply', saidIn('flow-thread')[1]]])
  })

  test('lets only what is urgent through at night', async () => {
    let answers = ''
    const messages = await arriving(1, async () => {
      answers = await run('flow-quiet', script => script.replace('22:00', clockIn(-1)).replace('08:00', clockIn(1)).replace('Asia/Shanghai', 'UTC'))
    })
    assert.equal(messages[0]?.[0]?.text, saidIn('flow-quiet')[1])
    assert.match(answers, /"state":"queued","held":\{"cause":"quiet"/)
  })

  test('goes by the next way', async t => {
    const receiver = await PlatformServer.start(() => ({}))
    t.after(() => receiver.stop())
    await reader.mute(true)
    try {
      await run('flow-ways', script => script.replace('https://ops.example.com', receiver.url).replace('"after": 120', '"after": 1'))
      await until('it is there', () => receiver.calls.length > 0)
    } finally {
      await reader.mute(false)
    }
    const [call] = receiver.calls
    assert.deepEqual(Object.keys(call?.fields ?? {}), ['text', 'target', 'delivery_id'])
    assert.equal(call?.fields.text, saidIn('flow-ways')[0])
    assert(call?.headers['webhook-signature'] !== undefined)
  })

  test('sends at a time', async () => {
    const { data } = record(JSON.parse(await run('flow-later')))
    const { state, send_at: at } = record(data)
    const tomorrow = new Date()
    tomorrow.setDate(tomorrow.getDate() + 1)
    tomorrow.setHours(9, 0, 0, 0)
    assert.deepEqual([state, at], ['scheduled', tomorrow.toISOString()])
  })
})

test('the name that has all fields is a right one, and no field is missing', async () => {
  const source = await readFile(join(__dirname, '../../src/message/names.ts'), 'utf8')
  const [, fields = ''] = /const \{\n([^}]+?)\.\.\.others/.exec(source) ?? []
  const known = fields.split(',').map(field => field.trim().split(':')[0]?.trim() ?? '').filter(field => field !== '' && !/self|platform|^to$/.test(field))
  for (const each of versions('flow')) {
    const targets = record(record(load(marked(each, 'flow-name'))).targets)
    const { names, warnings } = parseNames(targets)
    assert.deepEqual([warnings, [...names.keys()]], [[], Object.keys(targets)])
    assert.deepEqual(Object.keys(record(targets.oncall)).sort(), known.sort())
  }
})
