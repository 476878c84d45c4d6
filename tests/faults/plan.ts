import type { Fault } from '../../simulator'
import { createKind, kindNumberOf, type Kind } from './kind'
import { Random } from './random'

export interface PlannedTarget {
  kind: 'group' | 'private'
  id: string
}

export interface PlannedItem {
  type: 'text' | 'file'
  /** Identifies the item in the ledger: a part of its text, or its bytes in base64. Equal items share it. */
  token: string
}

export interface PlannedRequest {
  name: number
  target: number
  mode: 'single' | 'batch'
  items: readonly PlannedItem[]
  key?: string
  /** If present, the request has `Prefer: respond-async`, and waits this many seconds for the result. */
  deferred?: { wait: number }
  /** In seconds. */
  expiresIn?: number
  /** After how many milliseconds the caller disconnects. */
  leaveAfter?: number
  /** Whether the caller tries to withdraw the delivery after it was accepted. */
  withdraw?: boolean
}

/** A fault beyond single calls. */
export type Disturbance
  = | { kind: 'disconnect', code?: number }
  /** OneBot restarts and is away for this long, in milliseconds. */
    | { kind: 'restart', away: number }
  /** The platform sends a frame that is not OneBot. */
    | { kind: 'frame', frame: string }
  /** The plugin is disposed, and loaded again after this many milliseconds, or at once (0). */
    | { kind: 'reload', after: number }
  /** The relay is killed and started again. */
    | { kind: 'kill' }
  /** The relay is stopped and started again. */
    | { kind: 'stop' }

/** Right before or after the n-th call to one of the targets, or after the n-th answer. */
export interface Moment {
  when: 'before-call' | 'after-call' | 'answer'
  nth: number
  what: Disturbance
}

/** The n-th call to a target fails. */
export interface PlannedFault {
  target: number
  about: 'send' | 'history'
  nth: number
  fault: Fault
}

/** A schedule of requests and faults. The seed determines all of it. */
export interface Plan {
  seed: number
  options: PlanOptions
  kindNumber: number
  kind: Kind
  /** Whether the plan needs a world of its own. */
  isRough: boolean
  targets: readonly PlannedTarget[]
  /** Each sender issues its requests one after another. */
  senders: readonly (readonly PlannedRequest[])[]
  faults: readonly PlannedFault[]
  moments: readonly Moment[]
}

export interface PlanOptions {
  /** Whether the relay may be killed. */
  kills?: boolean
  /** Whether the plugin may be reloaded. */
  reloads?: boolean
}

export function createPlan(seed: number, options: PlanOptions = {}): Plan {
  const { kills = false, reloads = false } = options
  const kindNumber = kindNumberOf(seed, kills)
  const kind = createKind(kindNumber)
  const random = new Random(seed + 500_000_000)
  const isRough = kills || random.chance(0.45)
  const targets = Array.from({ length: random.between(1, 4) }, (_, index): PlannedTarget => ({
    kind: random.chance(0.7) ? 'group' : 'private',
    id: String(1_000_000_000 + seed * 10 + index),
  }))
  const created = createSenders(random, seed, targets.length)
  const senders = random.chance(0.2) ? withEqualTexts(random, seed, created) : created
  return {
    seed, options, kindNumber, kind, isRough, targets,
    senders: kills ? withKeys(seed, senders) : senders,
    faults: targets.flatMap((_, target) => [
      ...faultsOf(random, target, 'send', 20, 0.5, () => sendFault(random, kind, isRough, kills)),
      ...faultsOf(random, target, 'history', 12, 0.3, () => historyFault(random, kind, isRough)),
    ]),
    moments: isRough ? createMoments(random, kills, reloads) : [],
  }
}

/** Faults for some of the first calls. */
function faultsOf(
  random: Random, target: number, about: PlannedFault['about'], count: number, density: number, create: () => Fault,
): PlannedFault[] {
  const share = density * random.next() * 1.6
  return Array.from({ length: count }, (_, index) => index + 1)
    .filter(() => random.chance(share))
    .map(nth => ({ target, about, nth, fault: create() }))
}

function createSenders(random: Random, seed: number, targets: number): PlannedRequest[][] {
  const earlier: PlannedRequest[] = []
  let bytes = 0
  const createItem = (name: number, index: number, type: PlannedItem['type']): PlannedItem => {
    const label = `[${seed}.${name}.${index}]`
    // Files are distinguished by their size, because all have the same name.
    return { type, token: type === 'text' ? label : Buffer.from(`${label}${'.'.repeat(++bytes)}`).toString('base64') }
  }
  const createItems = (name: number, mode: PlannedRequest['mode']): PlannedItem[] => {
    const count = mode === 'single' ? 1 : random.between(2, 5)
    const type = (): PlannedItem['type'] => random.chance(mode === 'single' ? 0.85 : 0.7) ? 'text' : 'file'
    return Array.from({ length: count }, (_, index) => createItem(name, index, type()))
  }
  const createRequest = (name: number): PlannedRequest => {
    const again = earlier.length > 0 && random.chance(0.3) ? random.pick(earlier) : undefined
    // Repeats an earlier request: with its key, or without one as a new message.
    if (again?.key !== undefined && random.chance(0.7)) {
      return { ...again, name, withdraw: false, ...random.chance(0.1) && { leaveAfter: 50 } }
    }
    const mode = again?.mode ?? (random.chance(0.3) ? 'batch' : 'single')
    return {
      name,
      target: again?.target ?? random.between(0, targets - 1),
      mode,
      items: again?.items ?? createItems(name, mode),
      ...random.chance(0.4) && { key: `key-${seed}-${name}` },
      ...random.chance(0.45) && {
        deferred: { wait: random.chance(0.25) ? 2 : 0 },
        ...random.chance(0.1) && { expiresIn: random.between(2, 20) / 10 },
      },
      ...random.chance(0.06) && { leaveAfter: random.between(1, 300) },
      ...random.chance(0.08) && { withdraw: true },
    }
  }
  let names = 0
  return Array.from({ length: random.between(1, 4) }, () => Array.from({ length: random.between(1, 4) }, () => {
    const request = createRequest(names++)
    earlier.push(request)
    return request
  }))
}

/** Replaces the texts of all requests with one or two, and adds requests with these texts. */
function withEqualTexts(random: Random, seed: number, senders: readonly PlannedRequest[][]): PlannedRequest[][] {
  const tokens = Array.from({ length: random.between(1, 2) }, (_, index) => `[${seed}.equal.${index}]`)
  const renamed = new Map<string, string>()
  const rename = (item: PlannedItem): PlannedItem => {
    if (item.type !== 'text') return item
    // Equal items stay equal, because a repeated key needs the same content.
    const token = renamed.get(item.token) ?? random.pick(tokens)
    renamed.set(item.token, token)
    return { ...item, token }
  }
  let names = senders.flat().length
  const create = (): PlannedRequest => {
    const name = names++
    return {
      name, target: 0, mode: 'single', items: [{ type: 'text', token: random.pick(tokens) }],
      ...random.chance(0.4) && { key: `key-${seed}-${name}` },
      ...random.chance(0.5) && { deferred: { wait: random.chance(0.25) ? 2 : 0 } },
    }
  }
  const more = Array.from({ length: random.between(1, 2) }, () => Array.from({ length: random.between(3, 7) }, create))
  return [...senders.map(requests => requests.map(request => ({ ...request, items: request.items.map(rename) }))), ...more]
}

/** Gives requests with equal items a key, so that they outlive a kill: a relay could take a forgotten message for an equal one. */
function withKeys(seed: number, senders: readonly PlannedRequest[][]): PlannedRequest[][] {
  const tokens = senders.flat().flatMap(({ items }) => items.map(({ token }) => token))
  const isEqual = ({ token }: PlannedItem): boolean => tokens.indexOf(token) !== tokens.lastIndexOf(token)
  return senders.map(requests => requests.map(request => (
    request.deferred || !request.items.some(isEqual) ? request : { key: `key-${seed}-${request.name}`, ...request }
  )))
}

/** Answers that do not tell whether the call was carried out. Each also gets the echo of the call. */
const unreadable: readonly Readonly<Record<string, unknown>>[] = [
  {}, { status: 'ok', data: null }, { status: 'ok', retcode: '0', data: {} }, { status: 'ok', retcode: null }, { status: 'async', retcode: 1, data: null },
]

function sendFault(random: Random, { profile, timeout, settle }: Kind, isRough: boolean, kills: boolean): Fault {
  const late = Math.round(timeout * (0.2 + random.next() * 2.8))
  // Below the settling time, because a message that is carried out later may come twice.
  const slow = Math.round(timeout * 0.2 + random.next() * (settle * 0.9 - timeout * 0.2))
  const weighted: [number, Fault][] = [
    [8, { kind: 'refuse' }],
    [2, { kind: 'refuse', wording: 'no' }],
    [8, { kind: 'silent' }],
    [10, { kind: 'lost-answer' }],
    [7, { kind: 'late', ms: late }],
    [8, { kind: 'late', ms: slow, delivered: 'then' }],
    [2, { kind: 'late', ms: slow, delivered: 'then', answered: false }],
    [2, { kind: 'late', ms: slow, delivered: 'never' }],
    [4, { kind: 'answer', answer: random.pick(unreadable), delivered: random.chance(0.6) }],
    // llbot gives this answer after it has accepted the message.
    [3, { kind: 'timeout', delivered: profile === 'llbot' || random.chance(0.5) }],
    [3, { kind: 'duplicate-answer' }],
    [3, { kind: 'hold' }],
    [3, { kind: 'null-data' }],
    [1, { kind: 'muted' }],
    [1, { kind: 'not-member' }],
  ]
  // Slow, but far from a timeout.
  if (!kills) weighted.push([2, { kind: 'late', ms: Math.round(timeout * 0.3), delivered: 'then' }])
  if (isRough) weighted.push([2, { kind: 'close', when: 'before' }], [3, { kind: 'close', when: 'delivered' }], [2, { kind: 'close', when: 'answered' }])
  return random.weighted(weighted)
}

function historyFault(random: Random, { timeout }: Kind, isRough: boolean): Fault {
  const weighted: [number, Fault][] = [
    [3, { kind: 'silent' }],
    [2, { kind: 'lost-answer' }],
    [5, { kind: 'late', ms: Math.round(timeout * (0.2 + random.next() * 2.8)) }],
    [2, { kind: 'refuse' }],
    [2, { kind: 'hold' }],
    [1, { kind: 'duplicate-answer' }],
    [1, { kind: 'answer', answer: random.pick(unreadable), delivered: random.chance(0.6) }],
  ]
  if (isRough) weighted.push([1, { kind: 'close', when: 'before' }], [1, { kind: 'close', when: 'delivered' }])
  return random.weighted(weighted)
}

/** Frames that are not OneBot, or answer no call. */
const frames = ['5', 'null', '"x"', '[]', '{', '{"echo":"__proto__"}', '{"echo":"constructor","retcode":0}']

function createMoments(random: Random, kills: boolean, reloads: boolean): Moment[] {
  const disturbance = (): Disturbance => random.weighted<Disturbance>([
    [3, { kind: 'disconnect' }],
    [2, { kind: 'disconnect', code: 1001 }],
    [2, { kind: 'restart', away: random.between(20, 700) }],
    [1, { kind: 'frame', frame: random.pick(frames) }],
    // Some reloads take longer than a call, as when the plugin is disabled and enabled on the config page.
    [reloads ? 3 : 0, { kind: 'reload', after: random.chance(0.4) ? random.between(50, 2_000) : 0 }],
  ])
  const when = (): Moment['when'] => random.pick(['before-call', 'after-call', 'answer'])
  const moments = Array.from({ length: random.between(0, kills ? 1 : 3) }, (): Moment => ({
    when: when(), nth: random.between(1, 14), what: disturbance(),
  }))
  if (kills) moments.push({ when: when(), nth: random.between(1, 8), what: { kind: random.chance(0.85) ? 'kill' : 'stop' } })
  return moments
}
