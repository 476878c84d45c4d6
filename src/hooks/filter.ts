import { matchesGlob, readList } from '../lib/words'
import type { HookEvent } from './source'

/**
 * Tells why an event is none of those that the address asks for by `?events=`, `?branch=` and `?status=`; `undefined` when it is. Each is
 * a list with commas, in which `*` stands for any characters, also slashes. What an event does not have keeps nothing out.
 */
export function whyFilteredOut({ name, branch, status }: HookEvent, query: URLSearchParams): string | undefined {
  const isOut = (parameter: string, value: string | undefined): boolean => {
    const patterns = readList(query.getAll(parameter).join(',')) ?? []
    return value !== undefined && patterns.length > 0 && !patterns.some(pattern => matchesGlob(pattern, value))
  }
  if (isOut('events', name)) return 'not one of the events that were asked for'
  if (isOut('branch', branch)) return 'not on a branch that was asked for'
  if (isOut('status', status)) return 'not with a status that was asked for'
}
