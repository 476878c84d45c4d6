import { ref, shallowRef } from 'vue'
import { loadAbout, type About } from './api'
import { refreshInventory } from './inventory'

/** The parts of the page, in their order. */
export const tabNames = ['overview', 'deliveries', 'send', 'integrations', 'keys'] as const
export type Tab = typeof tabNames[number]

/** What the page knows of the relay; absent until it is loaded. */
export const about = shallowRef<About>()

/** Reads it again, and the keys and targets with it. */
export async function refreshAbout(): Promise<void> {
  const [found] = await Promise.all([loadAbout(), refreshInventory()])
  about.value = found ?? about.value
}

/** Where the page is. The address has all of it, such as `#deliveries/<id>?state=failed`, so that it can be sent to somebody. */
export interface Place {
  tab: Tab
  /** The delivery that is open; empty for none. */
  id: string
  /** The filters of the list of deliveries. */
  query: Readonly<Record<string, string>>
}

export const place = ref(readPlace())

export function readPlace(): Place {
  const [path = '', query = ''] = location.hash.slice(1).split('?')
  const [name = '', id = ''] = path.split('/')
  return { tab: tabNames.find(tab => tab === name) ?? 'overview', id, query: Object.fromEntries(new URLSearchParams(query)) }
}

function hashOf({ tab, id, query }: Place): string {
  const search = new URLSearchParams(query).toString()
  return `#${tab}${id && `/${id}`}${search && `?${search}`}`
}

export function goTo(tab: Tab, id = '', query: Place['query'] = {}): void {
  location.hash = hashOf({ tab, id, query })
}

/** Changes where the page is without a step in the history of the browser. */
export function replacePlace(next: Partial<Place>): void {
  place.value = { ...place.value, ...next }
  history.replaceState(history.state, '', hashOf(place.value))
}
