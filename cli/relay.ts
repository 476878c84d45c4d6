import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { buffer as readBytes } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { version } from '../package.json'
import { codeOf } from '../src/errors'
import { makeBody } from './body'
import { help } from './help'
import { fieldsOf, objectsIn as listOf, type JsonObject as Fields } from '../src/lib/shape'
import { isNear } from '../src/lib/words'
import { runJob, type Listener } from './run'
import { say, speakLike, spoken } from './texts'
import { call, exits, type Call, idsOf, judge, judgeParts, judgePart, parseServer, printable, send, UsageError, type Answer, type Outcome, type Result, type Server } from './client'

/** What can be done about an incident. */
const actions = ['take', 'silence', 'resolve', 'release']
const commands = ['send', 'status', 'tail', 'backup', 'incidents', ...actions, 'run', 'demo']
/** How much of a message `tail` shows, in characters. */
const shownLength = 60
/** The polling interval of `tail`, in milliseconds. */
const interval = 2000
/** How long `tail` watches a new delivery for changes, in milliseconds. */
const watchTime = 600_000
/** How long an upload may take, in milliseconds: the relay searches by the ID of a delivery, which is as old as the request. */
const margin = 30_000

const common = {
  'url': { type: 'string' },
  'api-key': { type: 'string' },
  'json': { type: 'boolean' },
  'help': { type: 'boolean', short: 'h' },
  'version': { type: 'boolean' },
} as const
const sending = {
  file: { type: 'string', short: 'f', multiple: true },
  thread: { type: 'string' },
  urgent: { type: 'boolean' },
  at: { type: 'string' },
  wait: { type: 'string' },
  key: { type: 'string' },
  retry: { type: 'string' },
} as const
const acting = { by: { type: 'string' } } as const
const running = { ping: { type: 'string' } } as const

function note(line: string): void {
  process.stderr.write(`relay: ${printable(line)}\n`)
}

function print(line: string): void {
  process.stdout.write(`${printable(line)}\n`)
}

async function run(): Promise<Outcome | number> {
  const options = { ...common, ...sending, ...acting, ...running }
  const { values, positionals: [command, ...words] } = parseArgs({ options, allowPositionals: true })
  if (values.help || values.version) {
    process.stdout.write(values.help ? help[spoken()] : `${version}\n`)
    return 'sent'
  }
  if (command === undefined || !commands.includes(command)) throw new UsageError(whyUnknown(command))
  const foreign = Object.keys(sending).find(name => command !== 'send' && name in values)
  if (foreign !== undefined) throw new UsageError(say('cli-option-belongs', { option: foreign, commands: 'send' }))
  if (values.by !== undefined && !actions.includes(command)) throw new UsageError(say('cli-option-belongs', { option: 'by', commands: actions }))
  if (values.ping !== undefined && command !== 'run') throw new UsageError(say('cli-option-belongs', { option: 'ping', commands: 'run' }))
  const [first, second] = words
  const most = command === 'run' ? Infinity : command === 'send' || command === 'silence' ? 2 : command === 'demo' ? 0 : 1
  if (words.length > most) throw new UsageError(say('cli-too-many-words'))
  const server = (): Server => {
    const url = values.url ?? process.env.RELAY_URL
    const key = values['api-key'] ?? process.env.RELAY_KEY
    if (!url) throw new UsageError(say('cli-address-unset'))
    if (!key) throw new UsageError(say('cli-key-unset'))
    return parseServer(url, key)
  }
  switch (command) {
    case 'send': {
      if (!first) throw new UsageError(say('cli-send-what-where'))
      const { file = [], thread, urgent, at, key = randomUUID() } = values
      if (!/^[\x21-\x7e]{1,255}$/.test(key)) throw new UsageError(say('cli-option-key'))
      const wait = readSeconds('wait', values.wait)
      const retry = readSeconds('retry', values.retry) ?? 60
      // The shell expands `-f *.png` to several words.
      if (file.length > 0 && second !== undefined && existsSync(second)) throw new UsageError(say('cli-file-without-option', { file: second }))
      const there = server()
      const body = await makeBody(await readMessage(second, file), file, process.stderr.isTTY ? showProgress() : undefined)
      const result = await send(there, { to: first, body, key, thread, urgent, at, wait }, retry, note)
      return printResult(result, key, values.json)
    }
    case 'status': {
      if (!first) throw new UsageError(say('cli-status-of-what'))
      return await printStatus(server(), first, values.json)
    }
    case 'backup': {
      if (!first) throw new UsageError(say('cli-backup-where'))
      return await saveBackup(server(), first, values.json)
    }
    case 'demo': return await showDemo()
    case 'tail': return await follow(server(), first, values.json)
    case 'run': {
      const job = process.argv.includes('--') ? process.argv.slice(process.argv.indexOf('--') + 1) : []
      const isNamed = words.length > job.length
      if (job.length === 0 || words.length > job.length + 1) throw new UsageError(say('cli-run-what'))
      if (isNamed === (values.ping !== undefined)) throw new UsageError(say('cli-beat-or-ping'))
      return await runJob(listenerOf(values.ping, first, server), job, note)
    }
    case 'incidents': return await printIncidents(server(), first, values.json)
    default: {
      if (!first) throw new UsageError(say('cli-which-incident', { command }))
      const body = Buffer.from(JSON.stringify({ by: values.by, until: second }))
      const path = `/incidents/${encodeURIComponent(first)}/${command}`
      const { data } = await ask(server(), path, { method: 'POST', body: { type: 'application/json', length: body.length, chunks: () => [body] } })
      print(values.json ? JSON.stringify(data) : describeIncident(data))
      return 'sent'
    }
  }
}

/** Starts a bot for a trial, which ends with this process, and says how to try it. */
async function showDemo(): Promise<Outcome> {
  const demo = await import('../bot/demo').catch((error: unknown) => {
    // The demo may be missing, for a program that was copied alone, or its Koishi.
    if (codeOf(error).endsWith('MODULE_NOT_FOUND')) throw new UsageError(say('cli-demo-needs'))
    throw error
  })
  try {
    const { url, key, folder, chats, page } = await demo.startDemo(process.env, spoken())
    // In one line, so that it can be copied into any shell.
    const command = `curl -H "Authorization: Bearer ${key}" -d "Hello" ${url}/send/group:123456`
    process.stdout.write(`\n${say('cli-demo', { command, chats, page: page ?? say('cli-demo-page'), folder })}\n`)
    return 'sent'
  } catch (error) {
    if (error instanceof demo.DemoError) throw new UsageError(say('cli-demo-port', { port: error.port, code: error.code }))
    throw error
  }
}

/** Who hears of a job. A cron line with a wrong address is to run its command all the same. */
function listenerOf(ping: string | undefined, beat = '', server: () => Server): Listener | undefined {
  try {
    if (ping !== undefined) return { url: parseServer(ping, '-').url, headers: {} }
    const { url, key } = server()
    return { url: `${url}/beats/${encodeURIComponent(beat)}`, headers: { authorization: `Bearer ${key}` } }
  } catch (error) {
    note(say('cli-nobody-told', { reason: error instanceof Error ? error.message : String(error) }))
    return undefined
  }
}

function whyUnknown(command: string | undefined): string {
  if (command === undefined) return say('cli-commands', { commands })
  const meant = commands.find(each => isNear(each, command.toLowerCase().slice(0, 20), 2))
  const given = JSON.stringify(command)
  return meant === undefined ? say('cli-no-such-command', { command: given, commands }) : say('cli-command-meant', { command: given, meant })
}

function readSeconds(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return
  if (!/^\d{1,6}$/.test(text)) throw new UsageError(say('cli-option-seconds', { option: name }))
  return Number(text)
}

async function readMessage(text: string | undefined, files: readonly string[]): Promise<Buffer> {
  if (text !== undefined && text !== '-') return Buffer.from(text)
  if (text === undefined && files.length > 0) return Buffer.alloc(0)
  if (text === undefined && process.stdin.isTTY) throw new UsageError(say('cli-nothing-to-send'))
  const bytes = await readBytes(process.stdin).catch(() => {
    throw new UsageError(say('cli-input-unreadable'))
  })
  if (!isText(bytes)) throw new UsageError(say('cli-not-utf8'))
  // Removes the line break that `echo` adds.
  return /\r?\n$/.test(bytes.toString('latin1', bytes.length - 2)) ? bytes.subarray(0, bytes.at(-2) === 13 ? -2 : -1) : bytes
}

/** Whether bytes are UTF-8, possibly cut within a character. A console of Windows may give GBK. */
function isText(bytes: Buffer): boolean {
  const start = bytes.subarray(0, 3).findIndex(byte => (byte & 0xc0) !== 0x80)
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(Math.max(start, 0)), { stream: true })
    return true
  } catch {
    return false
  }
}

/** Shows the progress of a large upload on the terminal. */
function showProgress(): (done: number, total: number) => void {
  let shown = ''
  return (done, total) => {
    const text = `relay: ${say('cli-progress', { percent: Math.floor(done / total * 100), size: (total / 1e6).toFixed(1) })}`
    if (total < 1e6 || text === shown) return
    shown = text
    process.stderr.write(`\r${text}${done === total ? '\n' : ''}`)
  }
}

/** The advice for a message that did not arrive, or perhaps not. */
function advise({ outcome, data }: Result, key: string): string | undefined {
  if (outcome === 'unanswered') return say('cli-may-have-arrived', { key })
  const targets = listOf(data.deliveries)
  if (outcome === 'unsent' && targets.length > 0) return say('cli-repeat-the-rest', { key })
  // A key for several items is used up once one of them has arrived.
  const hasArrived = targets.flatMap(({ results }) => listOf(results)).some(({ success }) => success === true)
  if (hasArrived || (targets.length === 0 && Number(data.success) > 0)) return say('cli-send-the-rest')
  if (outcome === 'unsent') return say('cli-repeat-later', { key })
}

/** The outcomes that are named before the reason. */
const names: Partial<Record<Outcome, 'cli-refused' | 'cli-unsent' | 'cli-unanswered'>> = {
  refused: 'cli-refused', unsent: 'cli-unsent', unanswered: 'cli-unanswered',
}

function printResult(result: Result, key: string, json = false): Outcome {
  const { outcome, msg, data } = result
  if (json) process.stdout.write(`${JSON.stringify(result)}\n`)
  const targets = listOf(data.deliveries)
  if (!json) {
    for (const part of targets) print([judgePart(part), part.target, part.delivery_id].filter(Boolean).join(' '))
    if (targets.length === 0 && exits[outcome] < exits.usage && data.delivery_id) print([outcome, ...idsOf(data).deliveries].join(' '))
  }
  const told = advise(result, key)
  const name = names[outcome]
  if (exits[outcome] > 0) note((name ? say(name) + say('cli-colon') : '') + msg + (told && !msg.includes(told) ? say('cli-semicolon') + told : ''))
  return outcome
}

/** @throws UsageError; another error if a later request may succeed */
async function ask(server: Server, path: string, more: Partial<Call> = {}): Promise<Answer> {
  const answer = await call(server, { method: 'GET', path, ...more })
  if (answer.status === 200) return answer
  const { outcome, msg } = judge(answer)
  throw outcome === 'usage' || outcome === 'denied' ? new UsageError(msg, outcome) : new Error(msg)
}

async function printStatus(server: Server, id: string, json = false): Promise<Outcome> {
  const { data } = await ask(server, `/deliveries/${encodeURIComponent(id)}`)
  const { outcome, msg } = judgeDelivery(data)
  if (json) process.stdout.write(`${JSON.stringify(data)}\n`)
  else print(describe(data))
  if (exits[outcome] > 0 && msg) note(msg)
  return outcome
}

/** The states of a delivery that has not ended. */
const unfinished: ReadonlySet<unknown> = new Set(['queued', 'sending', 'scheduled'])

function judgeDelivery(delivery: Fields): Pick<Result, 'outcome' | 'msg'> {
  return unfinished.has(delivery.state) ? { outcome: 'accepted', msg: '' } : judgeParts(listOf(delivery.results), delivery)
}

/** The beginning of a message, in quotes; empty if the relay keeps no content. */
function excerptOf({ items }: Fields): string {
  const words = listOf(items).map(({ type, msg, name }) => typeof msg === 'string' ? msg : `[${[type, name].filter(Boolean).join(' ')}]`)
  const characters = Array.from(words.join(' ').replace(/\s+/g, ' ').trim())
  if (characters.length === 0) return ''
  return ` "${characters.slice(0, shownLength).join('')}${characters.length > shownLength ? '…' : ''}"`
}

function describe(delivery: Fields): string {
  const { state, id, target, updated_at: at, key_name: name, held } = delivery
  const { msg } = judgeDelivery(delivery)
  return [at, state, target, id, name, fieldsOf(held).reason ?? msg].filter(word => typeof word === 'string' && word !== '').join(' ')
}

async function printIncidents(server: Server, target: string | undefined, json = false): Promise<Outcome> {
  const query = new URLSearchParams({ state: 'open,taken,silenced', ...target && { target } })
  const { data } = await ask(server, `/incidents?${query.toString()}`)
  if (json) print(JSON.stringify(data))
  else for (const incident of listOf(data.incidents)) print(describeIncident(incident))
  return 'sent'
}

function describeIncident({ id, state, severity, since, target, owner, title }: Fields): string {
  const [first, second] = [state, severity].map(word => String(word).padEnd(8))
  return [id, first, second, since, target, owner, title].filter(word => typeof word === 'string' && word !== '').join('  ')
}

/** Replaces a file by a backup, once that is complete. */
async function saveBackup(server: Server, file: string, json = false): Promise<Outcome> {
  const unwritable = (error: unknown): UsageError => new UsageError(say('cli-file-unwritable', { file, code: codeOf(error) }))
  const temporary = `${file}.${process.pid}.tmp`
  const handle = await open(temporary, 'w', 0o600).catch((error: unknown) => {
    throw unwritable(error)
  })
  try {
    await ask(server, '/backup', {
      save: response => pipeline(response, handle.createWriteStream({ flush: true })).catch((error: unknown) => {
        throw ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(codeOf(error)) ? unwritable(error) : error
      }),
    })
    const { size } = await stat(temporary)
    await rename(temporary, file).catch((error: unknown) => {
      throw unwritable(error)
    })
    print(json ? JSON.stringify({ file, size }) : say('cli-saved', { file, size: (size / 1e6).toFixed(1) }))
    return 'sent'
  } finally {
    await handle.close().catch(() => undefined)
    await rm(temporary, { force: true })
  }
}

/** Prints the last deliveries, then each new one and each change of state, until the process is ended. */
async function follow(server: Server, target: string | undefined, json = false): Promise<Outcome> {
  let seen = new Map<unknown, unknown>()
  let first = ''
  let since: number | undefined
  let isAway = false
  for (let polls = 0; ; polls++) {
    if (polls > 0) await delay(interval)
    const found = await list(server, { target, since, limit: since === undefined ? 10 : 1000 }).catch((error: unknown) => {
      if (error instanceof UsageError || !(error instanceof Error)) throw error
      if (!isAway) note(say('cli-still-trying', { reason: error.message }))
    })
    isAway = !found
    if (!found) continue
    found.reverse()
    const [oldest] = found
    if (since === undefined && oldest) first = String(oldest.id)
    for (const delivery of found) {
      // IDs sort by time.
      if (String(delivery.id) < first || seen.get(delivery.id) === delivery.state) continue
      print(json ? JSON.stringify(delivery) : describe(delivery) + excerptOf(delivery))
    }
    seen = new Map(found.map(({ id, state }) => [id, state]))
    // By the clock of the relay. Begins at the oldest unfinished delivery, or includes the newest again: others may have the same time.
    const newest = timeOf(found.at(-1)) ?? since ?? 0
    since = timeOf(found.find(each => unfinished.has(each.state) && (timeOf(each) ?? 0) > newest - watchTime)) ?? newest
  }
}

/** The creation time of a delivery, in milliseconds since the epoch. */
function timeOf(delivery: Fields | undefined): number | undefined {
  return typeof delivery?.created_at === 'string' ? Date.parse(delivery.created_at) : undefined
}

interface Wanted {
  target?: string | undefined
  /** In milliseconds since the epoch. */
  since?: number | undefined
  limit: number
}

/** Reads the matching deliveries page by page, the newest first. @throws as `ask` */
async function list(server: Server, { target, since, limit }: Wanted): Promise<Fields[]> {
  const found: Fields[] = []
  for (let before: string | undefined; ;) {
    const query = new URLSearchParams({ limit: String(limit), ...target && { target }, ...before && { before } })
    if (since !== undefined) query.set('since', new Date(since - margin).toISOString())
    const { data, headers } = await ask(server, `/deliveries?${query.toString()}`)
    found.push(...listOf(data.deliveries))
    const next = /[?&]before=([^&>]+)/.exec(String(headers.link ?? ''))?.[1]
    if (next === undefined || since === undefined) return found
    before = decodeURIComponent(next)
  }
}

// Ends `relay tail | head`; other commands keep their exit codes.
process.stdout.on('error', () => process.exit())
speakLike(process.env)
run().then(outcome => {
  process.exitCode = typeof outcome === 'number' ? outcome : exits[outcome]
}, (error: unknown) => {
  const isParsing = error instanceof TypeError && codeOf(error).startsWith('ERR_PARSE_ARGS')
  const words = error instanceof Error ? error.message : String(error)
  note(isParsing ? say('cli-options-wrong', { words }) : words)
  // If `status` gets no answer, the outcome of the message is unknown.
  process.exitCode = exits[error instanceof UsageError ? error.outcome : isParsing ? 'usage' : 'unanswered']
})
