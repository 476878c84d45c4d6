import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

/** How long a script may take, in milliseconds. They need about a second each; a slow machine needs more. */
const timeout = 60_000

/** The rows of the table by their scripts: what goes here once the fault is mended. */
function readTable(file: string): Map<string, string> {
  const rows = readFileSync(file, 'utf8').matchAll(/^\| \[\d\d\]\((\S+)\) \|(.*)\|$/gm)
  return new Map(Array.from(rows, ([, script = '', cells = '']) => [script, cells.split(' | ')[2] ?? '']))
}

/** Runs a script and returns its exit code and the line that tells the result. */
function run(script: string): Promise<{ code: unknown, result: string }> {
  return new Promise(resolve => {
    execFile(process.execPath, [`upstream/${script}`], { timeout }, (error, stdout, stderr) => {
      const result = /^(?:reproduced|mended): .*$/m.exec(stdout)?.[0]
      resolve({ code: error ? error.code ?? error.signal : 0, result: result ?? stderr + stdout })
    })
  })
}

describe('the faults of Koishi and its adapters', { concurrency: 3 }, () => {
  const scripts = readdirSync('upstream').filter(name => name.endsWith('.cjs'))
  const table = readTable('upstream/README.md')

  it('are in the tables of both languages', () => {
    assert.deepEqual([...table.keys()], scripts)
    assert.deepEqual([...readTable('upstream/README.zh-CN.md').keys()], scripts)
  })

  it('are named where they are worked around', () => {
    const code = ['src', 'bot', 'tests/support']
      .flatMap(folder => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(name => join(folder, name)))
      .filter(name => name.endsWith('.ts')).map(name => readFileSync(name, 'utf8')).join('\n')
    const named = Array.from(code.matchAll(/upstream\/(\d\d)\b/g), ([, number]) => number)
    assert.deepEqual([...new Set(named)].sort(), scripts.map(script => script.slice(0, 2)))
  })

  for (const script of scripts) {
    it(script, async () => {
      const { code, result } = await run(script)
      if (result.startsWith('mended:')) assert.fail(`${result}; remove the crutch, the script and its row: ${table.get(script) ?? ''}`)
      assert.deepEqual({ code, result: result.split(':')[0] }, { code: 0, result: 'reproduced' }, result)
    })
  }
})
