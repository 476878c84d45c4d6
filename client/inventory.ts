import { shallowReactive, shallowRef } from 'vue'
import { loadKeys, loadTargets, type FreshKey, type Key, type Target } from './admin'

/** The keys beside the master key, and the targets; absent until they are loaded. */
export const keys = shallowRef<readonly Key[]>()
export const targets = shallowRef<readonly Target[]>()
/** The keys that Integrations made, by name, as long as they are what a caller needs. The relay shows nobody a key again. */
export const knownKeys = shallowReactive(new Map<string, FreshKey>())
/** Why the last look at them failed; empty where it did not. */
export const inventoryProblem = shallowRef('')

/** Reads both again. What was known stays where the relay does not answer. */
export async function refreshInventory(): Promise<void> {
  const [foundKeys, foundTargets] = await Promise.all([loadKeys(), loadTargets()])
  if ('value' in foundKeys) keys.value = foundKeys.value
  if ('value' in foundTargets) targets.value = foundTargets.value
  inventoryProblem.value = 'problem' in foundKeys ? foundKeys.problem : 'problem' in foundTargets ? foundTargets.problem : ''
}

/** A name that no key has yet: the wanted one, or that with a number behind it. */
export function freeKeyName(wanted: string): string {
  const taken = new Set(keys.value?.map(({ name }) => name))
  let name = wanted
  for (let count = 2; taken.has(name); count++) name = `${wanted}-${count}`
  return name
}
