import { shallowReactive, shallowRef } from 'vue'
import { loadKeys, loadTargets, type FreshKey, type Key, type Target } from './admin'

/** The keys except the master key, and the targets; absent until they are loaded. */
export const keys = shallowRef<readonly Key[]>()
export const targets = shallowRef<readonly Target[]>()
/** The keys that Integrations created, by name, while they are valid. The relay never shows a key again. */
export const knownKeys = shallowReactive(new Map<string, FreshKey>())
/** Why the last refresh failed; empty if it did not. */
export const inventoryProblem = shallowRef('')

/** Reloads the keys and targets. If the relay does not answer, the old ones stay. */
export async function refreshInventory(): Promise<void> {
  const [foundKeys, foundTargets] = await Promise.all([loadKeys(), loadTargets()])
  if ('value' in foundKeys) keys.value = foundKeys.value
  if ('value' in foundTargets) targets.value = foundTargets.value
  inventoryProblem.value = 'problem' in foundKeys ? foundKeys.problem : 'problem' in foundTargets ? foundTargets.problem : ''
}

/** An unused key name: the wanted one, with a number appended if necessary. */
export function freeKeyName(wanted: string): string {
  const taken = new Set(keys.value?.map(({ name }) => name))
  let name = wanted
  for (let count = 2; taken.has(name); count++) name = `${wanted}-${count}`
  return name
}
