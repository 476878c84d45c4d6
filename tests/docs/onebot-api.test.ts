import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { relayFor } from '../support/relay'
import { repository } from './support/pages'

const pages = ['docs/doors/onebot.md', 'docs/zh/doors/onebot.md'].map(path => ({ path, text: readFileSync(join(repository, path), 'utf8') }))

describe('the page for scripts that know OneBot 11', () => {
  test('names actions that are there, and has a location for nginx that leads to the calls and not to the WebSocket', async t => {
    const relay = await relayFor(t)
    for (const { path, text } of pages) {
      const list = /^## (?:Calls|调用)\n\n(- [^]*?)\n\n/m.exec(text)?.[1] ?? ''
      const actions = [...list.matchAll(/`((?:send|upload|delete|get|can)_[a-z_]+)`/g)].map(([, name = '']) => name)
      const names = [...actions, ...actions.filter(name => /^(?:send|upload)_/.test(name)).map(name => `${name}_async`)]
      assert.equal(names.length, 17, path)
      const pattern = new RegExp(/location ~ (\S+) \{/.exec(text)?.[1] ?? '$^')
      for (const name of names) {
        assert.equal((await relay.request(`/onebot/${name}`)).status, 200, name)
        assert.match(`/onebot/${name}`, pattern)
      }
      for (const other of ['/onebot', '/onebot/', '/onebot/x/y', '/x/onebot/send_msg']) assert.doesNotMatch(other, pattern)
    }
  })

  test('says the same in both languages', () => {
    const [english, chinese] = pages.map(({ text }) => ({
      code: text.match(/`[^`\n]+`/g)?.filter(word => /^[ -~]+$/.test(word)).sort(),
      headings: text.match(/^#+ /gm),
      links: [...text.matchAll(/\]\((?:\.\.\/)*(?!\.)([\w/-]+\.md)/g)].map(([, link]) => link).slice(1),
    }))
    assert.deepEqual(chinese, english)
  })
})
