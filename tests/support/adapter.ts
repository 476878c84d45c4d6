import { fieldsOf } from '../../src/lib/shape'
import type { Context, Plugin } from 'koishi'
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

/** The adapter of a platform, as koishi.yml has it. */
export interface AdapterEntry {
  /** The package. */
  name: string
  config: object
}

/** The types of adapters are left out: some change those of Koishi, for the whole program. */
export function loadAdapter(name: string): Plugin.Constructor<Context, object> {
  const exported: unknown = createRequire(__filename)(name)
  const { default: adapter } = fieldsOf(exported)
  assert(isAdapter(adapter))
  return adapter
}

function isAdapter(value: unknown): value is Plugin.Constructor<Context, object> {
  return typeof value === 'function'
}
