import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { copyFile, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { resolveSettings } from '../src/config/settings'
import { until } from './support/until'

/** What the two READMEs say is run here as a reader would run it. */

interface Block {
  language: string
  /** The word behind `test:` in the comment before the block. */
  mark: string
  text: string
}

const repository = resolve(__dirname, '..')
const english = read('README.md')
const chinese = read('README.zh-CN.md')
const readmes = [english, chinese]

function read(name: string) {
  const text = readFileSync(join(repository, name), 'utf8')
  const blocks: Block[] = []
  const fence = /(?:^<!-- test: (\S+) -->\n)?^```(\w*)\n(.*?)^```$/gms
  const prose = text.replace(fence, (_, mark: string | undefined, language: string, content: string) => {
    blocks.push({ language, mark: mark ?? '', text: content })
    return ''
  })
  return { name, blocks, prose, headings: [...prose.matchAll(/^(#+) (.+)$/gm)].map(([, level = '', title = '']) => ({ level: level.length, title })) }
}

function marked({ blocks }: typeof english, mark: string): string[] {
  const found = blocks.filter(block => block.mark === mark).map(block => block.text)
  assert(found.length > 0, `no block is marked "${mark}"`)
  return found
}

/** The rows of the table with these many columns in its first row, without their header. */
function table({ prose }: typeof english, firstCell: RegExp): string[][] {
  const rows = prose.split('\n').map(line => line.startsWith('|') ? line.slice(1, -1).split(/(?<!\\)\|/).map(cell => cell.trim()) : [])
  const start = rows.findIndex(row => firstCell.test(row[0] ?? ''))
  assert(start >= 0, `no table begins with ${firstCell.source}`)
  const end = rows.findIndex((row, index) => index > start && row.length === 0)
  return rows.slice(start + 2, end)
}

/** The first `code` of a cell. */
function code(cell = ''): string | undefined {
  return /`([^`]*)`/.exec(cell)?.[1]
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function record(value: unknown): Record<string, unknown> {
  assert(isRecord(value), `not an object: ${JSON.stringify(value)}`)
  return value
}

function records(value: unknown): Record<string, unknown>[] {
  assert(Array.isArray(value), `not a list: ${JSON.stringify(value)}`)
  return value.map(record)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  server.close()
  await once(server, 'close')
  return address.port
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  await closed
}

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(() => true, () => false)
}

async function ask(url: string, body: object): Promise<unknown> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
  return response.json()
}

const has = (program: string): boolean => spawnSync(program, ['--version']).status === 0

describe('the READMEs', () => {
  test('have the same headings in both languages', () => {
    assert.deepEqual(chinese.headings.map(({ level }) => level), english.headings.map(({ level }) => level))
  })

  test('have the same blocks in both languages, but for comments and translated texts', () => {
    const outline = ({ blocks }: typeof english) => blocks.map(({ language, mark }) => [language, mark])
    assert.deepEqual(outline(chinese), outline(english))
    for (const [index, block] of chinese.blocks.entries()) {
      const original = english.blocks[index]?.text.split('\n') ?? []
      const lines = block.text.split('\n')
      assert.equal(lines.length, original.length, block.text)
      for (const [at, line] of lines.entries()) assertTranslation(line, original[at] ?? '')
    }
  })

  test('have the same tables in both languages, but for their prose', () => {
    const codes = ({ prose }: typeof english) => prose.split('\n').filter(line => line.startsWith('|'))
      .map(line => [line.split(/(?<!\\)\|/).length, line.match(/`[^`]+`/g)?.filter(text => !/[^ -~]/.test(text)).sort() ?? []])
    const translated = codes(chinese)
    for (const [index, row] of codes(english).entries()) assert.deepEqual(translated[index], row)
    assert.equal(translated.length, codes(english).length)
  })

  test('hold JSON and YAML that can be parsed', () => {
    for (const { blocks } of readmes) {
      for (const { language, text } of blocks) {
        if (language === 'json') JSON.parse(text)
        else if (language === 'yaml') load(text)
      }
    }
  })

  test('link to files and headings that are there', () => {
    for (const { name, prose } of readmes) {
      const links = [...prose.matchAll(/\[[^\]]+\]\(([^)\s]+)\)/g)].map(([, link = '']) => link).filter(link => !/^https?:/.test(link))
      assert(links.length > 10)
      for (const link of links) {
        const [file = '', anchor] = link.split('#')
        assert(file === '' || existsSync(resolve(repository, file)), `${name} links to ${link}, which is not there`)
        if (anchor !== undefined) assert(anchors(read(file || name)).has(anchor), `${name} links to ${link}, which is no heading`)
      }
    }
  })

  test('name no path of this machine', () => {
    for (const { name, prose, blocks } of readmes) {
      const text = [prose, ...blocks.map(block => block.text)].join('\n')
      assert(!text.includes(repository) && !text.includes(tmpdir() + '/'), name)
    }
  })
})

/** Whether a line is the translation of another: equal where it is not a comment or a text that is not ASCII. */
function assertTranslation(line: string, original: string): void {
  const bare = (text: string) => text.replace(/(^|\s)(?:#|\/\/)\s.*$/, '').trimEnd()
  const escape = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const pattern = bare(line).split(/(["'`]|\$\{[^}]*\}|\\n)/).map(part => /[^ -~]/.test(part) ? '.+' : escape(part)).join('')
  // The folders of the repository are explained behind two blanks or more.
  const explained = /^(\S+ {2,})\S/.exec(line)?.[1]
  if (explained !== undefined && original.startsWith(explained)) return
  assert.match(bare(original), new RegExp(`^${pattern}$`), `${line}\nis not a translation of\n${original}`)
}

/** The anchors that GitHub gives the headings of a file. */
function anchors({ headings }: typeof english): Set<string> {
  return new Set(headings.map(({ title }) => title.toLowerCase().replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, '').replace(/ /g, '-')))
}

describe('the table of settings', () => {
  const koishi = readFileSync(join(repository, 'koishi.yml'), 'utf8')
  for (const readme of readmes) {
    test(`is complete and right in ${readme.name}`, () => {
      const rows = table(readme, /^(Field|字段)$/).filter(([, variable]) => code(variable)).map(([field, variable, fallback]) => {
        return { field: code(field) ?? '', variable: code(variable) ?? '', fallback: code(fallback) ?? '' }
      })
      const expected = resolveSettings({}, {}).origins.map(({ field, variable, value }) => {
        return { field, variable, fallback: Array.isArray(value) ? value.join() : String(value) }
      })
      const order = (a: { field: string }, b: { field: string }) => a.field < b.field ? -1 : 1
      assert.deepEqual(rows.filter(({ field }) => !field.includes('.')).sort(order), expected.sort(order))

      // The others are what koishi.yml hands to other plugins.
      const others = rows.filter(({ field }) => field.includes('.'))
      const own = new Set(expected.map(({ variable }) => variable))
      const read = new Set([...koishi.matchAll(/env\.([A-Z_]+)/g)].map(([, variable = '']) => variable).filter(variable => !own.has(variable)))
      assert.deepEqual(others.map(({ variable }) => variable).sort(), [...read].sort())
      for (const { field, variable, fallback } of others) {
        const [plugin = '', key = ''] = field.split('.')
        assert.match(koishi, new RegExp(`^  ${plugin}:\\n(?:    .*\\n)*?    ${key}: .*env\\.${variable}.*${fallback.replaceAll('.', '\\.')}`, 'm'))
      }
    })
  }
})

describe('a reader', { timeout: 60_000 }, () => {
  let folder: string
  let port: number
  let callbackPort: number
  let page: string
  let log = ''
  const children: ChildProcess[] = []

  function run(command: string, args: string[], environment: Record<string, string> = {}): ChildProcess {
    const child = spawn(command, args, { cwd: folder, env: { ...clean(), ...environment }, stdio: ['ignore', 'pipe', 'pipe'] })
    children.push(child)
    return child
  }

  /** Runs a snippet as if it had been pasted. */
  async function paste(script: string, environment: Record<string, string> = {}): Promise<string> {
    const text = script.replaceAll('127.0.0.1:8081', `127.0.0.1:${port}`)
    const { stdout } = await promisify(execFile)('bash', ['-c', `set -eo pipefail\n${text}`], { cwd: folder, env: { ...clean(), ...environment } })
    return stdout
  }

  /** The messages of the group, as the simulator's page shows them. */
  async function messages(): Promise<{ self: boolean, parts: Record<string, unknown>[] }[]> {
    const state = record(await (await fetch(new URL('api/state', page))).json())
    const chat = records(state.chats).find(({ id }) => id === '123456')
    return records(record(chat).messages).map(({ sender, parts }) => ({ self: record(sender).self === true, parts: records(parts) }))
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'relay-readme-'))
    // As in a clone.
    for (const file of ['package.json', 'koishi.yml']) await copyFile(join(repository, file), join(folder, file))
    await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
    port = await freePort()
    callbackPort = await freePort()
    const bot = run(process.execPath, [join(repository, 'dist/bot/start.js')], {
      INIT_CWD: folder,
      WEBHOOK_HOST: '127.0.0.1',
      WEBHOOK_PORT: String(port),
      COMMAND_CALLBACK_URL: `http://127.0.0.1:${callbackPort}/command`,
    })
    for (const stream of [bot.stdout, bot.stderr]) stream?.on('data', (chunk: Buffer) => log += chunk.toString())
    await until('the bot is online', () => {
      assert.equal(bot.exitCode, null, log)
      return log.includes('bot onebot:10000 online') && log.includes('server listening')
    }, 20_000)
    page = /http:\/\/127\.0\.0\.1:\d+\/simulator\//.exec(log)?.[0] ?? ''
  })
  after(async () => {
    await Promise.all(children.map(end))
    await rm(folder, { recursive: true, force: true })
  })

  for (const readme of readmes) {
    test(`sends a text, a picture and a batch with the commands of ${readme.name}`, async () => {
      const earlier = (await messages()).length
      const [text = '', picture = '', batch = '', ...others] = marked(readme, 'quick-start')
      assert.deepEqual(others, [])

      const examples = readme.blocks.filter(({ language }) => language === 'json').slice(0, 3).map(block => shape(JSON.parse(block.text)))
      assert.deepEqual([shape(await output(text)), shape(await output(picture)), shape(await output(batch))], examples)

      const sent = (await messages()).slice(earlier).map(({ parts }) => parts)
      assert.deepEqual(sent.map(parts => parts.map(({ type }) => type)), [['text'], ['image'], ['text', 'image'], ['file']])
      const [said, shown, combined, file] = sent
      assert.equal(said?.[0]?.text, /"msg": "([^"]+)"/.exec(text)?.[1])
      assert.equal(combined?.[0]?.text, /"msg": "([^"]+)"/.exec(batch)?.[1])
      assert.equal(file?.[0]?.name, 'package.json')
      const source = new URL(String(shown?.[0]?.src), page)
      const bytes = Buffer.from(await (await fetch(source)).arrayBuffer())
      assert.deepEqual(bytes, await readFile(join(folder, 'data/picture.png')))
      assert.equal(bytes.subarray(1, 4).toString(), 'PNG')
    })

    test(`gets the answers that ${readme.name} shows`, async () => {
      const shown = new Map(table(readme, /^(Status|状态码)$/).map(([status, , example]) => [Number(status), code(example)]))
      assert.deepEqual([...shown.keys()], [200, 400, 401, 404, 405, 408, 413, 415, 500, 502, 503, 504])
      for (const [status, example = ''] of shown) {
        const { code, msg, data } = record(JSON.parse(example))
        assert.deepEqual([code, status === 200 || data === null], [status === 200 ? 0 : status, true])
        assert(typeof msg === 'string')
        // Those that cannot be brought about here are at least worded as in the source.
        const source = readFileSync(join(repository, 'src/errors.ts'), 'utf8')
        if ([408, 500, 502, 503, 504].includes(status)) assert(source.includes(msg.replace(/: 群聊不存在$/, '')), msg)
      }
      const key = (await readFile(join(folder, 'data/api-key'), 'utf8')).trim()
      const call = async (path: string, init: RequestInit) => {
        const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { 'x-api-key': key }, ...init })
        assert.equal(await response.text(), shown.get(response.status))
        return response.status
      }
      const gone = '{"group_id":"123456","type":"file","url":"3f0c2f4e-1111-4222-8333-444455556666/x"}'
      assert.equal(await call('/webhook', { method: 'POST', body: '{' }), 400)
      assert.equal(await call('/webhook', { method: 'POST', body: '{}', headers: {} }), 401)
      assert.equal(await call('/webhook', { method: 'POST', body: gone }), 404)
      assert.equal(await call('/webhook', {}), 405)
      assert.equal(await call('/webhook', { method: 'POST', body: Buffer.alloc(10485761) }), 413)
      assert.equal(await call('/upload', { method: 'POST', body: '{}' }), 415)
    })

    test(`sends with the snippets for CI in ${readme.name}`, { skip: has('jq') ? false : 'there is no jq' }, async () => {
      await writeFile(join(folder, 'report.txt'), 'all is well\n')
      const environment = {
        RELAY_URL: `http://127.0.0.1:${port}`,
        RELAY_KEY: (await readFile(join(folder, 'data/api-key'), 'utf8')).trim(),
        GROUP_ID: '123456',
        TEXT: 'a "quote", a \\ and $(touch danger)\nbelow',
        CI_PROJECT_PATH: 'team/app',
        CI_COMMIT_REF_NAME: '"quoted"',
        CI_PIPELINE_URL: 'https://gitlab.example.com/1',
      }
      const [github, gitlab] = marked(readme, 'ci').map(text => record(load(text)))
      const step = records(record(record(github?.jobs).build).steps).find(({ env }) => env !== undefined)
      const [script] = Object.values(record(record(gitlab?.notify).script))
      const earlier = (await messages()).length
      for (const snippet of [step?.run, script, ...marked(readme, 'shell')]) await paste(String(snippet), environment)
      const [first, second, third, fourth] = (await messages()).slice(earlier).map(({ parts }) => parts[0])
      assert.equal(first?.text, environment.TEXT)
      assert.match(String(second?.text), /^team\/app: "quoted" \S+\nhttps:\/\/gitlab\.example\.com\/1$/)
      assert.equal(third?.text, environment.TEXT)
      assert.deepEqual([fourth?.type, fourth?.name], ['file', 'report.txt'])
      assert(!existsSync(join(folder, 'danger')))
    })

    test(`gets replies from the callback in TypeScript of ${readme.name}`, async () => {
      const [source = ''] = marked(readme, 'callback-typescript')
      await writeFile(join(folder, 'callback.ts'), source.replace('3000', String(callbackPort)))
      // What `npx tsx` runs; npx itself does not pass signals on.
      const callback = run(join(folder, 'node_modules/.bin/tsx'), ['callback.ts'])
      const address = `http://127.0.0.1:${callbackPort}/command`
      await until('the callback listens', () => answers(address), 15_000)
      await checkCallback(readme, address)

      const earlier = (await messages()).length
      const said = await fetch(new URL('api/say', page), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ type: 'group', chat: '123456', user: '10001', text: '#ping hello' }),
      })
      assert.equal(said.status, 200)
      await until('the bot has replied', async () => (await messages()).length === earlier + 2)
      const reply = (await messages()).at(-1)
      assert.deepEqual([reply?.self, reply?.parts[0]?.text], [true, 'pong hello'])
      await end(callback)
      await until('the callback has ended', async () => !await answers(address))
    })

    test(`gets replies from the callback in Python of ${readme.name}`, { skip: has('python3') ? false : 'there is no Python' }, async () => {
      const [source = ''] = marked(readme, 'callback-python')
      const own = await freePort()
      await writeFile(join(folder, 'callback.py'), source.replace('3000', String(own)))
      const callback = run('python3', ['callback.py'])
      const address = `http://127.0.0.1:${own}/command`
      await until('the callback listens', () => answers(address), 15_000)
      await checkCallback(readme, address)
      await end(callback)
    })
  }

  async function output(script: string): Promise<unknown> {
    return JSON.parse(await paste(script))
  }
})

/** Asks a callback with the request that the README shows. */
async function checkCallback({ blocks }: typeof english, address: string): Promise<void> {
  const command = record(JSON.parse(blocks.find(({ text }) => text.includes('"raw_message"'))?.text ?? ''))
  assert.deepEqual(await ask(address, command), { reply: 'pong hello' })
  const [item, ...others] = records(record(await ask(address, { ...command, command: 'whoi' })).messages)
  assert.deepEqual(others, [])
  assert.match(String(item?.text ?? item?.msg), / 10001$/)
  assert.deepEqual(await ask(address, { ...command, command: 'what' }), {})
  const refused = await fetch(address, { method: 'POST', body: '{' })
  assert.equal(refused.status, 400)
}

/** A value with its IDs made equal. */
function shape(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replace(/"-?\d{4,}"/g, '"ID"'))
}

/** The environment without what would change the bot's settings. */
function clean(): NodeJS.ProcessEnv {
  const own = new Set(resolveSettings({}, {}).origins.map(({ variable }) => variable))
  return Object.fromEntries(Object.entries(process.env)
    .filter(([name]) => !own.has(name) && !/^(?:WEBHOOK|ONEBOT|NODE_TEST|npm_|INIT_CWD)/.test(name)))
}

describe('the test of the development section', () => {
  test('passes as it is written, in both languages', async () => {
    for (const readme of readmes) {
      const [source = ''] = marked(readme, 'example-test')
      const file = join(await mkdtemp(join(tmpdir(), 'relay-readme-')), 'example.test.ts')
      await writeFile(file, source.replace('./support/relay', join(repository, 'tests/support/relay')))
      try {
        const arguments_ = ['--require', 'yml-register', '--import', 'tsx', '--test', '--test-reporter=tap', file]
        const { stdout } = await promisify(execFile)(process.execPath, arguments_, { cwd: repository, env: clean() })
        assert.match(stdout, /^# pass 1$/m)
      } finally {
        await rm(dirname(file), { recursive: true, force: true })
      }
    }
  })
})
