import assert from 'node:assert/strict'
import { isObject } from '../../../src/message/parse'
import type { Access } from './mariadb'

/** How a relay is started that shares a database: plain data, so that it can be handed to another process. */
export interface SharedOptions {
  access: Access
  /** Where it keeps its files. */
  folder: string
  /** Where its bot connects to. */
  endpoint: string
  /** How long a call to the platform may take, in seconds. */
  timeout?: number
  /** How long a call without an answer may still be carried out, in seconds. */
  settle?: number
  /** Whether to wait for its bot; otherwise there may be nobody at the endpoint. */
  online?: boolean
}

/** Reads options from JSON. */
export function readOptions(json: string): SharedOptions {
  const options: unknown = JSON.parse(json)
  assert(isOptions(options))
  return options
}

function isOptions(value: unknown): value is SharedOptions {
  return isObject(value) && isObject(value.access) && typeof value.endpoint === 'string' && typeof value.folder === 'string'
}
