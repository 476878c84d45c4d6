// The Koishi app with the relay, built as it is published.
import type { Context, Plugin } from 'koishi'
import { createRequire } from 'node:module'
import { field, textOf } from '../lib/values'
import { serveBot } from './bot'

const load = createRequire(__filename)

serveBot((app, options) => {
  const plugin: unknown = load(textOf(options, 'plugin'))
  if (!isPlugin(plugin)) throw new Error('the plugin is no plugin')
  app.plugin(plugin, field(options, 'config'))
})

function isPlugin(value: unknown): value is Plugin.Object<Context> {
  return typeof field(value, 'apply') === 'function'
}
