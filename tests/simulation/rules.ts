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
  /** The seed to start from, if fewer than one in ten thousand schedules shows the effect. */
  from?: number
}

export const rules: readonly Rule[] = [
  {
    number: 1, off: 'a delivery leaves before its acceptance is saved',
    patches: [{ file: 'queues.ts', find: 'isSaved: !isDurable', replace: 'isSaved: true' }],
  },
  {
    number: 2, off: 'an insert without an answer is not cancelled',
    patches: [{ file: 'deliveries.ts', find: 'await this.untilWritten(() => this.options.journal.cancel(id))', replace: 'await Promise.resolve()' }],
  },
  {
    number: 2, off: 'a late insert replaces a tombstone',
    patches: [{ file: 'journal.ts', find: `if (present && !present.delivery) throw new Error('it was cancelled')`, replace: '' }, {
      file: 'journal.ts', find: '      if (present) return\n', replace: '      if (present?.delivery) return\n',
    }],
  },
  {
    number: 3, off: 'a standby answers a key with an outcome',
    patches: [{ file: 'relay.ts', find: 'if (hasKey) throw', replace: 'if (!hasKey) throw' }],
  },
  {
    number: 4, off: 'an older write replaces a newer one',
    patches: [{ file: 'journal.ts', find: 'if (row.version > version) return', replace: '' }],
  },
  {
    number: 5, off: 'writes are not conditional on the number of the owner',
    patches: [{ file: 'journal.ts', find: '      if (row.owner > owner) throw new NotOwner()\n      if (row.version', replace: '      if (row.version' }],
  },
  {
    number: 5, off: 'rows that came late are not adopted',
    patches: [{ file: 'term.ts', find: 'this.goOn(await journal.adopt(this.owner, clock.wall() - day))', replace: '' }],
  },
  {
    number: 6, off: 'calls are made when the ownership may be lost',
    patches: [{ file: 'deliveries.ts', find: '!isDurable || this.options.ownership.isFresh()', replace: '!isDurable || true' }, {
      file: 'relay.ts', find: 'await aborted(ownership.lost, close)', replace: 'await aborted(close)',
    }],
  },
  {
    number: 7, off: 'a caller is answered before its message is saved',
    patches: [{ file: 'intake.ts', find: 'await deliveries.insert(active)', replace: 'void deliveries.insert(active).catch(() => undefined)' }],
  },
  {
    number: 7, off: 'a relay that may have lost the database tells what it knew last',
    patches: [{ file: 'deliveries.ts', find: 'await this.writeEnd(active, results) || this.mayCall(active)', replace: 'await this.writeEnd(active, results) || true' }],
    from: 40_072_200,
  },
  {
    number: 8, off: 'a failure is told as it is while an earlier call is open',
    patches: [{
      file: 'attempt.ts', find: `throw failure?.outcome === 'unanswered' ? failure : new SendError('unanswered', undefined, { cause: failure })`,
      replace: `throw failure ?? new SendError('unanswered')`,
    }],
  },
  {
    number: 9, off: 'a deferred delivery that is absent once it has settled stays unanswered',
    patches: [{ file: 'recheck.ts', find: 'calls > policy.retries', replace: 'calls >= 0' }],
  },
  {
    number: 9, off: 'a text that was leaving when its relay ended does not hold its queue',
    patches: [{ file: 'attempt.ts', find: `kind === 'text' && !this.isLast ?`, replace: `kind === 'text' && !this.isLast && !this.sending.earlier ?` }],
  },
  {
    number: 10, off: 'one entry is enough for several equal messages',
    patches: [{ file: 'claims.ts', find: 'within.size >= this.open(chat, call.likeness).length', replace: 'within.size > 0' }],
  },
  {
    number: 11, off: 'an equal entry before the window counts for nothing',
    patches: [{ file: 'claims.ts', find: 'page.oldest < start && free.length === 0', replace: 'page.oldest < start' }],
  },
  {
    number: 12, off: 'the start does not load what ended unanswered',
    patches: [
      { file: 'term.ts', find: 'options.clock.wall() - day', replace: 'Infinity' },
      { file: 'term.ts', find: 'this.owner, clock.wall() - day', replace: 'this.owner, Infinity' },
    ],
    from: 12_201,
  },
  {
    number: 13, off: 'a refusal without a known cause is believed at once',
    patches: [{ file: 'attempt.ts', find: 'if (this.isDoubtful) return this.verify(failure)', replace: '' }],
  },
]

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { schedules: { type: 'string', default: '6000' }, only: { type: 'string' } } })
  const schedules = Number(values.schedules)
  const sound = await bundle()
  for (const { number, off, patches, from = 1 } of rules) {
    if (values.only !== undefined && !values.only.split(',').map(Number).includes(number)) continue
    const caught = await findFirst(await bundle(patches), sound, { from, schedules })
    console.log(`| ${number} | ${off} | ${caught ? `${caught.seed - from + 1} | ${caught.problems[0] ?? ''}` : `more than ${schedules} |`} |`)
    if (!caught) process.exitCode = 1
  }
}

/** The first schedule that fails only with the patches. */
async function findFirst(
  broken: string, sound: string, { from, schedules }: { from: number, schedules: number },
): Promise<Finding | undefined> {
  for (let first = from; first < from + schedules;) {
    const [finding] = await runAll(broken, [[first, from + schedules - first]], { workers: 1, isOver: () => true })
    if (!finding) return
    const known = await runAll(sound, [[finding.seed, 1]], { workers: 1 })
    if (known.length === 0) return finding
    first = finding.seed + 1
  }
}

if (require.main === module) void main()
