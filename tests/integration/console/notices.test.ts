import Notifier from '@koishijs/plugin-notifier'
import { h, type Context, type ForkScope, type Plugin } from 'koishi'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { relayFor, type TestRelay } from '../../support/relay'

const malformed = {
  maxUploadSize: 'lots', alertTo: 'nobody', people: { all: {} }, targets: { ops: 'elsewhere' },
  keys: [{ name: 'ci', key: 'short' }, { name: 'old', key: 'the-secret-of-last-year', expires: '2020-01-31' }],
}

/** Its declarations do not fit those of Koishi. */
function isPlugin(value: unknown): value is Plugin.Constructor<Context> {
  return typeof value === 'function'
}

function loadNotifier(app: Context): ForkScope {
  const plugin: unknown = Notifier
  assert(isPlugin(plugin))
  return app.plugin(plugin)
}

/** What the config page shows: a paragraph for each warning, escaped. */
const shownOn = ({ app }: TestRelay): string[] => {
  const store = app.get('notifier')?.store ?? []
  return store.flatMap(({ options: { type, content } }) => content.map(paragraph => `${type} ${String(paragraph)}`))
}

/** The first warnings in the log, as they are shown. */
const logged = ({ logs }: TestRelay, count: number): string[] => {
  const lines = logs.filter(line => line.startsWith('message-relay warn ')).map(line => line.slice('message-relay warn '.length))
  return lines.slice(0, count).map(line => `warning ${String(h('p', line))}`)
}

test('warnings about settings and keys are shown where plugin-notifier is loaded, as in the log', async t => {
  const relay = await relayFor(t, { config: malformed, setup: app => void loadNotifier(app) })
  const shown = shownOn(relay)
  for (const word of ['maxUploadSize', 'alertTo', 'people', 'targets', 'ci']) assert(shown.some(line => line.includes(word)), word)
  assert.deepEqual(shown, logged(relay, 5))

  await relay.reload({})
  assert.deepEqual(shownOn(relay), [], 'no empty notice')
  await relay.reload(malformed)
  assert.deepEqual(shownOn(relay), shown)
  relay.unload()
  assert.deepEqual(shownOn(relay), [], 'nothing is left')
})

test('the notice comes and goes with plugin-notifier', async t => {
  const relay = await relayFor(t, { config: malformed })
  for (let round = 0; round < 2; round++) {
    assert.equal(relay.app.get('notifier'), undefined)
    const fork = loadNotifier(relay.app)
    await relay.app.lifecycle.flush()
    assert.equal(shownOn(relay).length, 5)
    fork.dispose()
  }
  await relay.reload(malformed)
  const errors = relay.logs.filter(line => line.includes(' error '))
  assert.deepEqual(errors, [])
})
