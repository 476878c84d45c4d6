import type { Address, Target } from './model'

const targetPattern = /^(group|private):(\P{Cc}{1,255})$/u
const addressPattern = /^([^:\s]{1,255}):(?:([^:\s]{1,255}):)??((?:group|private):.*)$/su

/** Other names of platforms, and the names that Koishi has for them. */
const otherNames: ReadonlyMap<string, string> = new Map([['feishu', 'lark']])

/** A platform as Koishi names it: Feishu is the same as Lark. */
export function toPlatform(name: string): string {
  return otherNames.get(name) ?? name
}

/** A target in one word, such as `group:123456`. */
export function writeTarget({ kind, id }: Target): string {
  return `${kind}:${id}`
}

/** Reads the result of `writeTarget`, `undefined` for anything else. */
export function readTarget(text: string): Target | undefined {
  const [, kind, id] = targetPattern.exec(text) ?? []
  if (id !== undefined && (kind === 'group' || kind === 'private')) return { kind, id }
}

/** The platform of a bot known as `platform:selfId`; `undefined` where there is none. */
export function platformOf(bot: string): string | undefined {
  const end = bot.indexOf(':')
  return end > 0 ? bot.slice(0, end) : undefined
}

/**
 * Reads a target, with its platform in front or not, or with the platform and the account that sends, such as `discord:group:3` and
 * `onebot:20002:group:3`; `undefined` for anything else.
 */
export function readAddress(text: string): Address | undefined {
  const bare = readTarget(text)
  if (bare) return { target: bare }
  const [, platform, selfId, rest = ''] = addressPattern.exec(text) ?? []
  const target = readTarget(rest)
  if (platform !== undefined && target) return { platform: toPlatform(platform), ...selfId !== undefined && { selfId }, target }
}

/** Writes what `readAddress` reads. */
export function writeAddress({ platform, selfId, target }: Address): string {
  return [platform, selfId, writeTarget(target)].filter(part => part !== undefined).join(':')
}
