import {
  accounts, baseUrl, choice, commandTable, dictionary, flag, httpUrl, integer, keyTable, language, list, oneOf, platformFlags,
  recipients, routePrefix, seconds, secret, signingSecret, size, targetTable, text, verbatim, type Kind,
} from './kinds'
import { longTexts } from '../message/model'
import { say, type Text } from '../texts/text'

/** One setting. */
export interface Field<T> extends Kind<T> {
  /** The environment variable. */
  variable: string
  /** The default; an empty text, list or dictionary stands for none. */
  fallback: T
  /** The replacement of a malformed value if the default would not be safe, and its consequence, for the warning. */
  refusal?: { value: T, consequence: Text }
}

function field<T>(variable: string, fallback: NoInfer<T>, kind: Kind<T>, refusal?: Field<NoInfer<T>>['refusal']): Field<T> {
  return { variable, fallback, ...kind, ...refusal && { refusal } }
}

const mebibyte = 1024 * 1024

const http = {
  path: field('WEBHOOK_PATH', '', routePrefix),
  apiKey: field('WEBHOOK_API_KEY', '', secret),
}

const files = {
  dataDir: field('DATA_DIR', './data', text),
  maxUploadSize: field('MAX_UPLOAD_SIZE', 20 * mebibyte, size(1)),
  mediaTransport: field('MEDIA_TRANSPORT', 'path', oneOf('path', 'base64', 'url')),
  selfUrl: field('WEBHOOK_SELF_URL', '', baseUrl),
}

const sending = {
  language: field('LANGUAGE', '', language),
  chatSendInterval: field('CHAT_SEND_INTERVAL', 0, seconds(0)),
  chatAccountInterval: field('CHAT_ACCOUNT_INTERVAL', 0, seconds(0)),
  longText: field('LONG_TEXT', '', choice(...longTexts)),
  alertTo: field('ALERT_TO', [], recipients),
}

const commands = {
  commandCallbackUrl: field('COMMAND_CALLBACK_URL', '', httpUrl),
  commandPrefix: field('COMMAND_PREFIX', '#', verbatim),
  commandCallbackSecret: field('COMMAND_CALLBACK_SECRET', '', signingSecret, {
    value: undefined, consequence: say('no-command-until-fixed'),
  }),
  chatCommands: field('CHAT_COMMANDS', false, flag),
  chatOperators: field('CHAT_OPERATORS', [], accounts),
}

/** Settings that few bots need, and those that are easier to make on the page of the relay. The config page shows them only on request. */
const advanced = {
  keys: field('WEBHOOK_KEYS', [], keyTable),
  targets: field('WEBHOOK_TARGETS', {}, targetTable),
  commands: field('COMMANDS', [], commandTable, { value: undefined, consequence: say('no-command-until-fixed') }),
  people: field('WEBHOOK_PEOPLE', {}, dictionary),
  rotas: field('WEBHOOK_ROTAS', {}, dictionary),
  beats: field('WEBHOOK_BEATS', {}, dictionary),
  incidentCallbackUrl: field('INCIDENT_CALLBACK_URL', '', httpUrl),
  incidentCallbackSecret: field('INCIDENT_CALLBACK_SECRET', '', signingSecret, {
    value: undefined, consequence: say('no-incident-until-fixed'),
  }),
  trustedProxies: field('TRUSTED_PROXIES', 0, integer(0, 100)),
  maxBodySize: field('MAX_BODY_SIZE', 10 * mebibyte, size(1, 256 * mebibyte)),
  uploadDir: field('UPLOAD_DIR', './uploads', text),
  allowedExtensions: field('ALLOWED_EXTENSIONS', [], list),
  pictureHosts: field('PICTURE_HOSTS', [], list),
  chatApiTimeout: field('CHAT_API_TIMEOUT', 10, seconds()),
  chatApiMaxRetries: field('CHAT_API_MAX_RETRIES', 2, integer(0, 100)),
  chatSettleTime: field('CHAT_SETTLE_TIME', 30, seconds(0)),
  chatRetryUnanswered: field('CHAT_RETRY_UNANSWERED', {}, platformFlags),
  chatQueueLimit: field('CHAT_QUEUE_LIMIT', 1000, integer(0, 1_000_000)),
  chatPauseAfter: field('CHAT_PAUSE_AFTER', 5, integer(1)),
  chatPauseTime: field('CHAT_PAUSE_TIME', 60, seconds()),
  backlogDigest: field('BACKLOG_DIGEST', 5, integer(0, 10_000)),
  recordRetention: field('RECORD_RETENTION', 7, integer(1, 3650)),
  recordLimit: field('RECORD_LIMIT', 100_000, integer(1, 10_000_000)),
  recordContent: field('RECORD_CONTENT', 'preview', oneOf('preview', 'full', 'none')),
  commandLength: field('COMMAND_LENGTH', 4, integer(1, 1000)),
  commandCallbackRetry: field('COMMAND_CALLBACK_RETRY', false, flag),
}

const all = { ...http, ...files, ...sending, ...commands, ...advanced }

/** The effective settings; an empty text, list or dictionary stands for none, `undefined` for a refused value. */
export type Settings = { [Name in keyof typeof all]: (typeof all)[Name]['fallback'] }

/** All settings in the order of the config page, with variable, default and kind. Schema, parser and documents follow this table. */
export const table: { readonly [Name in keyof Settings]: Field<Settings[Name]> } = all

const isName = (name: string): name is keyof Settings => Object.hasOwn(all, name)

/** The names of the settings in each group of the config page, the advanced group last. The texts in `locales/` have the same order. */
export const groups = [http, files, sending, commands, advanced].map(group => Object.keys(group).filter(isName))
