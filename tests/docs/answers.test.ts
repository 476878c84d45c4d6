import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { placeOf } from '../support/openapi'
import { code, repository, table, versions } from './support/pages'

describe('the list of statuses', () => {
  const source = readFileSync(join(repository, 'src/errors.ts'), 'utf8')

  test('has each id in docs/openapi.yaml', () => {
    const ids = [...source.matchAll(/^  '(\S+)': \[\d{3}[,\]]/gm)].map(([, id]) => id)
    assert.deepEqual(placeOf('components', 'schemas', 'Error', 'properties', 'id')?.value.enum, ids)
  })

  for (const page of versions('http-api')) {
    test(`has each status in ${page.path}`, () => {
      const statuses = [...source.matchAll(/^  \S+: \[(\d{3})[,\]]/gm)].map(([, status]) => Number(status))
      const items = page.prose.match(/^- [45]\d\d.*$/gm) ?? []
      const told = items.flatMap(item => [...item.matchAll(/\b([45]\d\d)(?=[,:、：])/g)].map(([, status]) => Number(status)))
      assert.deepEqual(new Set(told), new Set(statuses))
    })
  }
})

describe('the table of outcomes', () => {
  for (const page of versions('delivery')) {
    test(`has the four of them in ${page.path}`, () => {
      assert.deepEqual(table(page, /^(Status|状态码)/).map(([, outcome]) => code(outcome)).filter(outcome => outcome !== undefined), ['sent', 'refused', 'unsent', 'unanswered'])
    })
  }
})
