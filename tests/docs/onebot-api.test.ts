import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { apiKey, startRelay, type TestRelay } from '../support/relay'
import { cells, repository } from './support/pages'

const pages = ['docs/doors/onebot.md', 'docs/zh/doors/onebot.md'].map(path => ({ path, text: readFileSync(join(repository, path), 'utf8') }))

let relay: TestRelay

before(async () => {
  relay = await startRelay()
})
after(() => relay.stop())

describe('the page for scripts that know OneBot 11', () => {
  for (const { path, text } of pages) {
    const rows = text.split('\n').filter(line => line.startsWith('|')).map(line => cells(line)[0] ?? '')
    const names = rows.flatMap(cell => [...cell.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name)).filter(name => name !== 'retcode' && name !== 'cqhttp')

    test(`names actions that are there: ${path}`, async () => {
      assert.equal(names.length, 17)
      for (const name of names) {
        const { status } = await fetch(`${relay.url}/onebot/${name}`, { headers: { 'x-api-key': apiKey } })
        assert.equal(status, 200, name)
      }
    })

    test(`has a location for nginx that leads to the calls and not to the WebSocket: ${path}`, () => {
      const pattern = new RegExp(/location ~ (\S+) \{/.exec(text)?.[1] ?? '$^')
      for (const name of names) assert.match(`/onebot/${name}`, pattern)
      for (const other of ['/onebot', '/onebot/', '/onebot/x/y', '/x/onebot/send_msg']) assert.doesNotMatch(other, pattern)
    })
  }

  test('says the same in both languages', () => {
    const [english, chinese] = pages.map(({ text }) => ({
      code: text.match(/`[^`\n]+`/g)?.filter(word => /^[ -~]+$/.test(word)).sort(),
      headings: text.match(/^#+ /gm),
      links: [...text.matchAll(/\]\((?:\.\.\/)*(?!\.)([\w/-]+\.md)/g)].map(([, link]) => link).slice(1),
    }))
    assert.deepEqual(chinese, english)
  })
})
