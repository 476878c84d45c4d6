import { fieldsOf } from '../../src/lib/shape'
import type { Context, Plugin } from 'koishi'
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

/** An adapter with its configuration, as in koishi.yml. */
export interface AdapterEntry {
  /** The package. */
  name: string
  config: object
}

/** Loads an adapter without its types, because some adapters extend Koishi's types for the whole program. */
export function loadAdapter(name: string): Plugin.Constructor<Context, object> {
  const exported: unknown = createRequire(__filename)(name)
  const { default: adapter } = fieldsOf(exported)
  assert(isAdapter(adapter))
  return adapter
}

function isAdapter(value: unknown): value is Plugin.Constructor<Context, object> {
  return typeof value === 'function'
}
