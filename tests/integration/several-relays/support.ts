import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { Simulator, type SimulatorOptions } from '../../../simulator'
import { isObject } from '../../../src/message/parse'
import { assertConforming } from '../../support/openapi'
import { apiKey } from '../../support/relay'
import { until } from '../../support/until'
import type { SharedOptions } from './options'
import { startShared, type SharedRelay } from './relay'

export const group = '123456'

/** A simulator that ends with the test. */
export async function simulatorFor(t: TestContext, options?: SimulatorOptions): Promise<Simulator> {
  const simulator = await Simulator.start({ anyTarget: true, ...options })
  t.after(() => simulator.close())
  return simulator
}

/** A folder that ends with the test. */
async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'relay-shared-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A relay in this process that ends with the test. */
export async function relayFor(t: TestContext, options: Omit<SharedOptions, 'folder'>): Promise<SharedRelay> {
  const relay = await startShared({ ...options, folder: await folderFor(t) })
  t.after(() => relay.stop())
  return relay
}

/** A relay in a process of its own. */
export interface RelayProcess {
  url: string
  kill: (signal: NodeJS.Signals) => void
}

/**
 * Starts one that ends with the test.
 *
 * @param ahead how far its clock is ahead of ours, in milliseconds
 */
export async function spawnRelay(t: TestContext, options: Omit<SharedOptions, 'folder'>, ahead = 0): Promise<RelayProcess> {
  const given: SharedOptions = { ...options, folder: await folderFor(t) }
  const child = spawn(process.execPath, [
    '--require', 'yml-register', '--import', 'tsx', join(import.meta.dirname, 'process.ts'), JSON.stringify(given), String(ahead),
  ], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const line = await firstLine(createInterface(child.stdout))
  const printed: unknown = JSON.parse(line ?? 'null')
  assert(isObject(printed) && typeof printed.url === 'string', 'the relay did not start')
  return { url: printed.url, kill: signal => child.kill(signal) }
}

async function firstLine(lines: AsyncIterable<string>): Promise<string | undefined> {
  for await (const line of lines) return line
}

/** An answer, read. */
export interface Reply {
  status: number
  headers: Headers
  msg: string
  data: unknown
}

/** A request with the key. */
export async function request({ url }: { url: string }, path: string, init: RequestInit = {}): Promise<Reply> {
  const response = await fetch(url + path, { ...init, headers: [['x-api-key', apiKey], ...new Headers(init.headers)] })
  assertConforming()
  const body: unknown = await response.json()
  assert(isObject(body) && typeof body.msg === 'string')
  const { status, headers } = response
  return { status, headers, msg: body.msg, data: body.data }
}

/** `POST /webhook`: a text to the group. */
export function send(relay: { url: string }, msg: string, headers: Record<string, string> = {}, target = group): Promise<Reply> {
  return request(relay, '/webhook', { method: 'POST', body: JSON.stringify({ group_id: target, msg }), headers })
}

/** The same, to be delivered later; gives the ID of the delivery. */
export async function post(relay: { url: string }, msg: string, target = group): Promise<string> {
  const { status, data, msg: text } = await send(relay, msg, { prefer: 'respond-async' }, target)
  assert.equal(status, 202, text)
  assert(isObject(data) && typeof data.delivery_id === 'string')
  return data.delivery_id
}

/** A delivery as `GET /deliveries/<id>` shows it. */
export async function look(relay: { url: string }, id: string): Promise<Record<string, unknown>> {
  const { status, data, msg } = await request(relay, `/deliveries/${id}`)
  assert.equal(status, 200, msg)
  assert(isObject(data))
  return data
}

/** Waits until a delivery has a state. */
export async function untilState(relay: { url: string }, id: string, state: string, timeout?: number): Promise<void> {
  await until(`${id} is ${state}`, async () => (await look(relay, id)).state === state, timeout)
}

/** What arrived in a group, in order. */
export function texts({ ledger }: Simulator, target = group): string[] {
  return ledger.filter(entry => entry.target.id === target).map(({ text }) => text)
}
