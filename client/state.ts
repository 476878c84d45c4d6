import { ref, shallowRef } from 'vue'
import { loadAbout, type About } from './api'

/** The parts of the page, in their order. */
export const tabNames = ['overview', 'deliveries', 'send', 'integrations', 'keys'] as const
export type Tab = typeof tabNames[number]

/** What the page knows of the relay; absent until it is loaded. */
export const about = shallowRef<About>()

export async function refreshAbout(): Promise<void> {
  about.value = await loadAbout() ?? about.value
}

/** Where the page is: its tab, and the delivery that is open. Both stand in the address, so that it can be sent to somebody. */
export const place = ref(readPlace())

export function readPlace(): { tab: Tab, id: string } {
  const [name = '', id = ''] = location.hash.slice(1).split('/')
  return { tab: tabNames.find(tab => tab === name) ?? 'overview', id }
}

export function goTo(tab: Tab, id = ''): void {
  location.hash = id === '' ? tab : `${tab}/${id}`
}
