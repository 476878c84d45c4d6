import { isErrorCode, RelayError } from '../../errors'
import { isObject } from '../../message/parse'
import { readTarget, writeTarget } from '../../message/target'
import { readAbout, writeAbout } from '../delivery/about'
import { states, unanswered, type Delivery, type InDoubt, type ItemResult, type Results, type State } from '../delivery/delivery'

/** A delivery with its structured fields as text: a row of the database without the columns of its queue, and a line in memory. */
export interface StoredDelivery extends Omit<Delivery, 'state' | 'mode' | 'target' | 'caller' | 'results' | 'inDoubt' | 'door' | 'about'> {
  state: string
  mode: string
  /** As `writeTarget` has it. */
  target: string
  /** As `writeCaller` has it, or none. */
  caller: string | null
  /** JSON. */
  results: string
  /** JSON. */
  inDoubt: string | null
  /** None where an earlier release took it. */
  door: string | null
  /** As `writeAbout` has it. */
  about: string | null
}

/** Its fields. The ID comes first, so that texts made of this sort as their deliveries do. A new one comes last: texts are stored. */
export const storedFields = [
  'id', 'state', 'mode', 'deferred', 'target', 'caller', 'bot', 'createdAt', 'updatedAt', 'expiresAt', 'attempts', 'results', 'inDoubt',
  'key', 'fingerprint', 'door', 'about',
] as const satisfies (keyof StoredDelivery)[]

export function toStored(delivery: Delivery): StoredDelivery {
  const {
    id, state, mode, deferred, target, caller, bot, createdAt, updatedAt, expiresAt, attempts, results, inDoubt, key, fingerprint, door,
    about,
  } = delivery
  return {
    id, state, mode, deferred, bot, createdAt, updatedAt, expiresAt, attempts, key, fingerprint, door,
    about: writeAbout(about), target: writeTarget(target), caller: caller && writeCaller(caller),
    results: writeResults(results), inDoubt: inDoubt && JSON.stringify(inDoubt),
  }
}

/** @throws Error when it was not written by `toStored` */
export function fromStored(stored: Readonly<Record<string, unknown>>): Delivery {
  const state = states.find(name => name === stored.state)
  const target = readTarget(text(stored.target))
  if (!state || !target) throw new Error(`the stored delivery ${text(stored.id)} is not readable`)
  const results = readResults(text(stored.results))
  return {
    id: text(stored.id),
    state,
    mode: stored.mode === 'batch' ? 'batch' : 'single',
    deferred: stored.deferred === true,
    target,
    caller: readCaller(text(stored.caller)),
    bot: text(stored.bot),
    createdAt: Number(stored.createdAt),
    updatedAt: Number(stored.updatedAt),
    expiresAt: typeof stored.expiresAt === 'number' ? stored.expiresAt : null,
    attempts: Number(stored.attempts),
    results: complete(state, results),
    inDoubt: readInDoubt(text(stored.inDoubt)),
    key: text(stored.key) || null,
    fingerprint: text(stored.fingerprint) || null,
    door: text(stored.door),
    about: readAbout(text(stored.about)),
  }
}

/** What each text begins with that `toText` makes, right before the ID. */
export const textHead = '["'

/** A delivery as a text; texts sort as the IDs do. */
export function toText(delivery: Delivery): string {
  const stored = toStored(delivery)
  return JSON.stringify(storedFields.map(field => stored[field]))
}

/** @throws Error when it was not written by `toText` */
export function fromText(text: string): Delivery {
  const values = readText(text)
  return fromStored(Object.fromEntries(storedFields.map((field, index): [string, unknown] => [field, values[index]])))
}

/** Some of the fields of such a text as they are stored. */
export function pickFields(text: string, fields: readonly (typeof storedFields)[number][]): unknown[] {
  const values = readText(text)
  return fields.map(field => values[storedFields.indexOf(field)])
}

function readText(text: string): readonly unknown[] {
  const values: unknown = JSON.parse(text)
  if (!Array.isArray(values)) throw new Error('this is not the text of a delivery')
  return values
}

/** Of a delivery that a crash has interrupted only the state was changed: it tells what became of the items of which nothing is written. */
function complete(state: State, results: Results): Results {
  if (state === 'unanswered') return results.map(result => result ?? unanswered())
  if (state !== 'failed') return results
  return results.map(result => result ?? { success: false, error: new RelayError('stopping', 'the relay ended before this could be sent: nothing was sent') })
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The name of a caller as hexadecimal UTF-8: MySQL takes texts for equal that differ in case or in accents. */
export function writeCaller(caller: string): string {
  return Buffer.from(caller).toString('hex')
}

/** Reads what `writeCaller` wrote. */
function readCaller(stored: string): string | null {
  return stored === '' ? null : Buffer.from(stored, 'hex').toString()
}

export function writeResults(results: Results): string {
  return JSON.stringify(Array.from(results, result => {
    if (!result) return null
    return result.success ? { ids: result.messageIds } : { error: result.error.code, msg: result.error.message }
  }))
}

/** Reads what `writeResults` wrote. What is not readable counts as not known. */
function readResults(json: string): (ItemResult | undefined)[] {
  const stored: unknown = JSON.parse(json)
  return Array.isArray(stored) ? stored.map(readResult) : []
}

function readResult(stored: unknown): ItemResult | undefined {
  if (!isObject(stored)) return
  const { ids, error, msg } = stored
  if (Array.isArray(ids)) return { success: true, messageIds: ids.map(String) }
  if (isErrorCode(error) && typeof msg === 'string') return { success: false, error: new RelayError(error, msg) }
}

function readInDoubt(json: string): InDoubt | null {
  const stored: unknown = JSON.parse(json || 'null')
  if (!isObject(stored)) return null
  const { indices, since, before, settle, calls } = stored
  if (!Array.isArray(indices) || typeof since !== 'number') return null
  const known = Array.isArray(before) ? before.map(String) : []
  return { indices: indices.map(Number), since, before: known, settle: Number(settle ?? 0), calls: Number(calls ?? 1) }
}
