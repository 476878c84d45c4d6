import { baseUrl, flag, httpUrl, integer, list, oneOf, routePrefix, seconds, secondsOrNone, text, verbatim, type Parser } from './parsers'
import type { Config } from './schema'

/** The effective settings; an empty text means that there is none. */
export type Settings = ReturnType<typeof resolveSettings>['settings']

/** How an uploaded file reaches the platform (contract, "Links"). */
export type MediaTransport = Settings['mediaTransport']

/** One effective setting, for the log. */
export interface Origin {
  field: keyof Config
  /** The environment variable that sets it. */
  variable: string
  source: 'koishi.yml' | 'environment' | 'default'
  value: unknown
}

/**
 * Works out the effective settings: a value in koishi.yml, then the environment variable, then the default. A blank value
 * counts as unset; a malformed one is named in a warning and the default is used (document, section 8; contract,
 * "Running it").
 */
export function resolveSettings(config: Config, environment: Readonly<Partial<Record<string, string>>>) {
  const warnings: string[] = []
  const origins: Origin[] = []

  function read<T>(field: keyof Config, variable: string, fallback: T, parse: Parser<T>): T {
    const fromFile = isSet(config[field])
    const raw: unknown = fromFile ? config[field] : environment[variable]
    const parsed = isSet(raw) ? parse(raw) : undefined
    if (isSet(raw) && parsed === undefined) {
      warnings.push(`${fromFile ? `${field} in koishi.yml` : `the variable ${variable}`} is malformed: the default is used`)
    }
    const value = parsed ?? fallback
    origins.push({ field, variable, value, source: parsed === undefined ? 'default' : fromFile ? 'koishi.yml' : 'environment' })
    return value
  }

  const settings = {
    path: read('path', 'WEBHOOK_PATH', '', routePrefix),
    apiKey: read('apiKey', 'WEBHOOK_API_KEY', '', text),
    dataDir: read('dataDir', 'DATA_DIR', './data', text),
    uploadDir: read('uploadDir', 'UPLOAD_DIR', './uploads', text),
    maxUploadSize: read('maxUploadSize', 'MAX_UPLOAD_SIZE', 20 * 1024 * 1024, integer(1)),
    allowedExtensions: read<string[]>('allowedExtensions', 'ALLOWED_EXTENSIONS', [], list),
    maxBodySize: read('maxBodySize', 'MAX_BODY_SIZE', 10 * 1024 * 1024, integer(1, 256 * 1024 * 1024)),
    mediaTransport: read<'path' | 'base64' | 'url'>('mediaTransport', 'MEDIA_TRANSPORT', 'path', oneOf('path', 'base64', 'url')),
    selfUrl: read('selfUrl', 'WEBHOOK_SELF_URL', '', baseUrl),
    chatApiTimeout: read('chatApiTimeout', 'CHAT_API_TIMEOUT', 10, seconds),
    chatApiMaxRetries: read('chatApiMaxRetries', 'CHAT_API_MAX_RETRIES', 2, integer(0, 100)),
    chatRetryUnanswered: read('chatRetryUnanswered', 'CHAT_RETRY_UNANSWERED', true, flag),
    chatSendInterval: read('chatSendInterval', 'CHAT_SEND_INTERVAL', 0, secondsOrNone),
    chatQueueLimit: read('chatQueueLimit', 'CHAT_QUEUE_LIMIT', 1000, integer(0, 1_000_000)),
    chatPauseAfter: read('chatPauseAfter', 'CHAT_PAUSE_AFTER', 5, integer(1)),
    chatPauseTime: read('chatPauseTime', 'CHAT_PAUSE_TIME', 60, seconds),
    recordRetention: read('recordRetention', 'RECORD_RETENTION', 7, integer(1, 3650)),
    commandPrefix: read('commandPrefix', 'COMMAND_PREFIX', '#', verbatim),
    commandLength: read('commandLength', 'COMMAND_LENGTH', 4, integer(1, 1000)),
    commandCallbackUrl: read('commandCallbackUrl', 'COMMAND_CALLBACK_URL', '', httpUrl),
  }
  return { settings, origins, warnings }
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && !(typeof value === 'string' && value.trim() === '')
}
