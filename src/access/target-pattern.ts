import { matchesGlob } from '../lib/words'
import type { Target, TargetNames } from '../message/model'
import { readAddress } from '../message/target'

/** Targets that a key may send to; a star in it stands for any characters. */
export interface TargetPattern {
  kind: Target['kind']
  id: string
  /** Absent: every platform. */
  platform?: string
}

/**
 * Reads targets as a key has them: `*` for all, a target with stars or without, or a name.
 *
 * @returns the patterns that it stands for, `undefined` when it is none of these
 */
export function parsePatterns(text: string, names: TargetNames): TargetPattern[] | undefined {
  if (text === '*') return [{ kind: 'group', id: '*' }, { kind: 'private', id: '*' }]
  const address = readAddress(text)
  const addresses = address ? [address] : names.get(text)?.addresses
  return addresses?.map(({ target, platform }) => ({ ...target, ...platform !== undefined && { platform } }))
}

/**
 * Whether a target is among those of a pattern.
 *
 * @param platform the one that it is on; `undefined` while that is not known, and then any may be the one
 */
export function fits({ kind, id, platform: on }: TargetPattern, target: Target, platform: string | undefined): boolean {
  return kind === target.kind && matchesGlob(id, target.id) && (on === undefined || platform === undefined || matchesGlob(on, platform))
}
