import { isDeepStrictEqual } from 'node:util'
import { groups, table, type Settings } from './table'

export type { Settings } from './table'

/** How an uploaded file reaches the platform: as a path, within the message, or as a link. */
export type MediaTransport = Settings['mediaTransport']

/** Where one effective setting came from. */
export interface Origin {
  field: keyof Settings
  /** The environment variable that sets it. */
  variable: string
  source: 'koishi.yml' | 'environment' | 'default'
  value: unknown
  /** What of the value may be shown; `undefined` for a secret. */
  shown: unknown
}

/** What koishi.yml says of the settings, not yet read. */
export type RawSettings = Readonly<Partial<Record<keyof Settings, unknown>>>

/**
 * Works out the effective settings: a value in koishi.yml, then the environment variable, then the default. A blank value
 * counts as unset; a malformed one is named in a warning, without its content, and the default is used, or what the table says instead.
 *
 * @returns the settings; where each came from, in the order of the config page; the warnings, one a line of the log
 */
export function resolveSettings(config: RawSettings, environment: Readonly<Partial<Record<string, string>>>) {
  const settings: Partial<Settings> = {}
  const origins: Origin[] = []
  const warnings: string[] = []

  function resolve<Name extends keyof Settings>(field: Name, into: Partial<Pick<Settings, Name>>): void {
    const { variable, fallback, parse, show, refusal = { value: fallback, consequence: 'the default is used' } } = table[field]
    const fromFile = isSet(config[field])
    const raw: unknown = fromFile ? config[field] : environment[variable]
    const parsed = isSet(raw) ? parse(raw) : undefined
    const isMalformed = isSet(raw) && parsed === undefined
    if (isMalformed) warnings.push(`${fromFile ? `${field} in koishi.yml` : `the variable ${variable}`} is malformed: ${refusal.consequence}`)
    const value = parsed ?? (isMalformed ? refusal.value : fallback)
    const source = parsed === undefined ? 'default' : fromFile ? 'koishi.yml' : 'environment'
    into[field] = value
    origins.push({ field, variable, source, value, shown: show(value) })
  }

  for (const field of groups.flat()) resolve(field, settings)
  if (!isComplete(settings)) throw new TypeError('a setting is in no group of the table')
  return { settings, origins, warnings }
}

function isComplete(settings: Partial<Settings>): settings is Settings {
  return Object.keys(table).every(field => field in settings)
}

/**
 * One line for the log: the settings that differ from their defaults, and where each came from. Of a secret it says only that
 * there is one, and of an address that is posted to its origin.
 */
export function describeSettings(origins: readonly Origin[]): string {
  const different = origins.filter(({ field, source, value }) => source !== 'default' && !isDeepStrictEqual(value, table[field].fallback))
  if (different.length === 0) return 'settings: all have their defaults'
  return `settings: ${different.map(describe).join(', ')}; all others have their defaults`
}

function describe({ field, variable, source, shown }: Origin): string {
  return `${field}${shown === undefined ? '' : ` = ${JSON.stringify(shown)}`} (${source === 'environment' ? variable : source})`
}

/** Whether something stands there: neither nothing nor white space alone. */
export function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && !(typeof value === 'string' && value.trim() === '')
}
