import { matchesGlob } from '../lib/words'
import type { Address, Target, TargetNames } from '../message/model'
import { readAddress, toName, toPlatform } from '../message/target'

/** Targets that a key may send to; `*` stands for any characters. Without a platform it covers all platforms. */
export interface TargetPattern extends Target { platform?: string }

/**
 * Reads a target of a key: `*` for all, a target with or without stars, or a name.
 *
 * @returns its patterns, `undefined` for anything else
 */
export function parsePatterns(text: string, names: TargetNames): TargetPattern[] | undefined {
  if (text === '*') return [{ kind: 'group', id: '*' }, { kind: 'private', id: '*' }]
  const address = readAddress(text)
  // A key is confined by target and platform, not by the sending account.
  if (address?.selfId !== undefined) return
  return (address ? [address] : names.get(toName(text))?.addresses)?.map(toPattern)
}

export function toPattern({ target, platform }: Address): TargetPattern {
  return { ...target, ...platform !== undefined && { platform } }
}

/**
 * Whether a pattern covers a target.
 *
 * @param platform the platform of the target; `undefined` while it is unknown, which matches any
 */
export function fits({ kind, id, platform: on }: TargetPattern, target: Target, platform: string | undefined): boolean {
  const isThere = on === undefined || platform === undefined || matchesGlob(on, toPlatform(platform))
  return kind === target.kind && matchesGlob(id, target.id) && isThere
}
