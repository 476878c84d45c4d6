import { parseJson } from '../lib/json'
import { isString, isTime, isWhole, objectOf, optional } from '../lib/shape'
import { isUnfinished, outcomeOf, resultOf, type Delivery } from '../relay/delivery/delivery'
import type { Observer } from '../relay/options'
import type { Store } from '../relay/store/store'

/** What is counted about a key, since its first use. */
export interface Counts {
  /** The time of its last request, in milliseconds since the epoch; 0 for never. */
  readonly last: number
  /** The address of its last request, if known. */
  readonly address?: string | undefined
  /** The number of messages that it was allowed to send. */
  readonly messages: number
  /** The number of messages that became deliveries, each item of a batch, and how many of these were sent or have failed by now. */
  readonly accepted: number
  readonly sent: number
  readonly failed: number
  /** The number of requests that were refused as forbidden or too many. */
  readonly refused: number
}

const none: Counts = { last: 0, messages: 0, accepted: 0, sent: 0, failed: 0, refused: 0 }
const isCounts = objectOf<Counts>({
  last: isTime, address: optional(isString), messages: isWhole, accepted: isWhole, sent: isWhole, failed: isWhole, refused: isWhole,
})
const isRow = objectOf({ caller: isString, entry: isString })

/** How a key is used. All keys of a name share one, such as the old and the new key of a rotation. */
export class Usage {
  private present = none

  /** Each change makes another object. */
  get counts(): Counts {
    return this.present
  }

  /** Notes a request. */
  note(address: string | undefined): void {
    this.present = { ...this.present, last: Date.now(), address }
  }

  add(more: Partial<Counts>): void {
    this.present = { ...this.present, ...sumOf(this.present, more) }
  }

  /** Adds what was counted before this process began. */
  continue(before: Counts): void {
    const { present } = this
    const latest = before.last > present.last ? before : present
    this.present = present === none ? before : { ...latest, ...sumOf(before, present) }
  }
}

/** A retry takes its messages from the failed ones, also from those before the counts began. */
function sumOf(before: Counts, more: Partial<Counts>): Omit<Counts, 'last' | 'address'> {
  const sum = (kind: 'messages' | 'accepted' | 'sent' | 'failed' | 'refused'): number => Math.max(0, before[kind] + (more[kind] ?? 0))
  return { messages: sum('messages'), accepted: sum('accepted'), sent: sum('sent'), failed: sum('failed'), refused: sum('refused') }
}

/** The entrances of callers with a key. What the relay itself writes, a digest for one, has another one. */
const isOfKey = /^(?:webhook|send|onebot)$|^hooks\//

/** The outcomes of the messages of a delivery. */
function tally({ mode, state, results }: Pick<Delivery, 'mode' | 'state' | 'results'>): { sent: number, failed: number } {
  const outcomes = (mode === 'single' ? [resultOf({ results })] : results).map(outcomeOf)
  const sent = outcomes.filter(outcome => outcome === 'sent').length
  return { sent, failed: isUnfinished(state) ? 0 : outcomes.filter(outcome => outcome !== 'sent' && outcome !== 'unanswered').length }
}

/** The usage of all keys by the names of their callers. It is counted in memory, and written now and then. */
export class Usages implements Pick<Observer, 'changed'> {
  /** The master key has an empty name. */
  private readonly all = new Map<string, Usage>()
  /** The store from which the counts were read, or to which they are written since, and what is there. */
  private known: Store | undefined
  private readonly written = new Map<string, Counts>()

  /** @param store returns the present store */
  constructor(private readonly store: () => Store) {}

  /** @param caller `null` for the master key */
  of(caller: string | null): Usage {
    const usage = this.all.get(caller ?? '') ?? new Usage()
    this.all.set(caller ?? '', usage)
    return usage
  }

  changed(delivery: Delivery, before?: Pick<Delivery, 'mode' | 'state' | 'results'>): void {
    const usage = isOfKey.test(delivery.door) ? this.all.get(delivery.caller ?? '') : undefined
    if (!usage) return
    const [now, then] = [tally(delivery), before ? tally(before) : { sent: 0, failed: 0 }]
    const accepted = before ? 0 : delivery.mode === 'single' ? 1 : delivery.results.length
    const [sent, failed] = [now.sent - then.sent, now.failed - then.failed]
    if (accepted || sent || failed) usage.add({ accepted, sent, failed })
  }

  /** A key that is made later under the same name starts anew. */
  forget(caller: string): void {
    this.all.delete(caller)
  }

  /** Reads what was counted before this process began, unless the store has a failure. */
  load(): void {
    const store = this.store()
    if (store === this.known || store.failure) return
    const rows = this.known ? [] : store.all(isRow, 'SELECT caller, entry FROM usage')
    this.written.clear()
    for (const { caller, entry } of rows) {
      const counts = parseJson(entry)
      if (!isCounts(counts)) continue
      this.of(caller || null).continue(counts)
      this.written.set(caller, counts)
    }
    this.known = store
  }

  /** Writes what has changed, unless the store has a failure: then it is written the next time. @throws RelayError */
  save(): void {
    this.load()
    const store = this.store()
    if (store.failure) return
    const present = new Map([...this.all].map(([caller, { counts }]) => [caller, counts]))
    const changed = [...present].filter(([caller, counts]) => counts !== (this.written.get(caller) ?? none))
    const gone = [...this.written.keys()].filter(caller => !present.has(caller))
    if (changed.length + gone.length === 0) return
    store.commit(writer => {
      for (const [caller, counts] of changed) writer.run('REPLACE INTO usage (caller, entry) VALUES (?, ?)', caller, JSON.stringify(counts))
      for (const caller of gone) writer.run('DELETE FROM usage WHERE caller = ?', caller)
    })
    for (const [caller, counts] of changed) this.written.set(caller, counts)
    for (const caller of gone) this.written.delete(caller)
  }
}
