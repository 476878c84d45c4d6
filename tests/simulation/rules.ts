// Turns each rule of the core off and shows after how many schedules the simulation notices: `npm run test:rules -- [--schedules 6000]
// [--only 3,4]`. A patch that no longer applies is an error.
import { parseArgs } from 'node:util'
import { bundle, runAll, type Finding, type Patch } from './workers'

interface Rule {
  /** The number of the rule in docs/architecture.md. */
  number: number
  /** The effect of turning the rule off. */
  off: string
  patches: readonly Patch[]
}

export const rules: readonly Rule[] = [
  {
    number: 1, off: 'a delivery joins its queue once its row is flushed',
    patches: [{
      file: 'accept/intake.ts', find: 'queues.enter(entry, isLater ?',
      replace: 'void (entry.hasRow ? this.context.store.flushed().catch(() => undefined) : Promise.resolve()).then(() => queues.enter(entry, isLater ?',
    }, { file: 'accept/intake.ts', find: 'patience: expiresIn })\n    return entry', replace: 'patience: expiresIn }))\n    return entry' }],
  },
  {
    number: 1, off: 'a durable message leaves before its row is flushed',
    patches: [{ file: 'delivery/deliveries.ts', find: 'if (entry.hasRow) await this.options.store.flushed()', replace: '' }],
  },
  {
    number: 2, off: 'a message is told to be accepted before its row is flushed',
    patches: [{ file: 'accept/intake.ts', find: 'await store.flushed().catch', replace: 'await Promise.resolve().catch' }],
  },
  {
    number: 2, off: 'a withdrawal is answered before it is flushed',
    patches: [{ file: 'relay/core.ts', find: '    await store.flushed()\n', replace: '' }],
  },
  {
    number: 2, off: 'a retry is answered before it is flushed',
    patches: [{ file: 'accept/keys.ts', find: 'this.retryNow(id, items, admit)\n    await store.flushed()', replace: 'this.retryNow(id, items, admit)' }],
  },
  {
    number: 3, off: 'a call is not written before it leaves',
    patches: [{
      file: 'delivery/deliveries.ts', find: 'this.step(entry, leave(entry.delivery, results, leaving))',
      replace: 'this.change(entry.delivery, leave(entry.delivery, results, leaving))',
    }],
  },
  {
    number: 4, off: 'a relay does not ask for its lock, and shares the file with the one that took it',
    patches: [{ file: 'support/store.ts', find: 'if (!this.failure && this.folder.holder !== this.storage) this.end(lost())', replace: '' }],
  },
  {
    number: 4, off: 'a flush does not ask for the lock, so that a paused relay calls',
    patches: [{ file: 'support/store.ts', find: '      this.check()\n      folder.flush(end)', replace: '      folder.flush(end)' }],
  },
  {
    number: 5, off: 'a failure is told as it is while an earlier call is open',
    patches: [{
      file: 'send/attempt.ts', find: `throw failure?.outcome === 'unanswered' ? failure : new SendError('unanswered', undefined, { cause: failure })`,
      replace: `throw failure ?? new SendError('unanswered')`,
    }],
  },
  {
    number: 5, off: 'a refusal without a known cause is believed at once',
    patches: [{ file: 'send/attempt.ts', find: 'if (this.isDoubtful) return this.verify(failure)', replace: '' }],
  },
  {
    number: 6, off: 'a deferred delivery that is absent once it has settled stays unanswered',
    patches: [{ file: 'accept/recheck.ts', find: 'calls > policy.retries', replace: 'calls >= 0' }],
  },
  {
    number: 6, off: 'a text that was leaving when its relay ended does not hold its queue',
    patches: [{ file: 'send/attempt.ts', find: `kind === 'text' && !this.isLast ?`, replace: `kind === 'text' && !this.isLast && !this.options.earlier ?` }],
  },
  {
    number: 7, off: 'one entry is enough for several equal messages',
    patches: [{ file: 'look-up/claims.ts', find: 'within.size >= this.unnamed(call.chat, call.likeness).length', replace: 'within.size > 0' }],
  },
  {
    number: 8, off: 'an equal entry before the window counts for nothing',
    patches: [{ file: 'look-up/claims.ts', find: 'page.oldest < start && free.length === 0', replace: 'page.oldest < start' }],
  },
  {
    number: 9, off: 'the start does not load what ended unanswered',
    patches: [{ file: 'relay/core.ts', find: 'table.left(clock.wall() - day)', replace: 'table.left(Infinity)' }],
  },
]

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { schedules: { type: 'string', default: '6000' }, only: { type: 'string' } } })
  const schedules = Number(values.schedules)
  const sound = await bundle()
  for (const { number, off, patches } of rules) {
    if (values.only !== undefined && !values.only.split(',').map(Number).includes(number)) continue
    const caught = await findFirst(await bundle(patches), sound, schedules)
    console.log(`| ${number} | ${off} | ${caught ? `${caught.seed} | ${caught.problems[0] ?? ''}` : `more than ${schedules} |`} |`)
    if (!caught) process.exitCode = 1
  }
}

/** The first schedule that fails only with the patches. */
async function findFirst(broken: string, sound: string, schedules: number): Promise<Finding | undefined> {
  for (let first = 1; first <= schedules;) {
    const [finding] = await runAll(broken, [[first, schedules + 1 - first]], { workers: 1, isOver: () => true })
    if (!finding) return
    const known = await runAll(sound, [[finding.seed, 1]], { workers: 1 })
    if (known.length === 0) return finding
    first = finding.seed + 1
  }
}

if (require.main === module) void main()
