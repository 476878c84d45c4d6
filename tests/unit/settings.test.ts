import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Config } from '../../src/config/schema'
import { resolveSettings } from '../../src/config/settings'

describe('settings', () => {
  test('have the defaults of the document', () => {
    const { settings, origins, warnings } = resolveSettings({}, {})
    assert.deepEqual(settings, {
      path: '', apiKey: '', dataDir: './data', uploadDir: './uploads', maxUploadSize: 20971520, allowedExtensions: [],
      maxBodySize: 10485760, mediaTransport: 'path', selfUrl: '', chatApiTimeout: 10, chatApiMaxRetries: 2,
      chatRetryUnanswered: true, chatSendInterval: 0, chatQueueLimit: 1000, chatPauseAfter: 5, chatPauseTime: 60, recordRetention: 7,
      commandPrefix: '#', commandLength: 4, commandCallbackUrl: '',
    })
    assert.deepEqual(warnings, [])
    assert(origins.every(({ source }) => source === 'default'))
  })

  test('come from koishi.yml before the environment, and from the environment before the default', () => {
    const { settings, origins } = resolveSettings({ commandLength: 3 }, { COMMAND_LENGTH: '5', COMMAND_PREFIX: '/ ' })
    assert.equal(settings.commandLength, 3)
    assert.equal(settings.commandPrefix, '/ ')
    assert.deepEqual(origins.filter(({ source }) => source !== 'default').map(({ field, source }) => [field, source]), [
      ['commandPrefix', 'environment'],
      ['commandLength', 'koishi.yml'],
    ])
  })

  test('count as unset when blank, in both places', () => {
    const { settings, warnings } = resolveSettings({ apiKey: '', commandPrefix: ' ', maxUploadSize: null }, { WEBHOOK_API_KEY: 'k', MAX_UPLOAD_SIZE: ' ' })
    assert.equal(settings.apiKey, 'k')
    assert.equal(settings.commandPrefix, '#')
    assert.equal(settings.maxUploadSize, 20971520)
    assert.deepEqual(warnings, [])
  })

  const malformed: [string, string][] = [
    ['MAX_UPLOAD_SIZE', 'lots'], ['MAX_UPLOAD_SIZE', '-1'], ['MAX_UPLOAD_SIZE', '0'], ['MAX_UPLOAD_SIZE', '1.5'], ['MAX_UPLOAD_SIZE', '10MB'],
    ['CHAT_API_TIMEOUT', '-1'], ['CHAT_API_TIMEOUT', '0'], ['CHAT_API_TIMEOUT', 'NaN'], ['CHAT_API_TIMEOUT', '1e9'], ['CHAT_API_TIMEOUT', 'Infinity'],
    ['CHAT_API_MAX_RETRIES', '-1'], ['CHAT_API_MAX_RETRIES', '1.5'], ['CHAT_API_MAX_RETRIES', '1000'],
    ['COMMAND_LENGTH', '0'], ['COMMAND_LENGTH', '-4'], ['COMMAND_LENGTH', '0x10'],
    ['COMMAND_CALLBACK_URL', 'localhost:3000'], ['COMMAND_CALLBACK_URL', 'ftp://h/'], ['WEBHOOK_SELF_URL', 'http://'],
    ['MEDIA_TRANSPORT', 'pigeon'], ['WEBHOOK_PATH', '/a b'], ['WEBHOOK_PATH', '/:id'], ['MAX_BODY_SIZE', '999999999999'],
  ]
  for (const [variable, value] of malformed) {
    test(`fall back to the default for ${variable}=${value}, with a warning that names it`, () => {
      const { settings, warnings } = resolveSettings({}, { [variable]: value })
      assert.deepEqual(settings, resolveSettings({}, {}).settings)
      assert.equal(warnings.length, 1)
      assert.match(warnings[0] ?? '', new RegExp(`${variable} is malformed`))
    })
  }

  test('never show a secret in a warning', () => {
    const { warnings } = resolveSettings({ apiKey: ['s3cret'] }, {})
    assert.equal(warnings.length, 1)
    assert(!warnings.join().includes('s3cret'))
  })

  test('take fractions of seconds, lists in either form, and prefixes with or without slashes', () => {
    assert.equal(resolveSettings({}, { CHAT_API_TIMEOUT: '0.25' }).settings.chatApiTimeout, 0.25)
    assert.deepEqual(resolveSettings({}, { ALLOWED_EXTENSIONS: ' png, .JPG ,,tar.gz' }).settings.allowedExtensions, ['png', '.JPG', 'tar.gz'])
    assert.deepEqual(resolveSettings({ allowedExtensions: ['png'] }, {}).settings.allowedExtensions, ['png'])
    assert.deepEqual(resolveSettings({ allowedExtensions: 'png,gif' }, {}).settings.allowedExtensions, ['png', 'gif'])
    for (const path of ['relay/v1', '/relay/v1', '/relay/v1/']) assert.equal(resolveSettings({ path }, {}).settings.path, '/relay/v1')
  })
})

describe('the schema', () => {
  test('lets malformed values pass to the reader, so that the bot starts', () => {
    assert.deepEqual(Object.assign({}, Config({ maxUploadSize: 'lots', commandLength: 0 })), { maxUploadSize: 'lots', commandLength: 0 })
  })

  test('adds no defaults, which would hide the environment', () => {
    assert.deepEqual(Object.assign({}, Config({})), {})
  })

  test('describes every field in both languages', () => {
    const described: unknown[] = []
    for (const group of Config.list ?? []) {
      for (const [field, { meta }] of Object.entries(group.dict ?? {})) described.push([field, Object.keys(meta.description ?? {}).sort()])
    }
    const fields = resolveSettings({}, {}).origins.map(({ field }) => field)
    assert.deepEqual(described.map(entry => JSON.stringify(entry)).sort(), fields.map(field => JSON.stringify([field, ['en-US', 'zh-CN']])).sort())
  })
})
