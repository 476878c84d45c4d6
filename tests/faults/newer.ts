import type { Fault } from '../../simulator'
import { slowest, type Kind } from './kind'
import type { Moment, Plan, PlannedFault, PlannedItem, PlannedRequest } from './plan'
import { Random } from './random'

/** What is no OneBot, or no answer to anything. */
const frames = ['5', 'null', '"x"', '[]', '{', '{"echo":"__proto__"}', '{"echo":"constructor","retcode":0}']

/** Answers from which nobody can tell whether a call was carried out; each has the echo of the call as well. */
const answers: readonly Readonly<Record<string, unknown>>[] = [
  {}, { status: 'ok', data: null }, { status: 'ok', retcode: '0', data: {} }, { status: 'ok', retcode: null }, { status: 'async', retcode: 1, data: null },
]

/**
 * Adds to a plan what schedules learned later, out of a stream of random numbers of its own: what a seed stood for before stays
 * reproducible.
 */
export function addNewer(plan: Plan): Plan {
  const random = new Random(plan.seed + 900_000_000)
  const { kills, reloads } = plan.options
  const moments: Moment[] = []
  const { isRough } = plan
  if (isRough && random.chance(0.1)) {
    const what = { kind: 'restart', away: random.between(20, 400), kept: random.pick([0, 1, 3]) } as const
    moments.push({ when: 'after-call', nth: random.between(1, 10), what })
  }
  if (isRough && random.chance(0.15)) {
    moments.push({ when: random.pick(['before-call', 'after-call']), nth: random.between(1, 10), what: { kind: 'frame', frame: random.pick(frames) } })
  }
  if (kills && reloads && random.chance(0.6)) {
    moments.push({ when: random.pick(['after-call', 'answer']), nth: random.between(1, 8), what: { kind: 'reload' } })
  }
  const planned = [...plan.moments, ...moments]
  const senders = random.chance(0.2) ? withEqualTexts(random, plan) : plan.senders
  const faults = withSlowCalls(random, plan)
  return { ...plan, isRough, senders, faults, moments: reloads ? planned.map(moment => disableFor(random, moment)) : planned }
}

/**
 * Some reloads take longer than a call: the plugin is disabled on the config page, and enabled again. Here a seed stands for another
 * schedule than before.
 */
function disableFor(random: Random, moment: Moment): Moment {
  return moment.what.kind === 'reload' && random.chance(0.4)
    ? { ...moment, what: { kind: 'reload', after: random.between(50, 2_000) } }
    : moment
}

/** Some of the calls are carried out slowly, or answered in a way that nobody can read, instead of what was to happen to them. */
function withSlowCalls(random: Random, { kind, targets, faults }: Plan): PlannedFault[] {
  const share = random.next() * 0.3
  const newer = targets.flatMap((_, target) => Array.from({ length: 16 }, (_, index) => index + 1)
    .filter(() => random.chance(share))
    .map((nth): PlannedFault => random.chance(0.9)
      ? { target, about: 'send', nth, fault: newerFault(random, kind) }
      : { target, about: 'history', nth, fault: unreadable(random) }))
  const isReplaced = (fault: PlannedFault): boolean => newer.some(({ target, about, nth }) => (
    target === fault.target && about === fault.about && nth === fault.nth
  ))
  return [...faults.filter(fault => !isReplaced(fault)), ...newer]
}

function newerFault(random: Random, { timeout }: Kind): Fault {
  const ms = Math.round(timeout * (0.2 + random.next() * (slowest - 0.2)))
  return random.weighted<() => Fault>([
    [8, () => ({ kind: 'late', ms, delivered: 'then' })],
    [2, () => ({ kind: 'late', ms, delivered: 'then', answered: false })],
    [2, () => ({ kind: 'late', ms, delivered: 'never' })],
    [4, () => unreadable(random)],
  ])()
}

function unreadable(random: Random): Fault {
  return { kind: 'answer', answer: random.pick(answers), delivered: random.chance(0.6) }
}

/** The texts of all requests become one or two, and more requests with them are issued meanwhile. */
function withEqualTexts(random: Random, { seed, senders }: Plan): PlannedRequest[][] {
  const tokens = Array.from({ length: random.between(1, 2) }, (_, index) => `[${seed}.equal.${index}]`)
  const renamed = new Map<string, string>()
  const rename = (item: PlannedItem): PlannedItem => {
    if (item.type !== 'text') return item
    // Equal items stay equal: a repeated key has to mean the same.
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
