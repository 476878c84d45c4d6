import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { until } from '../support/until'
import { record, records } from './support/json'
import { marked, pageAt, versions } from './support/pages'
import { Reader } from './support/reader'

const settings = { ...load(marked(pageAt('docs/incidents.md'), 'incidents')) ?? {}, ...load(marked(pageAt('docs/beats.md'), 'beats')) ?? {} }

describe('the pages about incidents and beats', { timeout: 120_000 }, () => {
  let reader: Reader

  before(async () => {
    const variables = Object.entries(settings).map(([name, value]) => `WEBHOOK_${name.toUpperCase()}='${JSON.stringify(value)}'`)
    reader = await Reader.start(`${variables.join(' ')} npm start`)
  })
  after(() => reader.stop())

  const run = async (block: string): Promise<Record<string, unknown>> => {
    const answer = await reader.place.output(`KEY=${await reader.key()}\nRELAY=${reader.url}\n${block}`)
    return record(record(answer).data)
  }

  test('show the same settings in both languages', () => {
    for (const name of ['incidents', 'beats']) {
      const [first, ...others] = versions(name).map(page => load(marked(page, name)))
      for (const other of others) assert.deepEqual(other, first)
    }
  })

  for (const page of versions('incidents')) {
    test(`call who is on duty, and let others take over, in ${page.path}`, async () => {
      const earlier = (await reader.messages()).length
      await run(marked(page, 'incident-event').replace('"db"', `"db ${page.path}"`))
      await until('the group is told', async () => (await reader.messages()).length > earlier)
      const [message] = (await reader.messages()).slice(earlier)
      assert.deepEqual(message?.parts.map(({ type }) => type), ['at', 'text'])
      const incidents = records((await run('curl -fsS -H "X-API-Key: $KEY" "$RELAY/incidents"')).incidents)
      assert.deepEqual(incidents[0] && [incidents[0].name, incidents[0].state, incidents[0].thread], ['ops', 'open', `db ${page.path}`])
      assert.deepEqual(records((await run(marked(page, 'incident-swap'))).swaps).at(-1)?.who, 'han-mei')
    })
  }

  for (const page of versions('beats')) {
    test(`show an address that takes pings in ${page.path}`, async () => {
      const { ping, state } = await run(marked(page, 'beat-address'))
      assert.match(String(state), /^(new|up)$/)
      assert.equal(await (await fetch(reader.url + String(ping))).text(), 'OK')
      assert.equal((await run(marked(page, 'beat-address'))).state, 'up')
    })
  }
})
