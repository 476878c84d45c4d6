import { matchesGlob } from '../lib/words'
import type { Address, Target, TargetNames } from '../message/model'
import { readAddress, toPlatform } from '../message/target'

/** Targets that a key may send to; `*` stands for any characters. Without a platform it covers all platforms. */
export interface TargetPattern extends Target { platform?: string }

/**
 * Reads a target of a key: `*` for all, a target with stars or without, or a name.
 *
 * @returns its patterns, `undefined` for anything else
 */
export function parsePatterns(text: string, names: TargetNames): TargetPattern[] | undefined {
  if (text === '*') return [{ kind: 'group', id: '*' }, { kind: 'private', id: '*' }]
  const address = readAddress(text)
  // Where a message goes counts, not through which account.
  if (address?.selfId !== undefined) return
  return (address ? [address] : names.get(text)?.addresses)?.map(toPattern)
}

export function toPattern({ target, platform }: Address): TargetPattern {
  return { ...target, ...platform !== undefined && { platform } }
}

/**
 * Whether a pattern covers a target.
 *
 * @param platform of the target; `undefined` while it is unknown, and then any will do
 */
export function fits({ kind, id, platform: on }: TargetPattern, target: Target, platform: string | undefined): boolean {
  const isThere = on === undefined || platform === undefined || matchesGlob(on, toPlatform(platform))
  return kind === target.kind && matchesGlob(id, target.id) && isThere
}
