import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { record } from './support/json'
import { marked, pageAt } from './support/pages'
import { Reader } from './support/reader'

const png = 'iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAQMAAACQp+OdAAAABlBMVEUvb97/yD1rpwWgAAAAGklEQVR42mNgYPj/H4IHB2NwuYaBYTR88DIA8wL/AcYaMQYAAAAASUVORK5CYII='

/** The commands of the pages about those who call the relay without glue, run as they stand there. */
describe('a shell script', { timeout: 120_000 }, () => {
  const page = pageAt('docs/doors/shell.md')
  let reader: Reader

  before(async () => {
    reader = await Reader.start(marked(page, 'shell-start'))
    const { folder } = reader.place
    await writeFile(join(folder, 'Makefile'), 'all:\n\t@echo "a & b"; echo "<c>" >&2; echo %41+\n')
    await writeFile(join(folder, 'report.pdf'), '%PDF-1.7\n')
    await writeFile(join(folder, 'chart.png'), Buffer.from(png, 'base64'))
  })
  after(() => reader.stop())

  /** Runs a command with the key before it, and gives the parts of each message that it has brought. */
  async function run(mark: string): Promise<Record<string, unknown>[][]> {
    const earlier = (await reader.messages()).length
    const answer = record(await reader.place.output(marked(page, 'shell-key') + marked(page, mark)))
    assert.equal(answer.code, 0, JSON.stringify(answer))
    return (await reader.messages()).slice(earlier).map(({ parts }) => parts)
  }

  test('sends a line', async () => {
    const said = /-d "([^"]+)"/.exec(marked(page, 'shell-text'))?.[1]
    assert.deepEqual((await run('shell-text')).map(parts => parts.map(({ text }) => text)), [[said]])
  })

  test('sends what a program prints', async () => {
    assert.deepEqual((await run('shell-pipe')).map(parts => parts.map(({ text }) => text)), [['a & b\n<c>\n%41+\n']])
  })

  test('sends a file', async () => {
    assert.deepEqual((await run('shell-file')).map(parts => parts.map(({ type, name }) => [type, name])), [[['file', 'report.pdf']]])
  })

  test('sends a text and a picture', async () => {
    const [parts = [], ...others] = await run('shell-form')
    assert.deepEqual(others, [])
    assert.deepEqual(parts.map(({ type }) => type), ['text', 'image'])
    assert.equal(parts[0]?.text, /msg="([^"]+)"/.exec(marked(page, 'shell-form'))?.[1])
    assert.deepEqual(await reader.bytes(parts[1]), await readFile(join(reader.place.folder, 'chart.png')))
  })
})
