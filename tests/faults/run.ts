import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { LedgerEntry } from '../../simulator'
import { openAccount, record, type Account, type ItemAccount } from './account'
import { field, readAnswer, readDelivery, readReply, type Reply } from './answers'
import type { Plan, PlannedItem, PlannedRequest } from './plan'
import { Tracker } from './tracker'
import type { World } from './world'

/** The result of a plan. */
export interface Run {
  plan: Plan
  accounts: Account[]
  tracker: Tracker
  /** Problems that were found during the run. */
  problems: string[]
  /** The messages of the plan in its chats, oldest first. */
  ledger: () => LedgerEntry[]
}

/** How long a delivery may take to end, in milliseconds, including retries, restarts, pauses, and a chat that is muted twice. */
const patience = 240_000

/** After how long a record shows an end that was told but could not be written before a reload, in milliseconds. */
const lookTime = 70_000

/** The default lifetime of a deferred message, in seconds. */
const day = 24 * 60 * 60

/** Executes a plan. Resolves when everything has ended. */
export async function runPlan(plan: Plan, world: World): Promise<Run> {
  const runner = new Runner(plan, world)
  await runner.run()
  return runner
}

class Runner implements Run {
  readonly accounts: Account[] = []
  readonly problems: string[] = []
  private readonly byKey = new Map<string, Account>()
  readonly tracker: Tracker
  private readonly withdrawn = new Set<string>()
  /** The last known states of the deliveries. */
  private readonly states = new Map<string, string>()
  private events = 0

  constructor(readonly plan: Plan, private readonly world: World) {
    this.tracker = new Tracker(plan, world)
  }

  ledger(): LedgerEntry[] {
    const ids = new Set(this.plan.targets.map(({ id }) => id))
    return this.world.simulator.ledger.filter(({ target }) => ids.has(target.id))
  }

  async run(): Promise<void> {
    try {
      const senders = this.plan.senders.map(async requests => {
        for (const request of requests) await this.issue(request)
      })
      for (const result of await Promise.allSettled(senders)) if (result.status === 'rejected') this.complain(result.reason)
      if (this.plan.isRough) await this.world.settled()
      await this.allFinished()
      await this.allCarriedOut()
      await Promise.all(this.accounts.map(account => this.follow(account).catch((error: unknown) => this.complain(error, account.request))))
    } catch (error) {
      this.complain(error)
    } finally {
      this.tracker.end()
    }
  }

  private complain(error: unknown, request?: PlannedRequest): void {
    const text = error instanceof Error ? error.message : String(error)
    this.problems.push(`${request ? `request ${request.name}: ` : ''}${text}`)
  }

  /** Issues a request. One with a key is repeated until the outcome is known. */
  private async issue(request: PlannedRequest): Promise<void> {
    const { key } = request
    const known = key === undefined ? undefined : this.byKey.get(key)
    const account = known ?? openAccount(request, this.events++)
    if (!known) this.accounts.push(account)
    if (key !== undefined) this.byKey.set(key, account)
    try {
      for (const end = performance.now() + patience; ;) {
        const reply = await this.post(request)
        this.tracker.countAnswer()
        if (reply && this.interpret(account, request, reply)) break
        if (key !== undefined && !reply) account.hasLostAnswer = true
        if (key === undefined || (request.leaveAfter !== undefined && !reply)) return
        assert(performance.now() < end, `still under way after ${patience} ms`)
        await delay(50)
      }
      if (request.withdraw && account.deliveryId !== undefined) await this.withdraw(account, account.deliveryId)
    } catch (error) {
      this.complain(error, request)
    }
  }

  /** @returns the answer; `undefined` if the connection broke first */
  private async post(request: PlannedRequest): Promise<Reply | undefined> {
    const { deferred, key, leaveAfter } = request
    const headers = {
      ...key !== undefined && { 'idempotency-key': key },
      ...deferred && { prefer: `respond-async${deferred.wait ? `, wait=${deferred.wait}` : ''}` },
    }
    const end = performance.now() + patience
    for (;;) {
      await this.world.up()
      try {
        const signal = leaveAfter === undefined ? null : AbortSignal.timeout(leaveAfter)
        const response = await this.world.request('/webhook', { method: 'POST', body: JSON.stringify(this.bodyOf(request)), headers, signal })
        // While the plugin is being reloaded, the route does not exist.
        if (response.status !== 404) return await readReply(response)
        await response.body?.cancel()
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error
        if (field(field(error, 'cause'), 'code') !== 'ECONNREFUSED') return
      }
      assert(performance.now() < end, 'nobody takes requests')
      await delay(20)
    }
  }

  private bodyOf({ target, mode, items, expiresIn }: PlannedRequest): object {
    const planned = this.plan.targets[target]
    assert(planned)
    const bodies = items.map(toBody)
    return {
      [planned.kind === 'group' ? 'group_id' : 'user_id']: planned.id,
      ...expiresIn !== undefined && { expires_in: expiresIn },
      ...mode === 'batch' ? { messages: bodies } : bodies[0],
    }
  }

  /** @returns whether the answer tells the outcome of the request */
  private interpret(account: Account, request: PlannedRequest, reply: Reply): boolean {
    const reading = readAnswer(reply, request)
    account.history.push(`#${request.name}: ${reply.status}${reply.headers.get('idempotent-replayed') ? ' replayed' : ''}`)
    if (reading.kind === 'in-progress') return false
    // An unsent request tells nothing about an earlier one with a lost answer.
    const isUnsent = reading.kind === 'results' && !reading.replayed && reading.results.every(({ told }) => told === 'unsent')
    if (!isUnsent) account.hasLostAnswer = false
    // The delivery was accepted, and withdrawn while this answer was in transit.
    if (reading.kind === 'accepted' && this.withdrawn.has(reading.id)) return true
    // A message gets a new place if it is accepted again (a refusal does not use up its key) or sent again (after it went unanswered).
    const isSent = reading.kind === 'results' && reading.results.some(({ told }) => told === 'sent')
    if (reading.kind === 'accepted' ? !reading.replayed || reading.id !== account.deliveryId : isSent && !reading.replayed) {
      account.accepted = this.events++
    } else if (isSent) {
      account.accepted ??= this.events++
    }
    // The message was sent again: the delivery before had ended without using up the key.
    if (isSent && !reading.replayed) delete account.deliveryId
    // An unsent repeat does not change what is known of an earlier request with the key.
    const addsNothing = isUnsent && account.results.some(({ told }) => told !== 'unknown')
    if (reading.kind === 'accepted') {
      account.deliveryId = reading.id
      if (!addsNothing) delete account.recordId
    } else if (!addsNothing) {
      this.record(account, reading.results)
      account.recordId = recordOf(reply)
    }
    // A late answer may still improve the result of a deferred message.
    if (reply.headers.get('preference-applied') && !reading.replayed && account.deliveryId === undefined) {
      account.deliveryId = reply.headers.get('x-request-id') ?? ''
    }
    return true
  }

  private record(account: Account, results: readonly ItemAccount[]): void {
    this.problems.push(...record(account, results, this.world.simulator.ledger.at(-1)?.seq ?? 0))
  }

  private async withdraw(account: Account, id: string): Promise<void> {
    for (let isRepeat = false; ; isRepeat = true) {
      await this.world.up()
      const status = await this.world.request(`/deliveries/${id}`, { method: 'DELETE' }).then(readReply).then(reply => reply.status, () => undefined)
      // 404 if the answer to an earlier attempt was lost.
      if (status === 200 || (status === 404 && isRepeat)) break
      // If the relay cannot use its file, the outcome is unknown.
      if (status === 503) {
        if (account.deliveryId === id) delete account.deliveryId
        return
      }
      if (status !== undefined) return
      await delay(20)
    }
    this.withdrawn.add(id)
    if (account.deliveryId === id) delete account.deliveryId
    // A repeat of its key gets a new place.
    delete account.accepted
    account.history.push('withdrawn')
    this.record(account, account.items.map(() => ({ told: 'unsent', ids: [] })))
  }

  /** Waits until all deliveries to the targets have ended, including those whose acceptance no caller knows. */
  private async allFinished(): Promise<void> {
    const end = performance.now() + patience
    for (const { kind, id } of this.plan.targets) {
      for (;;) {
        const data = await this.get(`/deliveries?target=${kind}:${id}&limit=1000`)
        const deliveries = field(data, 'deliveries')
        if (Array.isArray(deliveries)) deliveries.forEach((one: unknown) => this.observe(one))
        if (Array.isArray(deliveries) && deliveries.every(one => !['queued', 'sending'].includes(String(field(one, 'state'))))) break
        assert(performance.now() < end, `not finished in ${patience} ms: ${JSON.stringify(data).slice(0, 600)}`)
        await delay(40)
      }
    }
  }

  /** After its end, only an unanswered delivery may change: when it is found, answered late or resent. */
  private observe(delivery: unknown): void {
    const id = String(field(delivery, 'id'))
    const state = String(field(delivery, 'state'))
    const before = this.states.get(id) ?? state
    this.states.set(id, state)
    if (before === state || ['queued', 'sending'].includes(before) || (before === 'unanswered' && state !== 'expired')) return
    this.problems.push(`the delivery ${id} was ${before}, and then ${state}`)
  }

  /** Waits until the platform has carried out all slow calls. */
  private async allCarriedOut(): Promise<void> {
    const targets = new Set(this.plan.targets.map(({ id }) => id))
    await this.world.simulator.until(({ pending }) => (
      !pending.some(({ params }) => targets.has(String(params.group_id ?? params.user_id)))
    ), patience)
  }

  /** Reads the record of an accepted message, and compares it with what the caller was told. */
  private async follow(account: Account): Promise<void> {
    const id = account.deliveryId ?? account.recordId
    if (id === undefined) return
    // A kill loses the records that only memory had, and a message that could not be stored has no record.
    const isLost = this.plan.options.kills === true || account.results.every(({ told }) => told === 'unsent')
    const isOptional = isLost && account.deliveryId === undefined
    let delivery: ReturnType<typeof readDelivery>
    const end = performance.now() + lookTime
    do {
      const data = await this.get(`/deliveries/${id}`, isOptional)
      if (data === undefined) return
      delivery = readDelivery(data, account.items.length)
      // The delivery had settled without an answer, and its queue resends it.
      if (!delivery) await this.allFinished()
      else if (isBehind(account, delivery.results)) await delay(100)
    } while (!delivery || (isBehind(account, delivery.results) && performance.now() < end))
    account.history.push(delivery.state)
    account.attempts = delivery.attempts
    if (delivery.state === 'expired' && performance.now() - account.start < (account.request.expiresIn ?? day) * 1000) {
      this.complain(new Error('its time was not over yet, and it has expired'), account.request)
    }
    if (account.deliveryId === undefined) this.compare(account, delivery.results)
    this.record(account, delivery.results)
  }

  /** The record must agree with what was told. It may only add to `unanswered`. */
  private compare({ request, results }: Account, recorded: readonly ItemAccount[]): void {
    for (const [index, { told }] of results.entries()) {
      const now = recorded[index]?.told
      if (told === now || told === 'unanswered' || told === 'unknown') continue
      this.complain(new Error(`item ${index} was told to be ${told}, and is recorded as ${now ?? 'nothing'}`), request)
    }
  }

  /** @returns `undefined` if an optional resource does not exist */
  private async get(path: string, isOptional = false): Promise<unknown> {
    const end = performance.now() + patience
    for (;;) {
      await this.world.up()
      const reply = await this.world.request(path).then(readReply).catch(() => undefined)
      if (reply?.status === 200) return reply.data
      if (reply?.status === 404 && isOptional) return
      assert(performance.now() < end && (!reply || reply.status === 503), `${path}: ${reply?.status ?? 'no answer'} ${reply?.msg ?? ''}`)
      await delay(20)
    }
  }
}

/** Whether a record does not show yet what the caller was told. */
function isBehind({ results }: Account, recorded: readonly ItemAccount[]): boolean {
  return results.some(({ told }, index) => told === 'sent' && recorded[index]?.told === 'unanswered')
}

function toBody({ type, token }: PlannedItem): object {
  return type === 'text' ? { type, msg: token } : { type, url: `base64://${token}` }
}

/** The ID of the record that an answer refers to. */
function recordOf({ headers }: Reply): string {
  return headers.get('content-location')?.split('/').at(-1) ?? headers.get('x-request-id') ?? ''
}
