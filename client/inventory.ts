import { shallowReactive, shallowRef } from 'vue'
import { loadKeys, loadTargets, type FreshKey, type Key, type Target } from './admin'
import { loadPeople, loadRotas, type Person, type Rota } from './duty'

/** The keys except the master key, the targets, the people and the rotas; absent until they are loaded. */
export const keys = shallowRef<readonly Key[]>()
export const targets = shallowRef<readonly Target[]>()
export const people = shallowRef<readonly Person[]>()
export const rotas = shallowRef<readonly Rota[]>()
/** The keys that Integrations created, by name, while they are valid. The relay never shows a key again. */
export const knownKeys = shallowReactive(new Map<string, FreshKey>())
/** Why the last refresh failed; empty if it did not. */
export const inventoryProblem = shallowRef('')

/** Reloads all of them. If the relay does not answer, the old ones stay. */
export async function refreshInventory(): Promise<void> {
  const all = await Promise.all([loadKeys(), loadTargets(), loadPeople(), loadRotas()])
  const [foundKeys, foundTargets, foundPeople, foundRotas] = all
  if ('value' in foundKeys) keys.value = foundKeys.value
  if ('value' in foundTargets) targets.value = foundTargets.value
  if ('value' in foundPeople) people.value = foundPeople.value
  if ('value' in foundRotas) rotas.value = foundRotas.value
  inventoryProblem.value = all.flatMap(found => 'problem' in found ? [found.problem] : [])[0] ?? ''
}

/** An unused key name: the wanted one, with a number appended if necessary. */
export function freeKeyName(wanted: string): string {
  const taken = new Set(keys.value?.map(({ name }) => name))
  let name = wanted
  for (let count = 2; taken.has(name); count++) name = `${wanted}-${count}`
  return name
}
