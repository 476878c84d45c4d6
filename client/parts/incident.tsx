import type { VNode } from 'vue'
import type { Incident } from '../duty'
import { people } from '../inventory'
import { texts, wordFor, writeMoment, writeSpan } from '../texts'

/** The marks of states, as of deliveries and accounts. */
const marks: Partial<Record<string, string>> = { open: 'failed', taken: 'sending', silenced: 'unanswered', resolved: 'sent' }

export function severityMark(severity: string): VNode {
  return <span class={['relay-badge', severity]}>{wordFor(texts.value.incidents.severities, severity)}</span>
}

/** A person by the name for texts. */
export function nameOfPerson(name: string): string {
  return people.value?.find(each => each.name === name)?.called || name
}

/** Whose an incident is, and for how long it is there or was. */
export function describeOwner({ state, owner, since, takenAt, silencedUntil, resolvedAt }: Incident): VNode {
  const t = texts.value.incidents
  const who = nameOfPerson(owner)
  const span = writeSpan((state === 'resolved' ? Date.parse(resolvedAt) : Date.now()) - Date.parse(since))
  return (
    <div class={['relay-state', 'relay-owner', marks[state]]}>
      {state === 'open' && t.isOpen(span)}
      {state === 'taken' && t.isTaken(who, writeMoment(takenAt), span)}
      {state === 'silenced' && t.isSilenced(writeMoment(silencedUntil), who, span)}
      {state === 'resolved' && t.isResolved(writeMoment(resolvedAt), who, span)}
    </div>
  )
}
