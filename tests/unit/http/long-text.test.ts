import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { excerptOf, isLong, itemsOfText } from '../../../src/http/long-text'
import { RequestFiles } from '../../../src/uploads/request-files'
import { UploadStore } from '../../../src/uploads/store'

describe('a text', () => {
  test('is long from 4,001 characters on, whatever these weigh', () => {
    for (const character of ['a', '字', '🙂']) {
      assert.equal(isLong(character.repeat(4000)), false)
      assert.equal(isLong(character.repeat(4001)), true)
    }
    assert.equal(isLong('🙂'.repeat(4000) + 'a'), true)
    assert.equal(isLong('a'.repeat(10_000_000)), true)
  })

  const line = (length: number): string => 'x'.repeat(length)
  const cases: [what: string, text: string, excerpt: string][] = [
    ['is shown by as many lines as fit', `${line(400)}\n${line(400)}\n${line(400)}\n`, `${line(400)}\n${line(400)}`],
    ['is shown by lines of exactly 1,000 characters', `${line(499)}\n${line(500)}\n${line(4000)}`, `${line(499)}\n${line(500)}`],
    ['is shown by lines without the one that is a character too long', `${line(499)}\n${line(501)}\n${line(4000)}`, line(499)],
    ['is shown by a line that ends as Windows has it', `${line(1000)}\r\n${line(4000)}`, line(1000)],
    ['is shown by the beginning of a first line that is too long', line(5000), line(1000)],
    ['is shown by characters that are not cut', '🙂'.repeat(5000), '🙂'.repeat(1000)],
    ['is shown from its first line on that is not blank', ` \n\n${' '.repeat(2000)}\n  a\n${line(5000)}`, 'a'],
    ['is shown without blank lines at the end', `a\n${'\n'.repeat(990)}${line(5000)}`, 'a'],
  ]
  for (const [what, text, excerpt] of cases) {
    test(what, () => {
      assert.equal(excerptOf(text), excerpt)
    })
  }

  test('that is long becomes its first lines and a file, which goes where nothing needs it', async t => {
    const directory = await mkdtemp(join(tmpdir(), 'relay-long-text-'))
    t.after(() => rm(directory, { recursive: true }))
    const store = new UploadStore(directory)
    for (const isKept of [true, false]) {
      const files = new RequestFiles(store)
      assert.deepEqual(await itemsOfText('short', files), [{ type: 'text', text: 'short' }])
      assert.deepEqual(await readdir(directory), [])
      const text = '一行\n'.repeat(2000)
      const [first, second, ...others] = await itemsOfText(text, files)
      assert.deepEqual(first, { type: 'text', text: '一行\n'.repeat(333).trimEnd() })
      assert(second?.type === 'file' && second.link.kind === 'upload')
      assert.match(second.link.id, /\/message\.txt$/)
      assert.deepEqual(others, [])
      assert.equal(await readFile(join(directory, second.link.id), 'utf8'), text)
      if (isKept) files.keep()
      await files.end()
      assert.equal((await readdir(directory)).length, isKept ? 1 : 0)
      await store.remove(second.link.id)
    }
  })
})
