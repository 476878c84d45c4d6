import { Schema } from 'koishi'
import { isDeepStrictEqual } from 'node:util'
import enUS from '../locales/en-US.yml'
import zhCN from '../locales/zh-CN.yml'
import { isSet, resolveSettings, type MediaTransport, type Origin } from './settings'
import { groups, table } from './table'

/**
 * The plugin's part of koishi.yml. Every field may be left out: its environment variable, and then its default, takes its
 * place. A blank text counts as left out. A malformed value is named in a warning and the default is used, unless its field says
 * otherwise.
 */
export interface Config {
  /** Prefix of all paths, such as `/relay`. Variable `WEBHOOK_PATH`; default: none. */
  path?: string
  /**
   * The key that callers send. Variable `WEBHOOK_API_KEY`; default: a new one at each start, written to the file `api-key` in
   * `dataDir`.
   */
  apiKey?: string
  /**
   * Further keys, each an object with `name`, `key` and what it may do (`docs/security.md`), or the JSON of this list. Variable
   * `WEBHOOK_KEYS`, as JSON; default: none.
   */
  keys?: readonly unknown[] | string
  /**
   * Names for targets: each leads to a target such as `group:123456`, to a list of targets, or to `{to, platform, selfId}`. Variable
   * `WEBHOOK_TARGETS`, as JSON; default: none.
   */
  targets?: Readonly<Record<string, unknown>> | string
  /**
   * How many proxies requests come through, each of which adds an entry to `X-Forwarded-For`; from 0 to 100. Variable `TRUSTED_PROXIES`;
   * default 0.
   */
  trustedProxies?: number
  /** Largest body of `POST /webhook`: bytes, or a text such as `'10MB'`; at most 256 MiB. Variable `MAX_BODY_SIZE`; default 10 MiB. */
  maxBodySize?: number | string
  /** Folder for what must outlive a restart, relative to the app's `baseDir`. Variable `DATA_DIR`; default `./data`. */
  dataDir?: string
  /**
   * Folder for uploaded files, which are removed after 24 hours; relative to the app's `baseDir`. Variable `UPLOAD_DIR`; default
   * `./uploads`.
   */
  uploadDir?: string
  /** Largest uploaded file: bytes, or a text such as `'20MB'`. Variable `MAX_UPLOAD_SIZE`; default 20 MiB. */
  maxUploadSize?: number | string
  /**
   * Extensions of files that may be uploaded, as a list or a text with commas. Variable `ALLOWED_EXTENSIONS`; default: none, and
   * all are allowed.
   */
  allowedExtensions?: string[] | string
  /**
   * How an uploaded file reaches the platform: `path` when both see the same disk, otherwise `base64` or `url`. Variable
   * `MEDIA_TRANSPORT`; default `path`.
   */
  mediaTransport?: MediaTransport
  /**
   * Address of the server as the platform reaches it, without `path`; for `mediaTransport: 'url'`. Variable `WEBHOOK_SELF_URL`;
   * default: that of the server plugin.
   */
  selfUrl?: string
  /**
   * Hosts, as a list or a text with commas, from which pictures that a hook links to are shown; of others the link is shown as text.
   * Variable `PICTURE_HOSTS`; default: none.
   */
  pictureHosts?: string[] | string
  /** How long one call to the platform or to the callback may take, in seconds. Variable `CHAT_API_TIMEOUT`; default 10. */
  chatApiTimeout?: number
  /** How often a failed call to the platform is repeated, from 0 to 100. Variable `CHAT_API_MAX_RETRIES`; default 2. */
  chatApiMaxRetries?: number
  /**
   * How long a call without an answer may still be carried out, in seconds; nothing is sent again before. Variable `CHAT_SETTLE_TIME`;
   * default 30.
   */
  chatSettleTime?: number
  /**
   * Whether a call that the platform did not answer is repeated when its history cannot tell whether the message arrived.
   * Variable `CHAT_RETRY_UNANSWERED`; default true.
   */
  chatRetryUnanswered?: boolean
  /** Least time between two messages to the same target, in seconds. Variable `CHAT_SEND_INTERVAL`; default 0. */
  chatSendInterval?: number
  /** How many requests may wait for the same target, from 0 to 1000000. Variable `CHAT_QUEUE_LIMIT`; default 1000. */
  chatQueueLimit?: number
  /** After how many failures in a row sending to a target is paused. Variable `CHAT_PAUSE_AFTER`; default 5. */
  chatPauseAfter?: number
  /** How long it is paused, in seconds. Variable `CHAT_PAUSE_TIME`; default 60. */
  chatPauseTime?: number
  /** How long delivery records are kept in the database, in days, from 1 to 3650. Variable `RECORD_RETENTION`; default 7. */
  recordRetention?: number
  /**
   * How many records the database keeps of what was sent without a key, and as many of the rest, from 1 to 10000000. Variable
   * `RECORD_LIMIT`; default 100000.
   */
  recordLimit?: number
  /**
   * How much the records keep of what was to be sent: how it begins, and all of it until it is delivered (`preview`); all of it (`full`);
   * its kinds and sizes (`none`). Variable `RECORD_CONTENT`; default `preview`.
   */
  recordContent?: 'preview' | 'full' | 'none'
  /**
   * Whom the relay tells of targets that are paused, bots that are offline and messages that expire: a target such as `group:123456`, a
   * name for one, several of them with commas, or an http(s) address that gets it as JSON. Variable `ALERT_TO`; default: nobody.
   */
  alertTo?: string
  /** Address to which commands are posted. Variable `COMMAND_CALLBACK_URL`; default: none, and nothing is listened for. */
  commandCallbackUrl?: string
  /** What a command begins with. Variable `COMMAND_PREFIX`; default `#`. */
  commandPrefix?: string
  /** Number of characters of a command name, from 1 to 1000. Variable `COMMAND_LENGTH`; default 4. */
  commandLength?: number
  /**
   * What the posts to the callback are signed with: `whsec_` and then base64, or any other text. Variable `COMMAND_CALLBACK_SECRET`;
   * default: none, and they are not signed. With a malformed one no command is posted.
   */
  commandCallbackSecret?: string
  /** Whether a callback that answers 503, or not at all, is asked once more. Variable `COMMAND_CALLBACK_RETRY`; default false. */
  commandCallbackRetry?: boolean
}

/**
 * Makes the schema of the config page. Each field shows what holds while it is empty: the variable, else the default.
 *
 * A field is a union of its control, which has that value as its default, and of anything else. The page shows the default
 * of the only visible member of a union, but where a field is missing a union without a default of its own adds nothing to
 * the configuration. So `resolveSettings` can tell what stands in koishi.yml, and a malformed value reaches it and does not
 * keep the bot from starting.
 */
export function createSchema(environment: Readonly<Partial<Record<string, string>>>): Schema<Config> {
  const { origins } = resolveSettings({}, environment)
  return Schema.intersect(groups.map(group => Schema.object(Object.fromEntries(
    origins.filter(({ field }) => group.includes(field)).map(origin => [origin.field, createField(origin)]),
  )))).i18n({ 'en-US': enUS, 'zh-CN': zhCN })
}

function createField({ field, value, shown }: Origin): Schema {
  const { control, others = [], parse } = table[field]
  // Of an address that may hold secrets only a part is shown, and a part is not what holds.
  const isWhole = isSet(shown) && isDeepStrictEqual(parse(shown), value)
  return Schema.union([isWhole ? control.default(shown) : control, ...others, Schema.any().hidden()])
}

/** The schema for the environment that the plugin was loaded in. */
export const Config: Schema<Config> = createSchema(process.env)
