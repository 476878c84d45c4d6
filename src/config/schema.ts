import { Schema } from 'koishi'
import { isDeepStrictEqual } from 'node:util'
import { isSet } from '../lib/words'
import enUS from '../locales/en-US.yml'
import zhCN from '../locales/zh-CN.yml'
import { resolveSettings, type Environment, type Origin } from './settings'
import { groups, table, type Settings } from './table'

/** A setting in koishi.yml: always also possible as a text, as in an environment variable. */
type Written<T> = T extends string | undefined ? T : T | string

/**
 * The plugin's part of koishi.yml; `docs/settings.md` describes the fields. An absent or blank field has the value of its environment
 * variable, or else its default. A malformed one has its default, with a warning, unless the table says otherwise.
 */
export type Config = { [Name in keyof Settings]?: Written<Settings[Name]> } & {
  /** Whether the config page shows the advanced settings. */
  advanced?: boolean
}

/**
 * Creates the schema of the config page. An empty field shows the effective value: the variable, or else the default. The switch `advanced`
 * only shows the advanced fields, which few bots need.
 *
 * A field is a union of its control, with the effective value as default, and a hidden `any`. The page shows the default of the only
 * visible member of a union, but a union without a default of its own adds nothing to the configuration. So `resolveSettings` gets exactly
 * the values in koishi.yml, and the bot starts even with a malformed value.
 */
export function createSchema(environment: Environment): Schema<Config> {
  const { origins } = resolveSettings({}, environment)
  const fields = groups.map(group => Object.fromEntries(
    origins.filter(({ field }) => group.includes(field)).map(origin => [origin.field, createField(origin)]),
  ))
  const advanced = fields.pop() ?? {}
  const hidden = Object.fromEntries(Object.entries(advanced).map(([field, schema]) => [field, schema.hidden()]))
  const parts: Schema<Record<string, unknown>>[] = [
    ...fields.map(group => Schema.object(group)),
    Schema.object({ advanced: Schema.boolean() }),
    // The page shows the first schema that accepts the configuration. The hidden fields keep their values when `advanced` is switched off.
    Schema.union([Schema.object({ advanced: Schema.const(true).required(), ...advanced }), Schema.object(hidden)]),
  ]
  return Schema.intersect(parts).i18n({ 'en-US': enUS, 'zh-CN': zhCN })
}

function createField({ field, value, shown }: Origin): Schema {
  const { control, others = [], parse } = table[field]
  // A partly hidden value, such as an address with a secret, is not shown as the default.
  const isWhole = isSet(shown) && isDeepStrictEqual(parse(shown), value)
  return Schema.union([isWhole ? control.default(shown) : control, ...others, Schema.any().hidden()])
}

/** The text above the config page. It is in both languages, because Koishi does not translate it. */
export const usage = `
把其他程序通过 HTTP 发来的消息送到聊天里。所有设置都可以不填，先打开[“消息转发”页面](/message-relay)：选择群，创建密钥，复制命令。

Sends what other programs post over HTTP to chats. Every setting may stay empty: open [the page of the relay](/message-relay) first, choose a
group, create a key and copy the command.
`

/** The schema for the environment of the process. */
export const Config: Schema<Config> = createSchema(process.env)
