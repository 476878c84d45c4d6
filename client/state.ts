import { ref, shallowRef } from 'vue'
import { loadAbout, type About } from './api'
import { refreshInventory } from './inventory'

/** The tabs of the page, in their order. */
export const tabNames = ['overview', 'incidents', 'beats', 'deliveries', 'send', 'integrations', 'keys'] as const
export type Tab = typeof tabNames[number]

/** The relay's facts; absent until they are loaded. */
export const about = shallowRef<About>()

/** Reloads the facts, the keys and the targets. */
export async function refreshAbout(): Promise<void> {
  const [found] = await Promise.all([loadAbout(), refreshInventory()])
  about.value = found ?? about.value
}

/** The location within the page. All of it is in the address, such as `#deliveries/<id>?state=failed`, so that it can be shared. */
export interface Place {
  tab: Tab
  /** The open delivery, incident or source; empty for none. */
  id: string
  /** The filters of the list. */
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

/** Changes the location without a new entry in the browser's history. */
export function replacePlace(next: Partial<Place>): void {
  place.value = { ...place.value, ...next }
  history.replaceState(history.state, '', hashOf(place.value))
}
