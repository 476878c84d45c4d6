import type { Address, BotSelector, Target } from './model'

// Built once: the compiler makes such a pattern anew wherever it stands.
const pattern = /^(group|private):(\P{Cc}{1,255})$/u

/** A target in one word, such as `group:123456`. */
export function writeTarget({ kind, id }: Target): string {
  return `${kind}:${id}`
}

/** Reads what `writeTarget` wrote, `undefined` for anything else. */
export function readTarget(text: string): Target | undefined {
  const [, kind, id] = pattern.exec(text) ?? []
  if (id !== undefined && (kind === 'group' || kind === 'private')) return { kind, id }
}

/** The platform of a bot, of which `platform:selfId` is known; `undefined` where there was none. */
export function platformOf(bot: string): string | undefined {
  const end = bot.indexOf(':')
  return end > 0 ? bot.slice(0, end) : undefined
}

/** What asks for a bot of which `platform:selfId` is known. */
export function selectorOf(bot: string): Required<BotSelector> {
  const platform = platformOf(bot) ?? ''
  return { platform, selfId: bot.slice(platform.length + 1) }
}

/** Reads a target that may have its platform in front, such as `discord:group:3`; `undefined` for anything else. */
export function readAddress(text: string): Address | undefined {
  const bare = readTarget(text)
  if (bare) return { target: bare }
  const [, platform, rest = ''] = /^([^:\s]{1,255}):(.*)$/su.exec(text) ?? []
  const target = readTarget(rest)
  if (platform !== undefined && target) return { platform, target }
}

/** Writes what `readAddress` reads. */
export function writeAddress({ platform, target }: Address): string {
  return (platform === undefined ? '' : `${platform}:`) + writeTarget(target)
}
