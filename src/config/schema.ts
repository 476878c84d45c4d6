import { Schema } from 'koishi'
import { isDeepStrictEqual } from 'node:util'
import { isSet } from '../lib/words'
import enUS from '../locales/en-US.yml'
import zhCN from '../locales/zh-CN.yml'
import { resolveSettings, type Environment, type Origin } from './settings'
import { groups, table, type Settings } from './table'

/** A value as it may be written: every setting may also be a text, as in a variable. */
type Written<T> = T extends string | undefined ? T : T | string

/**
 * The plugin's part of koishi.yml; `docs/settings.md` describes the fields. A field that is left out or blank has the value of its
 * environment variable, or else its default. So has a malformed one, with a warning, unless the table says otherwise.
 */
export type Config = { [Name in keyof Settings]?: Written<Settings[Name]> } & {
  /** Whether the config page shows the advanced settings. */
  advanced?: boolean
}

/**
 * Makes the schema of the config page. Each empty field shows the effective value: the variable, or else the default. Those that few bots
 * need are shown once `advanced` is switched on, which changes nothing else.
 *
 * A field is a union of its control, which has that value as its default, and of anything else. The page shows the default of the only
 * visible member of a union, but a union without a default of its own adds nothing to the configuration. So `resolveSettings` sees what
 * koishi.yml holds, and a malformed value does not keep the bot from starting.
 */
export function createSchema(environment: Environment): Schema<Config> {
  const { origins } = resolveSettings({}, environment)
  const fields = groups.map(group => Object.fromEntries(
    origins.filter(({ field }) => group.includes(field)).map(origin => [origin.field, createField(origin)]),
  ))
  const advanced = fields.pop() ?? {}
  const hidden = Object.fromEntries(Object.entries(advanced).map(([field, schema]) => [field, schema.hidden()]))
  const parts: Schema<Record<string, unknown>>[] = [
    // Koishi shows the text above the settings in one language only, and the description of a field in that of the reader.
    Schema.object({ usage: Schema.never() }),
    ...fields.map(group => Schema.object(group)),
    Schema.object({ advanced: Schema.boolean() }),
    // The first that takes the configuration is shown. Without the hidden fields, switching them off would remove their values.
    Schema.union([Schema.object({ advanced: Schema.const(true).required(), ...advanced }), Schema.object(hidden)]),
  ]
  return Schema.intersect(parts).i18n({ 'en-US': enUS, 'zh-CN': zhCN })
}

function createField({ field, value, shown }: Origin): Schema {
  const { control, others = [], parse } = table[field]
  // The visible part of a secret address is not its value.
  const isWhole = isSet(shown) && isDeepStrictEqual(parse(shown), value)
  return Schema.union([isWhole ? control.default(shown) : control, ...others, Schema.any().hidden()])
}

/** The schema for the environment in which the plugin was loaded. */
export const Config: Schema<Config> = createSchema(process.env)
