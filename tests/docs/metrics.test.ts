import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { isObject } from '../../src/lib/shape'
import { toBody } from '../../src/alerts/post'
import { temporaryFolder } from '../support/folder'
import { missing, promtool } from '../support/promtool'
import { startRelay } from '../support/relay'
import { record } from './support/json'
import { marked, repository, versions } from './support/pages'

const rules = join(repository, 'docs/prometheus/alerts.yml')
const dashboard = join(repository, 'docs/prometheus/dashboard.json')

interface Metric {
  type: string
  labels: readonly string[]
}

/** What GET /metrics really shows, by the names of the metrics. */
const metrics = new Map<string, Metric>()

before(async () => {
  const relay = await startRelay()
  try {
    // Some series have labels only from the first message on.
    assert.equal((await relay.send({ group_id: '123456', msg: 'a' })).status, 200)
    const text = await (await relay.request('/metrics')).text()
    for (const [, name = '', type = ''] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
      const series = [...text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, 'gm'))]
      const labels = series.flatMap(([, pairs = '']) => [...pairs.matchAll(/(\w+)="/g)].map(([, label = '']) => label)).filter(label => label !== 'le')
      metrics.set(name, { type, labels: [...new Set(labels)] })
    }
  } finally {
    await relay.stop()
  }
})

/** What of an expression is not in the answer: names of metrics, and labels of them. */
function unknownIn(expression: string): string[] {
  return [...expression.matchAll(/(message_relay_\w+)(?:\{([^}]*)\})?/g)].flatMap(([, series = '', matchers = '']) => {
    const [name = series] = [...metrics.keys()].filter(each => series === each || (metrics.get(each)?.type === 'histogram' && series.replace(/_(?:bucket|sum|count)$/, '') === each))
    const metric = metrics.get(name)
    if (!metric) return [series]
    return [...matchers.matchAll(/(\w+)\s*[=!]/g)].map(([, label = '']) => label).filter(label => ![...metric.labels, 'instance', 'job'].includes(label))
  })
}

/** The expressions in a tree of objects, by the name of their field. */
function* expressionsIn(value: unknown): Generator<string> {
  if (isObject(value) && typeof value.expr === 'string') yield value.expr
  for (const field of Array.isArray(value) ? value : isObject(value) ? Object.values(value) : []) yield* expressionsIn(field)
}

describe('the list of metrics', () => {
  for (const page of versions('watch')) {
    test(`is what GET /metrics shows: ${page.path}`, () => {
      const documented = [...page.prose.matchAll(/^- `(message_relay_\w+)` ?[(（](\w+)(?:[;；]([^)）]*))?[)）]/gm)].map(([, name, type, labels = '']) =>
        [name, { type, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label) }])
      assert.deepEqual(Object.fromEntries(documented), Object.fromEntries(metrics))
    })

    test(`has an example of an alert as it is posted: ${page.path}`, () => {
      const shown = record(JSON.parse(marked(page, 'alert')))
      const body = toBody({ kind: 'paused', isOver: false, subjects: [{ target: 'group:123456', bot: 'onebot:10000', since: 0 }] }, page.path.includes('zh') ? 'zh-CN' : 'en-US')
      assert.deepEqual(Object.keys(shown), Object.keys(body))
      const [first = ''] = body.text.split('\n')
      assert(String(shown.text).startsWith(first))
      assert(Array.isArray(shown.subjects))
      assert.deepEqual(Object.keys(record(shown.subjects[0])), Object.keys(body.subjects[0] ?? {}))
    })
  }
})

describe('the alert rules', () => {
  test('use metrics that are there', async () => {
    const expressions = [...expressionsIn(load(await readFile(rules, 'utf8')))]
    assert(expressions.length >= 10)
    assert.deepEqual(expressions.flatMap(unknownIn), [])
  })

  test('are right, and fire when they should', { skip: missing }, async () => {
    const { code, text } = await promtool(['check', 'rules', rules])
    assert.equal(code, 0, text)
    const tested = await promtool(['test', 'rules', join(__dirname, 'prometheus/alerts.yml')])
    assert.equal(tested.code, 0, tested.text)
  })
})

describe('the dashboard', () => {
  const expressions: string[] = []

  before(async () => {
    expressions.push(...expressionsIn(JSON.parse(await readFile(dashboard, 'utf8'))))
  })

  test('uses metrics that are there, and all of them', () => {
    assert(expressions.length > 20)
    assert.deepEqual(expressions.flatMap(unknownIn), [])
    const unused = [...metrics.keys()].filter(name => !expressions.some(expression => expression.includes(name)))
    assert.deepEqual(unused, [])
  })

  test('has expressions that Prometheus can read', { skip: missing }, async () => {
    const file = join(temporaryFolder(), 'rules.yml')
    const list = expressions.map((expression, index) => ({ record: `expression:${index}`, expr: expression.replaceAll('$__rate_interval', '5m') }))
    await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules: list }] }))
    const { code, text } = await promtool(['check', 'rules', file])
    assert.equal(code, 0, text)
  })

  test('is one that Grafana can import', async () => {
    const { title, uid, schemaVersion, panels, templating } = record(JSON.parse(await readFile(dashboard, 'utf8')))
    assert(title !== '' && uid !== '' && Number(schemaVersion) >= 36)
    assert(Array.isArray(panels))
    const all = panels.map(record)
    assert.equal(new Set(all.map(({ id }) => id)).size, all.length)
    for (const panel of all) {
      assert(typeof panel.title === 'string' && ['stat', 'timeseries'].includes(String(panel.type)))
      assert.deepEqual(panel.datasource, { type: 'prometheus', uid: '${datasource}' })
      const { x, y, w, h } = record(panel.gridPos)
      assert(Number(x) + Number(w) <= 24 && Number(y) >= 0 && Number(h) > 0)
    }
    const variables = record(templating).list
    assert(Array.isArray(variables))
    assert.deepEqual(variables.map(variable => record(variable).name), ['datasource', 'instance'])
  })
})
