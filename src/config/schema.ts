import { Schema } from 'koishi'
import enUS from '../locales/en-US.yml'
import zhCN from '../locales/zh-CN.yml'

/**
 * The plugin's part of koishi.yml. Every field may be left out: its environment variable and then its default take its
 * place. The values are not trusted here but read by `resolveSettings`, so that a malformed one is a warning and does not
 * keep the bot from starting.
 */
export interface Config {
  path?: unknown
  apiKey?: unknown
  dataDir?: unknown
  uploadDir?: unknown
  maxUploadSize?: unknown
  allowedExtensions?: unknown
  maxBodySize?: unknown
  mediaTransport?: unknown
  selfUrl?: unknown
  chatApiTimeout?: unknown
  chatApiMaxRetries?: unknown
  chatRetryUnanswered?: unknown
  chatSendInterval?: unknown
  chatQueueLimit?: unknown
  chatPauseAfter?: unknown
  chatPauseTime?: unknown
  recordRetention?: unknown
  commandPrefix?: unknown
  commandLength?: unknown
  commandCallbackUrl?: unknown
}

/** The field of the config page, and beside it whatever else stands in koishi.yml. */
function lenient(schema: Schema): Schema<unknown> {
  return Schema.union([schema, Schema.any().hidden()])
}

// No field has a default here: defaults would be written into koishi.yml, and then hide the environment variables.
export const Config: Schema<Config> = Schema.intersect([
  Schema.object({
    path: lenient(Schema.string()),
    apiKey: lenient(Schema.string().role('secret')),
    maxBodySize: lenient(Schema.natural().min(1)),
  }),
  Schema.object({
    dataDir: lenient(Schema.string()),
    uploadDir: lenient(Schema.string()),
    maxUploadSize: lenient(Schema.natural().min(1)),
    allowedExtensions: lenient(Schema.array(String).role('table')),
    mediaTransport: lenient(Schema.union(['path', 'base64', 'url'])),
    selfUrl: lenient(Schema.string().role('link')),
  }),
  Schema.object({
    chatApiTimeout: lenient(Schema.number().min(0)),
    chatApiMaxRetries: lenient(Schema.natural()),
    chatRetryUnanswered: lenient(Schema.boolean()),
    chatSendInterval: lenient(Schema.number().min(0)),
    chatQueueLimit: lenient(Schema.natural()),
    chatPauseAfter: lenient(Schema.natural().min(1)),
    chatPauseTime: lenient(Schema.number().min(0)),
    recordRetention: lenient(Schema.natural().min(1)),
  }),
  Schema.object({
    commandCallbackUrl: lenient(Schema.string().role('link')),
    commandPrefix: lenient(Schema.string()),
    commandLength: lenient(Schema.natural().min(1)),
  }),
]).i18n({ 'en-US': enUS, 'zh-CN': zhCN })
