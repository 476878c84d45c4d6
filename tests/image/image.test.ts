import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { resolveSettings } from '../../src/config/settings'
import { record } from '../docs/support/json'
import { repository } from '../docs/support/pages'
import { serve } from '../support/listen'
import { ComposeFile, variables } from './compose'

// `npm run check:image` carries out the Dockerfile, which takes too long for each run of the tests.

const read = (file: string): string => readFileSync(join(repository, file), 'utf8')
const json = (file: string): Record<string, unknown> => record(JSON.parse(read(file)))

/** The packages of a lock file, by their folders. */
function locked(file: string): Record<string, Record<string, unknown>> {
  return Object.fromEntries(Object.entries(record(json(file).packages)).map(([folder, entry]) => [folder, record(entry)]))
}

test('a build in a clone gets nothing that git ignores there, such as keys and records', () => {
  const entries = (file: string): string[] => read(file).split('\n').filter(line => /^[^#]/.test(line)).map(line => line.replace(/^\*\*\/|^\/|\/$/g, ''))
  assert.deepEqual(entries('.dockerignore').sort(), ['.git', ...entries('.gitignore')].sort())
})

describe('the bot of the image', () => {
  const plugin = 'node_modules/koishi-plugin-message-relay'
  const image = locked('container/package-lock.json')
  const ours = locked('package-lock.json')

  test('is locked to the versions that the tests run', () => {
    const versions = new Set(Object.entries(ours).map(nameAndVersion))
    for (const [folder, entry] of Object.entries(image)) {
      if (folder === '' || folder === plugin) continue
      assert(versions.has(nameAndVersion([folder, entry])), `${folder}: npm run lock:image`)
    }
  })

  test('is locked to what its manifest and the plugin ask for', () => {
    assert.deepEqual(image['']?.dependencies, json('container/package.json').dependencies, 'npm run lock:image')
    assert.deepEqual(image[plugin]?.dependencies, json('package.json').dependencies, 'npm run lock:image')
  })

  test('has the plugins that its koishi.yml and the page about platforms name', () => {
    const names = Object.keys(record(record(load(read('container/koishi.yml'))).plugins)).filter(name => !name.startsWith('./'))
    const packages = Object.keys(image)
    for (const name of names) {
      const found = packages.some(folder => folder === `node_modules/koishi-plugin-${name}` || folder === `node_modules/@koishijs/plugin-${name}`)
      assert(found, name)
    }
    for (const [adapter] of read('docs/platforms.md').matchAll(/@satorijs\/adapter-(?:telegram|discord|lark|satori)@[\d.]+/g)) {
      assert(Object.values(record(json('container/package.json').dependencies)).includes(`npm:${adapter}`), adapter)
    }
  })

  test('takes the settings of the bot of npm start, but for its simulator', () => {
    const settings = (file: string): Set<string> => new Set([...read(file).matchAll(/env\.([A-Z_]+)/g)].map(([, name = '']) => name))
    const own = settings('container/koishi.yml')
    for (const name of settings('koishi.yml')) assert.equal(own.has(name), name !== 'SIMULATOR_PORT', name)
  })
})

describe('the health check of the image', () => {
  const [, command = ''] = /^HEALTHCHECK .*?CMD (.+)$/m.exec(read('Dockerfile').replace(/\\\n */g, '')) ?? []

  for (const path of ['', 'relay', '/relay', '/a/relay/']) {
    test(`asks below WEBHOOK_PATH=${path}, as the relay reads it`, async t => {
      const { settings } = resolveSettings({}, { WEBHOOK_PATH: path })
      const address = await serve(t, ({ url }, response) => {
        response.writeHead(url === `${settings.path}/healthz` ? 200 : 404).end()
      })
      const env = { PATH: process.env.PATH, WEBHOOK_PORT: new URL(address).port, WEBHOOK_PATH: path }
      const check = spawn('sh', ['-c', command], { env, stdio: 'inherit' })
      assert.deepEqual(await once(check, 'exit'), [0, null])
    })
  }
})

/** What lies in a folder of `node_modules`, which has its own name there but for an alias. */
function nameAndVersion([folder, { name, version }]: [string, Record<string, unknown>]): string {
  return `${typeof name === 'string' ? name : folder.replace(/^.*node_modules\//, '')}@${String(version)}`
}

describe('compose.yml', () => {
  const main = new ComposeFile('compose.yml')
  const koishi = read('container/koishi.yml')
  const known = new Set([
    ...resolveSettings({}, {}).origins.map(({ variable }) => variable),
    ...[...koishi.matchAll(/env\.([A-Z_]+)/g)].map(([, name = '']) => name),
  ])
  const list = (value: unknown): unknown[] => Array.isArray(value) ? Array.from<unknown>(value) : Object.keys(record(value ?? {}))

  test('defines what it uses', () => {
    for (const service of Object.values(main.services)) {
      for (const volume of list(service.volumes)) assert(main.defined('volumes').includes(String(volume).split(':')[0] ?? ''), String(volume))
      for (const network of list(service.networks)) assert(main.defined('networks').includes(String(network)), String(network))
      for (const config of list(service.configs)) assert(main.defined('configs').includes(String(record(config).source)))
      for (const name of list(service.depends_on)) assert(Object.keys(main.services).includes(String(name)), String(name))
    }
  })

  test('gives the relay settings that there are, and only this machine a port', () => {
    for (const service of Object.values(main.services)) {
      for (const port of list(service.ports)) assert.match(String(port), /^127\.0\.0\.1:\d+:\d+$/)
    }
    for (const variable of Object.keys(main.environment('relay'))) assert(known.has(variable), variable)
  })

  test('wants each secret', () => {
    for (const name of Object.keys(variables)) {
      assert.throws(() => new ComposeFile('compose.yml', { ...variables, [name]: '' }), new RegExp(name))
    }
  })

  test('gives both containers the uploads under the same path, and the relay the folders and ports of the image', () => {
    const dockerfile = read('Dockerfile')
    const [, data = ''] = /DATA_DIR=(\S+)/.exec(dockerfile) ?? []
    const [, uploads = ''] = /UPLOAD_DIR=(\S+)/.exec(dockerfile) ?? []
    assert(dockerfile.includes(`VOLUME ["${data}", "${uploads}"]`))
    const { relay, napcat } = main.services
    assert.deepEqual(list(relay?.volumes), [`data:${data}`, `uploads:${uploads}`])
    assert(list(napcat?.volumes).includes(`uploads:${uploads}:ro`))
    const [, port = ''] = /^EXPOSE (\d+)$/m.exec(dockerfile) ?? []
    assert(list(relay?.ports).includes(`127.0.0.1:${port}:${port}`))
    assert(koishi.includes(`: ${port} }}`))
  })

  test('publishes the ports that .env chooses, whatever address it chooses', () => {
    const file = new ComposeFile('compose.yml', { ...variables, WEBHOOK_HOST: '127.0.0.1', WEBHOOK_PORT: '9001', CONSOLE_PORT: '9002' })
    assert.deepEqual(file.services.relay?.ports, ['127.0.0.1:9001:9001', '127.0.0.1:9002:9002'])
    assert.equal(file.environment('relay').WEBHOOK_HOST, '0.0.0.0')
  })

  test('lets NapCat listen where the relay dials, with the same token', () => {
    const { websocketServers } = record(record(JSON.parse(main.config('connections'))).network)
    assert.deepEqual(websocketServers, [{ name: 'relay', enable: true, host: '0.0.0.0', port: 3001, token: variables.ONEBOT_TOKEN }])
    assert.equal(main.environment('relay').ONEBOT_ENDPOINT, 'ws://napcat:3001')
    // NapCat starts with the template that MODE names.
    const { target } = record(list(main.services.napcat?.configs)[0])
    assert.equal(target, `/app/templates/${main.environment('napcat').MODE ?? ''}.json`)
  })
})
