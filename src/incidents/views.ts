// What incidents look like in the answers and in posts to the operator's callback.
import { toIso } from '../lib/time'
import type { Ack } from '../message/model'
import { dueAt, type Incident, type TimelineEntry } from './incident'

/** @param ack the present rules of its name; absent if it has none any more */
export function viewIncident(incident: Incident, ack: Ack | undefined): object {
  const { id, name, state, severity, thread, title, owner, since, takenAt, silencedUntil, resolvedAt, events } = incident
  // What was not told yet is due at once, and no step.
  const step = state === 'open' ? dueAt({ ...incident, untold: 0 }, ack) : null
  return {
    id, name, state, severity, thread, target: name, title,
    ...owner && { owner: owner.name },
    since: toIso(since),
    ...takenAt !== undefined && { taken_at: toIso(takenAt) },
    ...silencedUntil !== undefined && { silenced_until: toIso(silencedUntil) },
    ...resolvedAt !== undefined && { resolved_at: toIso(resolvedAt) },
    ...step !== null && { next_step_at: toIso(step) },
    events,
  }
}

export function viewEntry({ kind, at, by, step, until }: TimelineEntry): object {
  return {
    kind, at: toIso(at),
    ...by && {
      by: by.name, way: by.way,
      ...by.person !== undefined && { person: by.person },
      ...by.account !== undefined && { account: by.account },
      ...by.key !== undefined && { key_name: by.key },
    },
    // Steps count from 1 for people.
    ...step !== undefined && { step: step + 1 },
    ...until !== undefined && { until: toIso(until) },
  }
}
