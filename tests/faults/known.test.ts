import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { judge } from './judge'
import type { Kind } from './kind'
import { createPlan, type Plan, type PlannedRequest } from './plan'
import { runPlan } from './run'
import { testify } from './witness'
import { LocalWorld, ProcessWorld } from './world'

const kind: Kind = {
  profile: 'napcat', history: true, reportSelf: false, retryUnanswered: false, timeout: 300, settle: 900, retries: 1, pauseAfter: 1000, pauseFor: 500,
}
const plan: Plan = {
  seed: 0, options: {}, kindNumber: 0, kind, isRough: true, targets: [{ kind: 'group', id: '1' }], senders: [], faults: [], moments: [], databaseFaults: [],
}

function text(name: number, token: string, more: Partial<PlannedRequest> = {}): PlannedRequest {
  return { name, target: 0, mode: 'single', items: [{ type: 'text', token }], ...more }
}

function file(name: number, token: string): PlannedRequest {
  return { name, target: 0, mode: 'single', items: [{ type: 'file', token }] }
}

/** Schedules that failed once, or were thought of, made as small as they can be where that was tried. */
const schedules: { what: string, plan: Plan }[] = [
  {
    what: 'the clock set back during a look-up after a kill does not hide what was sent before',
    plan: createPlan(1020380, { kills: true }),
  },
  {
    what: 'a request that only waited when the relay was killed does not take an equal message for its own when its key comes again',
    plan: createPlan(1220336, { kills: true }),
  },
  {
    what: 'what is sent at once does not overtake what was accepted for later when the database fails',
    plan: {
      ...plan,
      senders: [[text(0, '[a]', { deferred: { wait: 0 } }), text(1, '[b]', { deferred: { wait: 0 } }), text(2, '[c]')]],
      databaseFaults: [{ statement: 'get', nth: 1, times: 3 }],
    },
  },
  {
    what: 'a late answer to one part of a batch does not end the rest of it',
    plan: {
      ...plan,
      kind: { ...kind, history: false, retries: 0, timeout: 400 },
      senders: [[text(0, '', {
        mode: 'batch',
        deferred: { wait: 0 },
        items: [{ type: 'text', token: '[a]' }, { type: 'file', token: 'QUFB' }, { type: 'file', token: 'QUFBQQ==' }],
      })]],
      faults: [
        { target: 0, about: 'send', nth: 1, fault: { kind: 'late', ms: 900 } },
        { target: 0, about: 'send', nth: 2, fault: { kind: 'late', ms: 250 } },
        { target: 0, about: 'send', nth: 3, fault: { kind: 'late', ms: 350 } },
      ],
    },
  },
  {
    what: 'what a history shows too late may be an equal message that left meanwhile, and is not taken for the one before it',
    plan: {
      ...plan,
      kind: { ...kind, retries: 0, timeout: 400, settle: 2800 },
      senders: [[file(0, 'QUFB'), file(1, 'QUFB')]],
      faults: [
        { target: 0, about: 'send', nth: 1, fault: { kind: 'silent' } },
        { target: 0, about: 'send', nth: 2, fault: { kind: 'late', ms: 300 } },
        { target: 0, about: 'history', nth: 1, fault: { kind: 'late', ms: 250 } },
      ],
    },
  },
  {
    what: 'a late answer to a text does not tell of the message that was taken for an equal one meanwhile',
    plan: {
      ...plan,
      kind: { ...kind, retries: 0, timeout: 400, settle: 1200 },
      senders: [[text(0, '[a]'), text(1, '[a]')]],
      faults: [
        { target: 0, about: 'send', nth: 1, fault: { kind: 'late', ms: 900 } },
        { target: 0, about: 'send', nth: 2, fault: { kind: 'silent' } },
        { target: 0, about: 'history', nth: 1, fault: { kind: 'refuse' } },
      ],
    },
  },
  {
    what: 'nor does one to a file',
    plan: {
      ...plan,
      kind: { ...kind, retries: 0, timeout: 400, settle: 1200 },
      senders: [[file(0, 'QUFB'), file(1, 'QUFB')]],
      faults: [
        { target: 0, about: 'send', nth: 1, fault: { kind: 'late', ms: 900 } },
        { target: 0, about: 'send', nth: 2, fault: { kind: 'silent' } },
        { target: 0, about: 'history', nth: 1, fault: { kind: 'refuse' } },
      ],
    },
  },
  {
    what: 'what may have arrived is not told to be refused because a further call is',
    plan: {
      ...plan,
      // Its history cannot tell.
      kind: { ...kind, profile: 'lagrange', retryUnanswered: true, retries: 0, timeout: 400, settle: 600 },
      senders: [[text(0, '[a]', { key: 'key' }), text(1, '[b]'), text(2, '[c]'), text(3, '[a]', { key: 'key' })]],
      faults: [
        { target: 0, about: 'send', nth: 1, fault: { kind: 'lost-answer' } },
        { target: 0, about: 'send', nth: 2, fault: { kind: 'late', ms: 350 } },
        { target: 0, about: 'send', nth: 3, fault: { kind: 'late', ms: 350 } },
        { target: 0, about: 'send', nth: 4, fault: { kind: 'refuse' } },
      ],
    },
  },
  {
    what: 'a request with a key that is repeated after the relay was killed is told to be unanswered',
    plan: {
      ...plan,
      senders: [[text(0, '[a]', { key: 'key' })]],
      faults: [{ target: 0, about: 'send', nth: 1, fault: { kind: 'silent' } }],
      moments: [{ when: 'after-call', nth: 1, what: { kind: 'kill' } }],
    },
  },
  {
    what: 'the same when the first write of the new process fails',
    plan: {
      ...plan,
      senders: [[text(0, '[a]', { key: 'key' })]],
      faults: [{ target: 0, about: 'send', nth: 1, fault: { kind: 'silent' } }],
      moments: [{ when: 'after-call', nth: 1, what: { kind: 'kill' } }],
      databaseFaults: [{ statement: 'set', nth: 1, times: 1 }],
    },
  },
  {
    what: 'an equal message that was sent before the relay was killed is not taken for the one that was not',
    plan: {
      ...plan,
      senders: [[text(0, '[a]', { deferred: { wait: 2 } }), text(1, '[a]', { deferred: { wait: 0 } })]],
      faults: [{ target: 0, about: 'send', nth: 2, fault: { kind: 'silent' } }],
      moments: [{ when: 'after-call', nth: 2, what: { kind: 'kill' } }],
    },
  },
  {
    what: 'a file that was found in the chat is not accounted for again when its answer comes late',
    plan: {
      ...plan,
      kind: { ...kind, reportSelf: true, timeout: 210 },
      senders: [[file(0, 'QUFB'), text(1, '[a]'), file(2, 'QUFB')]],
      faults: [
        { target: 0, about: 'send', nth: 1, fault: { kind: 'late', ms: 500 } },
        { target: 0, about: 'send', nth: 2, fault: { kind: 'late', ms: 190 } },
        { target: 0, about: 'send', nth: 3, fault: { kind: 'lost-answer' } },
      ],
    },
  },
  {
    what: 'a batch of which a part was sent cannot be withdrawn',
    plan: {
      ...plan,
      kind: { ...kind, retries: 0 },
      senders: [[text(0, '', {
        mode: 'batch', deferred: { wait: 2 }, withdraw: true, items: [{ type: 'text', token: '[a]' }, { type: 'file', token: 'QUFB' }],
      })]],
      moments: [{ when: 'after-call', nth: 1, what: { kind: 'restart', away: 4000 } }],
      // Holds the second part back until the bot is away.
      databaseFaults: [{ statement: 'set', nth: 2, times: 1 }],
    },
  },
]

describe('known schedules:', { concurrency: 2 }, () => {
  for (const { what, plan } of schedules) {
    test(what, { timeout: 120_000 }, async () => {
      const isKilled = plan.moments.some(({ what }) => what.kind === 'kill')
      const world = await (isKilled ? ProcessWorld : LocalWorld).start(plan.kind)
      try {
        const run = await runPlan(plan, world)
        assert.deepEqual([...judge(run).problems, ...testify(run)], [])
      } finally {
        await world.stop()
      }
    })
  }
})
