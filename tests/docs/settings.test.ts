import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { resolveSettings } from '../../src/config/settings'
import { code, repository, versions, type Page } from './support/pages'

interface Row {
  field: string
  variable: string
  fallback: string
}

/** The settings of the lists of a page. */
function settingsOf({ prose }: Page): Row[] {
  const items = prose.matchAll(/^- `([\w.-]+)` ?[(（]`(\w+)`(?:[,，] ?([^)）]*))?[)）][:：]/gm)
  return [...items].map(([, field = '', variable = '', fallback]) => ({ field, variable, fallback: inBytes(code(fallback) ?? '') }))
}

/** A size in MB as a number of bytes; anything else as it is. */
function inBytes(text: string): string {
  const megabytes = /^(\d+)MB$/.exec(text)?.[1]
  return megabytes === undefined ? text : String(Number(megabytes) * 1024 * 1024)
}

const expected = resolveSettings({}, {}).origins.map(({ field, variable, value }): Row => {
  // Nothing in a list or dictionary is none.
  return { field, variable, fallback: typeof value === 'object' && value !== null ? Object.values(value).join() : String(value) }
})

describe('the list of settings', () => {
  const koishi = readFileSync(join(repository, 'koishi.yml'), 'utf8')
  for (const page of versions('settings')) {
    test(`is complete and right in ${page.path}`, () => {
      const rows = settingsOf(page)
      const order = (a: Row, b: Row) => a.field < b.field ? -1 : 1
      assert.deepEqual(rows.filter(({ field }) => !field.includes('.')).sort(order), [...expected].sort(order))

      // The others are what koishi.yml hands to other plugins.
      const others = rows.filter(({ field }) => field.includes('.'))
      const own = new Set(expected.map(({ variable }) => variable))
      const read = new Set([...koishi.matchAll(/env\.([A-Z_]+)/g)].map(([, variable = '']) => variable).filter(variable => !own.has(variable)))
      assert.deepEqual(others.map(({ variable }) => variable).sort(), [...read].sort())
      for (const { field, variable, fallback } of others) {
        const [plugin = '', key = ''] = field.split('.')
        assert.match(koishi, new RegExp(`^  (?:\\./dist/)?${plugin}(?:/plugin)?:\\n(?:    .*\\n)*?    ${key}: .*env\\.${variable}.*${fallback.replaceAll('.', '\\.')}`, 'm'))
      }
    })
  }
})
