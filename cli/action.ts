import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { makeBody } from './body'
import { exits, idsOf, parseServer, printable, send, UsageError, type Result } from './client'

// The GitHub Action. The runner passes the inputs as environment variables, and reads commands from standard output.
const { env } = process

function input(name: string): string {
  return (env[`INPUT_${name.toUpperCase()}`] ?? '').trim()
}

/** Reads a flag, in the words of YAML 1.2. */
function flag(name: string): boolean {
  const value = input(name)
  if (/^true$/i.test(value)) return true
  if (/^(?:false)?$/i.test(value)) return false
  throw new UsageError(`${name} must be true or false`)
}

/** Writes a command to the runner. Line breaks are escaped, because each would begin another command. */
function command(name: string, text: string): void {
  process.stdout.write(`::${name}::${text.replace(/%/g, '%25').replace(/\r/g, '%0D').replace(/\n/g, '%0A')}\n`)
}

/** Sets outputs of the step. The delimiter is random, so that no value can contain it and begin another output. */
function setOutputs(values: Readonly<Record<string, string>>): void {
  if (!env.GITHUB_OUTPUT) return
  const delimiter = randomUUID()
  appendFileSync(env.GITHUB_OUTPUT, Object.entries(values).map(([name, value]) => `${name}<<${delimiter}\n${value}\n${delimiter}\n`).join(''))
}

const marks: Partial<Record<string, string>> = { success: '✅ ', failure: '❌ ', cancelled: '⚪ ' }

/** Describes the status of the job, with a link to the run. */
function describeJob(): string {
  const { GITHUB_REPOSITORY: repository, GITHUB_WORKFLOW: workflow, GITHUB_JOB: job, GITHUB_ACTOR: actor } = env
  const { GITHUB_HEAD_REF: head, GITHUB_REF_NAME: ref } = env
  const status = input('job_status')
  const attempt = Number(env.GITHUB_RUN_ATTEMPT) > 1 ? `/attempts/${env.GITHUB_RUN_ATTEMPT ?? ''}` : ''
  return [
    `${marks[status] ?? ''}[${repository ?? ''}] ${workflow ?? ''} / ${job ?? ''}: ${status}`,
    `${head || (ref ?? '')} · ${actor ?? ''}`,
    `${env.GITHUB_SERVER_URL ?? ''}/${repository ?? ''}/actions/runs/${env.GITHUB_RUN_ID ?? ''}${attempt}`,
  ].join('\n')
}

async function run(): Promise<Result> {
  const key = input('key')
  if (key) command('add-mask', key)
  const server = parseServer(input('url'), key)
  const isStatus = flag('status')
  const to = input('to')
  if (!to) throw new UsageError('to is missing: the target, such as group:123456')
  const text = [isStatus ? describeJob() : '', input('text')].filter(Boolean).join('\n')
  const files = input('file').split('\n').map(path => path.trim()).filter(Boolean)
  if (!text && files.length === 0) throw new UsageError('nothing to send: give text, file or status: true')
  const thread = input('thread') || (isStatus ? `${env.GITHUB_REPOSITORY ?? ''}/runs/${env.GITHUB_RUN_ID ?? ''}` : undefined)
  const message = { to, body: await makeBody(Buffer.from(text), files), key: randomUUID(), thread, urgent: flag('urgent') }
  return await send(server, message, 60, line => process.stdout.write(`relay: ${printable(line)}\n`))
}

function report({ outcome, msg, data }: Result): void {
  const { deliveries, messages } = idsOf(data)
  process.exitCode = exits[outcome]
  if (exits[outcome] > 0) command('error', `${outcome}: ${msg}`)
  else process.stdout.write(`${printable([outcome, ...deliveries].join(' '))}\n`)
  setOutputs({ delivery_id: deliveries.join(), outcome, message_ids: messages.join() })
}

void run().catch((error: unknown): Result => {
  const outcome = error instanceof UsageError ? error.outcome : 'unsent'
  return { outcome, msg: error instanceof Error ? error.message : 'failed', data: {} }
}).then(report)
