import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { copyFile, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { resolveSettings } from '../src/config/settings'
import { end, freePort } from './support/process'
import { startRelay, type TestRelay } from './support/relay'
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

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(() => true, () => false)
}

async function ask(url: string, body: object): Promise<unknown> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
  return response.json()
}

const has = (program: string): boolean => spawnSync(program, ['--version']).status === 0

/** The examples of the table of answers. */
function examples(readme: typeof english): { status: number, body: string }[] {
  return table(readme, /^(Status|状态码)$/).map(([status, , example]) => ({ status: Number(status), body: code(example) ?? '' }))
}

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

/** The answers that need a platform that fails, or an app without a database. */
class Failures {
  /** The bodies. */
  readonly met = new Set<string>()
  /** `data` of `GET /status` while a target is paused. */
  status: Record<string, unknown> = {}

  private constructor(private readonly relay: TestRelay) {}

  static async meet(): Promise<Failures> {
    const relay = await startRelay({
      config: { chatApiTimeout: 0.5, chatApiMaxRetries: 0, chatQueueLimit: 1, chatPauseAfter: 1 },
      simulator: { history: false },
    })
    try {
      const failures = new Failures(relay)
      await failures.run()
      return failures
    } finally {
      await relay.stop()
    }
  }

  private async run(): Promise<void> {
    const { relay, relay: { simulator, app } } = this
    // One is on its way, one waits, and there is no room for another.
    simulator.fault({ fault: { kind: 'late', ms: 400 } })
    const slow = this.send('1001', 200, { 'idempotency-key': 'slow' })
    await simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    await this.send('1001', 409, { 'idempotency-key': 'slow' })
    const waiting = this.send('1001', 503, {}, { expires_in: 0.2 })
    await until('one waits', async () => (await (await relay.request('/status')).text()).includes('"waiting":1'))
    await this.send('1001', 429)
    await Promise.all([slow, waiting])

    simulator.fault({ fault: { kind: 'refuse', wording: '群聊不存在' } })
    await this.send('1002', 502)
    await this.send('1002', 503)
    this.status = record(record(await (await relay.request('/status')).json()).data)
    simulator.fault({ fault: { kind: 'silent' } })
    await this.send('1003', 504)
    await this.send('1004', 501, { prefer: 'respond-async' })
    const undo = app.on('before-send', () => true)
    await this.send('1004', 502)
    undo()
    await simulator.goOffline()
    await until('the bot is offline', async () => (await relay.request('/readyz')).status === 503)
    await this.send('1004', 503)
  }

  private async send(group: string, status: number, headers: Record<string, string> = {}, more: object = {}): Promise<void> {
    const body = JSON.stringify({ group_id: group, msg: 'hello', ...more })
    const response = await this.relay.request('/webhook', { method: 'POST', body, headers })
    const text = await response.text()
    assert.equal(response.status, status, text)
    if (status === 409 || status === 429) assert.match(response.headers.get('retry-after') ?? '', /^\d+$/)
    this.met.add(text)
  }
}

/** A way to a port on which the first answer of `/webhook` is lost after each call of `lose`. */
async function startLossyProxy(port: number) {
  let requests = 0
  const proxy = createServer(client => {
    let isLost = false
    const server = connect(port, '127.0.0.1')
    client.on('error', () => server.destroy()).on('close', () => server.destroy())
    server.on('error', () => client.destroy()).on('close', () => client.destroy())
    client.on('data', (chunk: Buffer) => {
      if (chunk.includes('POST /webhook')) isLost = requests++ === 0
      server.write(chunk)
    })
    server.on('data', (chunk: Buffer) => {
      if (isLost) client.destroy()
      else client.write(chunk)
    })
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const address = proxy.address()
  assert(typeof address === 'object' && address !== null)
  return {
    url: `http://127.0.0.1:${address.port}`,
    lose() {
      requests = 0
    },
    /** How many requests have come since then. */
    requests: () => requests,
    close: () => proxy.close(),
  }
}

describe('a reader', { timeout: 120_000 }, () => {
  let folder: string
  let port: number
  let callbackPort: number
  let page: string
  let log = ''
  let failures: Failures
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
    failures = await Failures.meet()
    page = /http:\/\/127\.0\.0\.1:\d+\/simulator\//.exec(log)?.[0] ?? ''
  })
  after(async () => {
    await Promise.all(children.map(child => end(child)))
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
      const shown = examples(readme)
      const source = readFileSync(join(repository, 'src/errors.ts'), 'utf8')
      const statuses = [...source.matchAll(/^  \S+: \[(\d{3}), /gm)].map(([, status]) => Number(status))
      assert.deepEqual(new Set(shown.map(({ status }) => status)), new Set([200, 202, ...statuses]))

      const met = new Set(failures.met)
      const key = (await readFile(join(folder, 'data/api-key'), 'utf8')).trim()
      const call = async (path: string, status: number, init: RequestInit = {}) => {
        const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: [['x-api-key', key], ...new Headers(init.headers)] })
        const text = await response.text()
        assert.equal(response.status, status, text)
        met.add(text)
        return response
      }
      const post = (body: string | Buffer, headers: Record<string, string> = {}): RequestInit => ({ method: 'POST', body, headers })
      const text = (msg: string): string => JSON.stringify({ group_id: '123456', msg })
      await call('/webhook', 400, post('{'))
      await call('/webhook', 401, post('{}', { 'x-api-key': 'another' }))
      await call('/webhook', 404, post('{"group_id":"123456","type":"file","url":"3f0c2f4e-1111-4222-8333-444455556666/x"}'))
      await call('/webhook', 405)
      await call('/webhook', 413, post(Buffer.alloc(10485761)))
      await call('/upload', 415, post('{}'))
      await call('/deliveries/3f0c2f4e-1111-7222-8333-444455556666', 404)
      const sent = await call('/webhook', 200, post(text('one'), { 'idempotency-key': `${readme.name}/answers` }))
      await call('/webhook', 422, post(text('two'), { 'idempotency-key': `${readme.name}/answers` }))
      await call(`/deliveries/${sent.headers.get('x-request-id') ?? ''}`, 409, { method: 'DELETE' })
      await call('/webhook', 202, post(text('three'), { prefer: 'respond-async' }))

      const shapes = new Set([...met].map(body => JSON.stringify(shape(JSON.parse(body)))))
      for (const { status, body } of shown) {
        const { code, msg } = record(JSON.parse(body))
        assert.equal(code, status < 300 ? 0 : status)
        assert(typeof msg === 'string')
        // Those that cannot be brought about here are at least worded as in the source.
        const isRare = status === 408 || status === 500 || /database of the relay|is stopping/.test(msg)
        assert(isRare ? source.includes(`[${status}, '${msg}']`) : shapes.has(JSON.stringify(shape(JSON.parse(body)))), `nothing answers ${body}`)
      }
    })

    test(`sends later, and once for each key, with the commands of ${readme.name}`, async () => {
      const [later = ''] = marked(readme, 'later')
      const [accepted = ''] = marked(readme, 'accepted')
      const [head, body] = split(await paste(later))
      assert.deepEqual(shape(JSON.parse(body)), shape(JSON.parse(accepted)))
      const shownHead = readme.blocks.find(({ language, text }) => language === 'text' && text.startsWith('HTTP/1.1 202'))?.text ?? ''
      for (const line of lines(shownHead)) assert(lines(head).includes(line), `${line} is not in\n${head}`)

      const [look = ''] = marked(readme, 'look')
      const [delivery = ''] = marked(readme, 'delivery')
      const environment = { DELIVERY_ID: String(record(record(JSON.parse(body)).data).delivery_id) }
      await until('it is sent', async () => (await paste(look, environment)).includes('"state":"sent"'))
      assert.deepEqual(shape(await output(look, environment)), shape(JSON.parse(delivery)))
      assert.equal((await messages()).at(-1)?.parts[0]?.text, /"msg": "([^"]+)"/.exec(later)?.[1])

      const earlier = (await messages()).length
      const [keyed = ''] = marked(readme, 'key').map(script => script.replace('nightly', readme.name))
      const [firstHead, first] = split(await paste(keyed))
      const [secondHead, second] = split(await paste(keyed))
      assert.equal(first, second)
      assert.deepEqual([firstHead, secondHead].map(text => /^Idempotent-Replayed: true\r$/m.test(text)), [false, true])
      assert.equal((await messages()).length, earlier + 1)
    })

    test(`sees what ${readme.name} shows of the relay`, async () => {
      const [block = ''] = marked(readme, 'status')
      const shown = record(record(JSON.parse(block)).data)
      const key = (await readFile(join(folder, 'data/api-key'), 'utf8')).trim()
      const answer = async (path: string): Promise<unknown> => (await fetch(`http://127.0.0.1:${port}${path}`, { headers: { 'x-api-key': key } })).json()
      await until('nothing waits', async () => JSON.stringify(await answer('/status')).includes('"size":0'))
      const status = record(record(await answer('/status')).data)
      assert.deepEqual(Object.keys(status), Object.keys(shown))
      assert.deepEqual([status.bots, status.lanes, status.outbox], [shown.bots, [], { size: 0 }])
      const types = (lanes: unknown) => records(lanes).map(lane => Object.entries(lane).map(([name, value]) => [name, typeof value]))
      assert.deepEqual(types(failures.status.lanes), types(shown.lanes))
      assert.equal(failures.status.outbox, null)
      for (const path of ['/healthz', '/readyz']) {
        const found = JSON.stringify(await answer(path))
        assert(readme.blocks.some(({ language, text }) => language === 'json' && JSON.stringify(JSON.parse(text)) === found), found)
      }
    })

    test(`sends once with each snippet for CI in ${readme.name}, although the first answer is lost`, { skip: has('jq') ? false : 'there is no jq' }, async () => {
      await writeFile(join(folder, 'report.txt'), 'all is well\n')
      const environment = {
        RELAY_KEY: (await readFile(join(folder, 'data/api-key'), 'utf8')).trim(),
        GROUP_ID: '123456',
        TEXT: 'a "quote", a \\ and $(touch danger)\nbelow',
        CI_PROJECT_PATH: 'team/app',
        CI_COMMIT_REF_NAME: '"quoted"',
        CI_PIPELINE_ID: readme.name,
        CI_PIPELINE_URL: 'https://gitlab.example.com/1',
        JOB_NAME: `团队 ${readme.name}`,
        BUILD_NUMBER: '42',
      }
      const [github, gitlab] = marked(readme, 'ci').map(text => record(load(text)))
      const step = records(record(record(github?.jobs).build).steps).find(({ env }) => env !== undefined)
      const [script] = Object.values(record(record(gitlab?.notify).script))
      const jenkins = /'''(.*)'''/s.exec(readme.blocks.find(({ language }) => language === 'groovy')?.text ?? '')?.[1]
      const proxy = await startLossyProxy(port)
      const earlier = (await messages()).length
      try {
        for (const [index, snippet] of [step?.run, script, ...marked(readme, 'shell'), jenkins].entries()) {
          proxy.lose()
          await paste(String(snippet), { ...environment, RELAY_URL: proxy.url, MESSAGE_KEY: `${readme.name}/${index}` })
          assert.equal(proxy.requests(), 2, String(snippet))
        }
      } finally {
        proxy.close()
      }
      const sent = (await messages()).slice(earlier).map(({ parts }) => parts[0])
      assert.equal(sent.length, 5)
      const [first, second, third, fourth, fifth] = sent
      for (const part of [first, third, fifth]) assert.equal(part?.text, environment.TEXT)
      assert.match(String(second?.text), /^team\/app: "quoted" \S+\nhttps:\/\/gitlab\.example\.com\/1$/)
      assert.deepEqual([fourth?.type, fourth?.name], ['file', 'report.txt'])
      assert(!existsSync(join(folder, 'danger')))
      // The key is that of the pipeline and the step, whatever the attempt.
      assert.doesNotMatch(JSON.stringify(step?.env), /attempt/)
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

  async function output(script: string, environment: Record<string, string> = {}): Promise<unknown> {
    return JSON.parse(await paste(script, environment))
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
  return JSON.parse(bare(JSON.stringify(value)).replace(/"-?\d{4,}"/g, '"ID"'))
}

/** A text with its UUIDs and times made equal. */
function bare(text: string): string {
  return text.replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
}

/** The lines of a text, with their UUIDs and times made equal. */
function lines(text: string): string[] {
  return bare(text).split(/\r?\n/).filter(Boolean)
}

/** The head and the body of what `curl -i` prints. */
function split(answer: string): [head: string, body: string] {
  const end = answer.indexOf('\r\n\r\n')
  return [answer.slice(0, end + 2), answer.slice(end + 4)]
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
