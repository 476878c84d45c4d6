import type { Target } from './model'

/** A target in one word, such as `group:123456`. */
export function writeTarget({ kind, id }: Target): string {
  return `${kind}:${id}`
}

/** Reads what `writeTarget` wrote, `undefined` for anything else. */
export function readTarget(text: string): Target | undefined {
  const [, kind, id] = /^(group|private):(\P{Cc}{1,255})$/u.exec(text) ?? []
  if (id !== undefined && (kind === 'group' || kind === 'private')) return { kind, id }
}
