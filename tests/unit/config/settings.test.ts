import { Schema } from 'koishi'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Config } from '../../../src'
import { createSchema } from '../../../src/config/schema'
import { describeSettings, resolveSettings } from '../../../src/config/settings'
import { groups, type Settings } from '../../../src/config/table'
import enUS from '../../../src/locales/en-US.yml'
import zhCN from '../../../src/locales/zh-CN.yml'

/** Sizes as they may be written, and how many bytes they are. */
const sizes: [unknown, number][] = [
  [1234, 1234], ['1234', 1234], ['1234B', 1234], ['1234 b', 1234], ['1e3', 1000], ['20MB', 20971520], [' 20 mib ', 20971520], ['20m', 20971520],
  ['512k', 524288], ['512KB', 524288], ['512KiB', 524288], ['1.5 GiB', 1610612736], ['.5g', 536870912], ['1.1KB', 1126],
]

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** What the loader hands to the plugin for its part of koishi.yml. */
function load(config: object, environment = {}): object {
  return Object.assign({}, createSchema(environment)(config))
}

describe('settings', () => {
  test('have their defaults when nothing is set', () => {
    const { settings, origins, warnings } = resolveSettings({}, {})
    assert.deepEqual(settings, {
      path: '', apiKey: '', keys: [], targets: {}, trustedProxies: 0, dataDir: './data', uploadDir: './uploads', maxUploadSize: 20971520, allowedExtensions: [],
      maxBodySize: 10485760, mediaTransport: 'path', selfUrl: '', pictureHosts: [], chatApiTimeout: 10, chatApiMaxRetries: 2,
      chatSettleTime: 30, chatRetryUnanswered: {},
      chatSendInterval: 0, chatAccountInterval: 0, longText: '', chatQueueLimit: 1000, chatPauseAfter: 5, chatPauseTime: 60, backlogDigest: 5, recordRetention: 7, recordLimit: 100_000, recordContent: 'preview', alertTo: [], language: '',
      commands: [], commandPrefix: '#', commandLength: 4, commandCallbackUrl: '', commandCallbackSecret: '', commandCallbackRetry: false,
      chatCommands: false, chatOperators: [],
      people: {}, rotas: {}, beats: {}, incidentCallbackUrl: '', incidentCallbackSecret: '',
    })
    assert.deepEqual(warnings, [])
    assert(origins.every(({ source }) => source === 'default'))
  })

  test('come from koishi.yml before the environment, and from the environment before the default, but for what is blank', () => {
    const { settings, origins, warnings } = resolveSettings(
      { commandLength: 3, apiKey: '', maxUploadSize: null, commandPrefix: ' ' },
      { COMMAND_LENGTH: '5', COMMAND_PREFIX: '/ ', WEBHOOK_API_KEY: 'k', MAX_UPLOAD_SIZE: ' ' },
    )
    assert.deepEqual([settings.commandLength, settings.commandPrefix, settings.apiKey, settings.maxUploadSize], [3, '/ ', 'k', 20971520])
    assert.deepEqual(origins.filter(({ source }) => source !== 'default').map(({ field, source }) => [field, source]), [
      ['apiKey', 'environment'], ['commandPrefix', 'environment'], ['commandLength', 'koishi.yml'],
    ])
    assert.deepEqual(warnings, [])
  })

  test('know a platform by its other name', () => {
    assert.deepEqual(resolveSettings({ chatRetryUnanswered: { feishu: true } }, {}).settings.chatRetryUnanswered, { lark: true })
  })

  const malformed: [string, string][] = [
    ['MAX_UPLOAD_SIZE', 'lots'], ['MAX_UPLOAD_SIZE', '-1'], ['MAX_UPLOAD_SIZE', '0'], ['MAX_UPLOAD_SIZE', '1.5'], ['MAX_UPLOAD_SIZE', '10TB'],
    ['MAX_UPLOAD_SIZE', 'MB'], ['MAX_UPLOAD_SIZE', '1 2MB'], ['MAX_UPLOAD_SIZE', '10 megabytes'], ['MAX_UPLOAD_SIZE', '0.1B'],
    ['MAX_UPLOAD_SIZE', '0.0001K'], ['MAX_BODY_SIZE', '257MB'], ['MAX_BODY_SIZE', '-1MB'], ['CHAT_PAUSE_TIME', '0'], ['CHAT_SEND_INTERVAL', '-1'],
    ['CHAT_API_TIMEOUT', '-1'], ['CHAT_API_TIMEOUT', '0'], ['CHAT_API_TIMEOUT', 'NaN'], ['CHAT_API_TIMEOUT', '1e9'], ['CHAT_API_TIMEOUT', 'Infinity'],
    ['CHAT_API_MAX_RETRIES', '-1'], ['CHAT_API_MAX_RETRIES', '1.5'], ['CHAT_API_MAX_RETRIES', '1000'],
    ['COMMAND_LENGTH', '0'], ['COMMAND_LENGTH', '-4'], ['COMMAND_LENGTH', '0x10'],
    ['COMMAND_CALLBACK_URL', 'localhost:3000'], ['COMMAND_CALLBACK_URL', 'ftp://h/'], ['WEBHOOK_SELF_URL', 'http://'],
    ['MEDIA_TRANSPORT', 'pigeon'], ['WEBHOOK_KEYS', '{}'], ['WEBHOOK_KEYS', '[{'], ['WEBHOOK_TARGETS', '[]'], ['WEBHOOK_TARGETS', 'ops'],
    ['TRUSTED_PROXIES', '-1'], ['TRUSTED_PROXIES', 'all'], ['WEBHOOK_PATH', '/a b'], ['WEBHOOK_PATH', '/:id'], ['MAX_BODY_SIZE', '999999999999'],
  ]
  test('fall back to the default where they are malformed, with a warning that names the variable', () => {
    for (const [variable, value] of malformed) {
      const { settings, warnings } = resolveSettings({}, { [variable]: value })
      assert.deepEqual(settings, resolveSettings({}, {}).settings)
      assert.equal(warnings.length, 1)
      assert.match(String(warnings[0]), new RegExp(`${variable} is malformed, it must be `))
    }
  })

  test('name their bounds in a warning', () => {
    const rules = Object.entries({
      CHAT_SETTLE_TIME: ['-1', 'a number of seconds from 0 to 2147483'], CHAT_PAUSE_TIME: ['0', 'a number of seconds from 0.001 to 2147483'],
      CHAT_PAUSE_AFTER: ['0', 'a whole number of at least 1'], COMMAND_LENGTH: ['0', 'a whole number from 1 to 1000'],
      MAX_BODY_SIZE: ['1GB', 'a size such as 512KB or 20MB, from 1 B to 256 MB'], MEDIA_TRANSPORT: ['pigeon', 'one of path, base64, url'],
    })
    for (const [variable, [value, rule]] of rules) {
      assert.deepEqual(resolveSettings({}, { [variable]: value }).warnings.map(String), [`the variable ${variable} is malformed, it must be ${rule}: the default is used`])
    }
  })

  test('never show a secret in a warning', () => {
    const config = { apiKey: ['s3cret'], keys: { key: 's3cret' }, commandCallbackSecret: 'whsec_s3cret' }
    const { warnings } = resolveSettings(config, { WEBHOOK_KEYS: 's3cret' })
    assert.equal(warnings.length, 3)
    assert(!warnings.join().includes('s3cret'))
  })

  test('take keys and targets as they are, and as JSON', () => {
    const keys = [{ name: 'ci', key: 'the-secret-of-ci', targets: ['ops'] }, 7]
    const targets = { ops: 'group:1', both: ['group:1', 'private:2'] }
    for (const { settings } of [
      resolveSettings({ keys, targets }, {}),
      resolveSettings({ keys: JSON.stringify(keys), targets: JSON.stringify(targets) }, {}),
      resolveSettings({}, { WEBHOOK_KEYS: JSON.stringify(keys), WEBHOOK_TARGETS: JSON.stringify(targets) }),
      resolveSettings(load({ keys, targets }), {}),
    ]) assert.deepEqual({ keys: settings.keys, targets: settings.targets }, { keys, targets })
  })

  test('do not fall back to commands without a signature when their secret is malformed', () => {
    for (const [config, environment, place] of [
      [{ commandCallbackSecret: 'whsec_s3cret!' }, { COMMAND_CALLBACK_SECRET: 'a good one' }, 'commandCallbackSecret in koishi.yml'],
      [{ commandCallbackSecret: 12345678 }, {}, 'commandCallbackSecret in koishi.yml'],
      [{}, { COMMAND_CALLBACK_SECRET: 'whsec_' }, 'the variable COMMAND_CALLBACK_SECRET'],
    ] as const) {
      const { settings, warnings, origins } = resolveSettings(config, environment)
      assert.equal(settings.commandCallbackSecret, undefined)
      assert.deepEqual(warnings.map(String), [`${place} is malformed, it must be whsec_ and base64, or any other text: no command is posted until it is fixed`])
      assert.equal(String(describeSettings(origins)), 'settings: all have their defaults')
    }
    for (const secret of ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'any text, é']) {
      assert.equal(resolveSettings({ commandCallbackSecret: ` ${secret}\n` }, {}).settings.commandCallbackSecret, secret)
    }
  })

  test('take a size in each of its forms', () => {
    for (const [written, bytes] of sizes) {
      assert.equal(resolveSettings({ maxUploadSize: written }, {}).settings.maxUploadSize, bytes)
      assert.equal(resolveSettings(load({ maxUploadSize: written }), {}).settings.maxUploadSize, bytes)
      assert.deepEqual(resolveSettings({}, { MAX_UPLOAD_SIZE: String(written) }), {
        ...resolveSettings({}, { MAX_UPLOAD_SIZE: String(bytes) }), warnings: [],
      })
    }
  })

  test('take a language, and that of the system in the variable for none', () => {
    for (const [written, expected] of [['en-US', 'en-US'], ['ZH-cn', 'zh-CN'], ['en_US:en', ''], ['C', ''], ['', '']] as const) {
      const { settings, warnings } = resolveSettings({}, { LANGUAGE: written })
      assert.deepEqual([settings.language, warnings], [expected, []], written)
    }
    assert.deepEqual(resolveSettings({ language: 7 }, {}).warnings.map(String), ['language in koishi.yml is malformed, it must be zh-CN or en-US: the default is used'])
  })

  test('take fractions of seconds, lists in either form, and prefixes with or without slashes', () => {
    assert.equal(resolveSettings({}, { CHAT_API_TIMEOUT: '0.25' }).settings.chatApiTimeout, 0.25)
    assert.equal(resolveSettings({}, { CHAT_SETTLE_TIME: '0' }).settings.chatSettleTime, 0)
    assert.equal(resolveSettings(load({ chatSettleTime: 0 }), {}).settings.chatSettleTime, 0)
    assert.deepEqual(resolveSettings({}, { ALLOWED_EXTENSIONS: ' png, .JPG ,,tar.gz' }).settings.allowedExtensions, ['png', '.JPG', 'tar.gz'])
    assert.deepEqual(resolveSettings({ allowedExtensions: ['png'] }, {}).settings.allowedExtensions, ['png'])
    assert.deepEqual(resolveSettings({ allowedExtensions: 'png,gif' }, {}).settings.allowedExtensions, ['png', 'gif'])
    assert.deepEqual(resolveSettings({ allowedExtensions: ['log', 1] }, {}).settings.allowedExtensions, ['log', '1'])
    for (const path of ['relay/v1', '/relay/v1', '/relay/v1/']) assert.equal(resolveSettings({ path }, {}).settings.path, '/relay/v1')
  })
})

describe('the line in the log', () => {
  const line = (config: Config, environment = {}): string => describeSettings(resolveSettings(config, environment).origins).toString()

  test('names those that differ from their defaults, in the order of the config page, with where each came from', () => {
    assert.equal(line({ commandLength: 4, maxUploadSize: '20MB' }, { COMMAND_PREFIX: '#' }), 'settings: all have their defaults')
    assert.equal(
      line({ commandLength: 3, maxUploadSize: 1536 }, { COMMAND_LENGTH: '5', COMMAND_PREFIX: '/ ', MAX_BODY_SIZE: '512k' }),
      'settings: maxUploadSize = "1536 B" (koishi.yml), commandPrefix = "/ " (COMMAND_PREFIX), '
      + 'maxBodySize = "512 KB" (MAX_BODY_SIZE), commandLength = 3 (koishi.yml); all others have their defaults',
    )
  })

  test('holds neither the key nor what may be secret in an address', () => {
    assert.equal(
      line(
        { commandCallbackUrl: 'http://u:secret@h/secret?token=secret#secret', alertTo: 'https://hooks.example.com:8443/services/secret' },
        {
          WEBHOOK_API_KEY: 'secret', WEBHOOK_KEYS: '[{"name":"ci","key":"secret"}]', WEBHOOK_SELF_URL: 'https://secret@h/x/',
          COMMAND_CALLBACK_SECRET: 'secret',
        },
      ),
      'settings: apiKey (WEBHOOK_API_KEY), selfUrl = "https://h/x" (WEBHOOK_SELF_URL), alertTo = ["https://hooks.example.com:8443"] (koishi.yml), '
      + 'commandCallbackUrl = "http://h" (koishi.yml), '
      + 'commandCallbackSecret (COMMAND_CALLBACK_SECRET), keys (WEBHOOK_KEYS); all others have their defaults',
    )
    assert.match(line({ alertTo: 'group:1, ops' }), / alertTo = \["group:1, ops"\] /)
    assert.match(line({ alertTo: 'ops, https://h/secret' }), / alertTo \(koishi\.yml\);/)
  })
})

/** The fields of each part of the config page; of a union, those of its first member. */
function fieldsOf(schema: Schema<Config>): [string, Schema][] {
  return (schema.list ?? []).flatMap(({ type, dict, list: [first] = [] }) => Object.entries((type === 'union' ? first?.dict : dict) ?? {}))
}

/** The control of each setting on the config page: the visible member of its union. */
function controls(schema: Schema<Config>): Map<string, Schema> {
  return new Map(fieldsOf(schema).filter(([field]) => field !== 'advanced').map(([field, { type, meta, list = [] }]) => {
    assert.equal(type, 'union')
    // The page shows the default of the member only when the union has none and all others are hidden or transformations.
    assert.equal(meta.default, undefined)
    const [control, ...others] = list.filter(member => !member.meta.hidden && member.type !== 'transform')
    assert(control && others.length === 0)
    return [field, control]
  }))
}

describe('the config page', () => {
  const defaultsOf = (schema: Schema<Config>) => Object.fromEntries([...controls(schema)].map(([field, { meta }]) => [field, meta.default]))
  const none = undefined
  const defaults = {
    path: none, apiKey: none, keys: [], targets: {}, trustedProxies: 0, maxBodySize: '10 MB', dataDir: './data', uploadDir: './uploads', maxUploadSize: '20 MB', allowedExtensions: [],
    mediaTransport: 'path', selfUrl: none, pictureHosts: [], chatApiTimeout: 10, chatApiMaxRetries: 2, chatSettleTime: 30, chatRetryUnanswered: {}, chatSendInterval: 0, chatAccountInterval: 0, longText: none,
    chatQueueLimit: 1000, chatPauseAfter: 5, chatPauseTime: 60, backlogDigest: 5, recordRetention: 7, recordLimit: 100_000, recordContent: 'preview', alertTo: [], language: none, commandCallbackUrl: none, commands: [], commandPrefix: '#', commandLength: 4,
    commandCallbackSecret: none, commandCallbackRetry: false,
    chatCommands: false, chatOperators: [],
    people: none, rotas: none, beats: none, incidentCallbackUrl: none, incidentCallbackSecret: none,
  }

  test('shows the default of each setting, and the variable where it is set to something', () => {
    assert.deepEqual(defaultsOf(createSchema({})), defaults)
    assert.deepEqual(defaultsOf(createSchema({
      WEBHOOK_PATH: 'relay/', MAX_UPLOAD_SIZE: '1536', ALLOWED_EXTENSIONS: 'png, jpg', CHAT_API_TIMEOUT: '0.5', CHAT_RETRY_UNANSWERED: 'no',
      COMMAND_CALLBACK_URL: 'http://h', COMMAND_PREFIX: ' ', COMMAND_LENGTH: 'many',
    })), {
      ...defaults, path: '/relay', maxUploadSize: '1536 B', allowedExtensions: ['png', 'jpg'], chatApiTimeout: 0.5, chatRetryUnanswered: false,
      commandCallbackUrl: 'http://h',
    })
  })

  test('is sent no secret: neither a key nor an address that holds one', () => {
    const schema = createSchema({
      WEBHOOK_API_KEY: 's3cret', WEBHOOK_KEYS: '[{"name":"ci","key":"s3cret"}]', WEBHOOK_SELF_URL: 'http://u:s3cret@h/',
      COMMAND_CALLBACK_URL: 'http://h/s3cret', COMMAND_CALLBACK_SECRET: 's3cret', ALERT_TO: 'https://h/services/s3cret',
    })
    const sent = JSON.stringify(schema.toJSON())
    assert(sent.includes('"20 MB"'))
    assert(!sent.includes('s3cret'), sent)
    assert.deepEqual(defaultsOf(schema), defaults)
  })

  test('takes what it shows: each default and each form of a size', () => {
    for (const [field, control] of controls(createSchema({}))) assert.deepEqual(control(control.meta.default), control.meta.default, field)
    const size = controls(createSchema({})).get('maxUploadSize')
    assert(size)
    for (const [written] of sizes) assert.equal(size(String(written)), String(written))
    assert.throws(() => size('lots'))
  })

  test('has a text for each field in both languages, which names its variable, and no others', () => {
    const { origins } = resolveSettings({}, {})
    for (const locale of [enUS, zhCN]) {
      const texts = Object.values(locale).filter(isRecord)
      const expected = [...groups.slice(0, -1), ['advanced'], ...groups.slice(-1)]
      assert.deepEqual(texts.map(group => Object.keys(group).filter(name => name !== '$desc').sort()), expected.map(group => [...group].sort()))
      const written = new Map(texts.flatMap(Object.entries).map(([field, text]) => [field, isRecord(text) ? text.$desc : text]))
      for (const { field, variable } of origins) assert.match(String(written.get(field)), new RegExp(`\\b${variable}\\b`))
    }
    const schema = createSchema({})
    const described = [...(schema.list ?? []).slice(0, -1), ...fieldsOf(schema).filter(([, { type }]) => type !== 'const').map(([, field]) => field)]
    assert.equal(described.length, groups.length + origins.length + 1)
    const columns = Object.values(controls(createSchema({})).get('keys')?.inner?.dict ?? {})
    assert.equal(columns.length, 9)
    for (const { meta } of [...described, ...columns]) assert.deepEqual(Object.keys(meta.description ?? {}).sort(), ['en-US', 'zh-CN'])
  })
})

test('the advanced settings are shown once they are asked for, and in force in any case', () => {
  const page = createSchema({}).list?.at(-1)
  assert.equal(page?.type, 'union')
  const [shown, hidden] = page.list ?? []
  assert.deepEqual(Object.keys(shown?.dict ?? {}), ['advanced', ...groups.at(-1) ?? []])
  assert(Object.values(hidden?.dict ?? {}).every(({ meta }) => meta.hidden))
  for (const config of [{ chatPauseAfter: 3 }, { advanced: true, chatPauseAfter: 3 }, { advanced: false, chatPauseAfter: 3 }]) {
    assert.deepEqual(load(config), config)
    assert.deepEqual(createSchema({}).simplify(config), config, 'saving keeps it')
    assert.equal(resolveSettings(load(config), {}).settings.chatPauseAfter, 3)
  }
})

type Same<A, B> = [A, B] extends [B, A] ? true : false

describe('the configuration', () => {
  test('stays as it is in koishi.yml: what the page shows is not added, so that variables are still looked at', () => {
    const keys = [{ name: 'ci', key: 'the-secret-of-ci' }, { name: 'ops', key: 'the-secret-of-ops', targets: 'group:1,ops', rate: 5 }]
    for (const config of [{}, { commandLength: 4 }, { keys }]) assert.deepEqual(load(config, { COMMAND_LENGTH: '5' }), config)
    const simplify = (config: Config): unknown => createSchema({ COMMAND_LENGTH: '5' }).simplify(config)
    assert.deepEqual(simplify({ commandLength: 5, maxUploadSize: '20 MB', allowedExtensions: [], mediaTransport: 'path' }), {})
    assert.deepEqual(simplify({ commandLength: 4, maxUploadSize: 1234, path: '/relay' }), { commandLength: 4, maxUploadSize: 1234, path: '/relay' })
  })

  test('lets malformed values pass to the reader, so that the bot starts', () => {
    const malformed = {
      maxUploadSize: 'lots', commandLength: 0, chatApiTimeout: 'soon', allowedExtensions: [true], mediaTransport: 'pigeon', apiKey: 1,
    }
    const { settings, warnings } = resolveSettings(load(malformed), {})
    assert.deepEqual(settings, resolveSettings({}, {}).settings)
    assert.deepEqual(warnings.map(warning => String(warning).split(' ')[0]).sort(), Object.keys(malformed).sort())
    assert(!/lots|soon|pigeon/.test(warnings.join()))
  })

  test('has the same fields as the settings, which are one themselves', () => {
    const isSame: Same<Exclude<keyof Config, 'advanced'>, keyof Settings> = true
    assert(isSame)
    const { settings, origins } = resolveSettings({}, {})
    const config: Config = settings
    assert.deepEqual(resolveSettings(load(config), {}).settings, settings)
    assert.deepEqual(origins.map(({ field }) => field), groups.flat())
  })
})
