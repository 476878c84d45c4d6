import { isDeepStrictEqual } from 'node:util'
import { isSet } from '../lib/words'
import { groups, table, type Settings } from './table'
import { say, type Text } from '../texts/text'

export type Environment = Readonly<Partial<Record<string, string>>>

/** The source of an effective setting. */
export interface Origin {
  field: keyof Settings
  variable: string
  source: 'koishi.yml' | 'environment' | 'default'
  value: unknown
  /** The part of the value that may be shown; `undefined` for a secret. */
  shown: unknown
}

/**
 * Resolves the effective settings: the value in koishi.yml, or else the environment variable, or else the default. A blank value counts as
 * absent. The default, or the `refusal` of the table, replaces a malformed value; the warning does not contain that value.
 *
 * @returns the settings, their origins in the order of the config page, and warnings of one line each
 */
export function resolveSettings(config: Readonly<Partial<Record<keyof Settings, unknown>>>, environment: Environment) {
  const settings: Partial<Settings> = {}
  const origins: Origin[] = []
  const warnings: Text[] = []

  function resolve<Name extends keyof Settings>(field: Name, into: Partial<Pick<Settings, Name>>): void {
    const { variable, fallback, parse, rule, show, refusal = { value: fallback, consequence: say('default-used') } } = table[field]
    const isInFile = isSet(config[field])
    const raw: unknown = isInFile ? config[field] : environment[variable]
    const parsed = isSet(raw) ? parse(raw) : undefined
    const isMalformed = isSet(raw) && parsed === undefined
    const place = isInFile ? say('in-koishi-yml', { field }) : say('the-variable', { variable })
    if (isMalformed) warnings.push(say('setting-malformed', { place, rule, consequence: refusal.consequence }))
    const value = parsed ?? (isMalformed ? refusal.value : fallback)
    into[field] = value
    origins.push({ field, variable, source: parsed === undefined ? 'default' : isInFile ? 'koishi.yml' : 'environment', value, shown: show(value) })
  }

  for (const field of groups.flat()) resolve(field, settings)
  if (!isComplete(settings)) throw new TypeError('a setting is in no group of the table')
  return { settings, origins, warnings }
}

function isComplete(settings: Partial<Settings>): settings is Settings {
  return Object.keys(table).every(field => field in settings)
}

/** One line for the log: the settings that differ from their defaults, with their sources and the parts that may be shown. */
export function describeSettings(origins: readonly Origin[]): Text {
  const different = origins.filter(({ field, source, value }) => source !== 'default' && !isDeepStrictEqual(value, table[field].fallback))
  if (different.length === 0) return say('settings-default')
  const parts = different.map(({ field, variable, source, shown }) =>
    `${field}${shown === undefined ? '' : ` = ${JSON.stringify(shown)}`} (${source === 'environment' ? variable : source})`)
  return say('settings-set', { parts })
}
