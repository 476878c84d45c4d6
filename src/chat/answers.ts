import { h } from 'koishi'
import { v7 as uuid } from 'uuid'
import type { MadeTargets } from '../access/made-targets'
import type { Refusals } from '../access/refusals'
import { RelayError } from '../errors'
import { viewState } from '../http/views'
import { writeMoment, writeSpan } from '../lib/span'
import { explain } from '../message/causes'
import type { MessageRequest } from '../message/model'
import { parseDestinations, reachOf, writeAddress, writeTarget } from '../message/target'
import type { BotState } from '../platform/bots'
import { resultOf, isUnfinished, type Delivery } from '../relay/delivery/delivery'
import type { ListFilter } from '../relay/delivery/filter'
import type { Relay } from '../relay/relay'
import type { Request } from './request'

/** The parts of the plugin that answers are about. */
export interface Views {
  relay: Relay
  names: MadeTargets
  refusals: Pick<Refusals, 'last'>
  bots: () => readonly BotState[]
}

/** The records of deliveries. */
type History = Awaited<ReturnType<Relay['history']>>

/** The door of test messages. */
export const chatDoor = 'chat'

/** The most entries of an answer, and how many records a search goes back. */
const most = 20
const usual = 5
const depth = 1000
/** How many characters at the end of an ID name a delivery. Its beginning is the time, and alike for neighbours. */
const shortId = 8

/** The state of bots, queues and sources, as `GET /statusz`. */
export function status(request: Request, parts: Views): string {
  const { relay, bots } = parts
  const { say } = request
  const moment = momentIn(request)
  const standby = relay.standsBehind
  const failing = relay.queues().flatMap(({ target, waiting, block }) => block
    ? [say('status.queue', { target: writeTarget(target), waiting, reason: block.reason, until: untilIn(request, block.until) })]
    : [])
  const { size, oldest } = relay.backlog() ?? { size: 0 }
  return [
    ...standby === undefined ? [] : [say('status.standby', { owner: standby })],
    ...bots().map(({ platform, self_id: id, status: state, cause, words, since }) => {
      const values = { bot: `${platform}:${id}`, since: moment(since), reason: explain(cause, words) ?? '' }
      return say(cause === undefined ? `status.${state}` : 'status.trouble', values)
    }),
    ...bots().length === 0 ? [say('status.none')] : [],
    oldest === undefined ? say('status.backlog', { size }) : say('status.late', { size, since: moment(oldest) }),
    ...failing,
    ...lastCalls(request, parts),
  ].join('\n')
}

/** This chat, and the names of targets, as `GET /targets`. */
export function targets({ source: { bot, target }, say }: Request, { names }: Views): string {
  const lines = names.inForce().map(({ name, entry }) => {
    const reach = reachOf(name, entry, names).map(writeAddress)
    return say(entry.first ? 'targets.first' : 'targets.name', { name, reach: reach.join(entry.first ? ' → ' : ', ') })
  })
  return [say('targets.here', { target: writeAddress({ platform: bot.platform, target }) }), ...lines.length > 0 ? lines : [say('targets.none')]].join('\n')
}

/** Sends a test message as any other caller would, by default to this chat. */
export async function test(request: Request, written: string | undefined, parts: Views): Promise<string> {
  const { source: { target: here, bot: own }, account, say } = request
  const { relay, names } = parts
  const { list } = written === undefined ? { list: [{ target: here, bot: own }] } : parseDestinations(written, {}, names)
  const text = h.unescape(say('test.text', { account }))
  const lines = await Promise.all(list.map(async ({ target, bot, ...rest }) => {
    const message: MessageRequest = { mode: 'single', target, bot, urgent: true, items: [{ type: 'text', text }], ...'asked' in rest && { policy: rest.policy, route: rest.route } }
    const name = writeTarget(target)
    try {
      const { wait } = await relay.preview(message)
      if (wait) {
        return say('test.waits', { target: name, reason: wait.reason, until: untilIn(request, wait.until) })
      }
      const { delivery } = await relay.submit({ id: uuid(), door: chatDoor, request: message })
      const result = resultOf(delivery)
      if (result?.success === false) throw result.error
      return say('test.sent', { target: name, bot: delivery.bot, took: delivery.summary.platformTime })
    } catch (error) {
      return say('test.failed', { target: name, reason: RelayError.from(error).said })
    }
  }))
  return lines.join('\n')
}

/** The last deliveries, in a group those to this group: its members are not to read those to others. As `GET /deliveries`. */
export async function last(request: Request, written: string | undefined, { relay }: Views): Promise<string> {
  const { say } = request
  const count = written === undefined ? usual : Number(written)
  if (!(Number.isInteger(count) && count >= 1 && count <= most)) return say('last.count', { most })
  const found = await (await relay.history()).list({ ...here(request), limit: count })
  if (found.length === 0) return say('last.none')
  return [...found.map(delivery => describe(delivery, request, relay)), say('last.more', { id: idOf(found[0]) })].join('\n')
}

/**
 * Why a message did not arrive: that of an ID, or the last that did not arrive.
 *
 * @param id the ID of a delivery or the end of one, or a source such as `github`
 */
export async function why(request: Request, id: string | undefined, parts: Views): Promise<string> {
  const { say } = request
  const { relay } = parts
  const history = await relay.history()
  if (id === undefined) {
    const [newest] = await history.list({ ...here(request), states: ['queued', 'sending', 'failed', 'unanswered', 'expired'], limit: 1 })
    const lines = [...newest ? [tell(newest, request, parts)] : [], ...lastCalls(request, parts)]
    return lines.length > 0 ? lines.join('\n') : say('why.none')
  }
  const found = await find(history, id.toLowerCase())
  if (found) return tell(found, request, parts)
  const calls = lastCalls(request, parts, id)
  if (calls.length > 0) return calls.join('\n')
  const doors = await Promise.all([id, `hooks/${id}`].map(door => history.list({ ...here(request), door, limit: 1 })))
  const [newest] = doors.flat()
  return newest ? tell(newest, request, parts) : say('why.unknown', { id })
}

/** Finds a delivery by its ID, or by the end of its ID. */
async function find(history: History, id: string): Promise<Delivery | undefined> {
  if (/^[\da-f]{8}-[\da-f-]{27}$/.test(id)) return history.get(id)
  // Fewer characters may be those of several, or a source.
  return /^[\da-f]{6,}$/.test(id) ? (await history.list({ limit: depth })).find(each => each.id.endsWith(id)) : undefined
}

/** What became of a delivery, why, and what to do. */
function tell(delivery: Delivery, request: Request, parts: Views): string {
  const { say } = request
  const { relay } = parts
  const { state, results, flow: { route } } = delivery
  const wait = relay.waitOf(delivery)
  const head = describe(delivery, request, relay)
  const past = route?.past.map(({ target, reason }) => say('why.past', { target, reason })) ?? []
  if (isUnfinished(state)) {
    const reason = wait?.reason ?? say(state === 'sending' ? 'waits.sending' : 'waits.turn')
    // A pause ends by itself, but what fails stays as it is.
    const isStuck = wait?.until === null || wait?.cause === 'paused'
    return [head, ...past, say(isStuck ? 'why.held' : 'why.waits', { reason, until: untilIn(request, wait?.until ?? null) })].join('\n')
  }
  const result = resultOf({ results })
  const reason = result?.success === false ? result.error.said : ''
  return [head, ...past, say(`why.${state}`, { reason, attempts: delivery.attempts })].join('\n')
}

/** A delivery in one line. */
function describe(delivery: Delivery, request: Request, relay: Relay): string {
  const { door, target, createdAt, summary: { items } } = delivery
  const { say } = request
  const { state } = viewState(delivery, relay)
  const [text = ''] = items.flatMap(({ msg, name, type }) => msg ?? name ?? `[${type}]`)
  return say('delivery', {
    id: idOf(delivery), time: momentIn(request)(createdAt), door: door.replace(/^hooks\//, ''), target: writeTarget(target),
    state: say(`states.${state}`), text: text.split('\n')[0]?.slice(0, 40) ?? '',
  })
}

/** The last calls that made no message: refused, or skipped. @param id a door or a source; all by default */
function lastCalls(request: Request, { refusals }: Pick<Views, 'refusals'>, id?: string): string[] {
  const found = [...refusals.last].filter(([door]) => id === undefined || door === id || door === `hooks/${id}`)
  return found.toSorted(([, one], [, other]) => other.at - one.at).slice(0, usual).map(([door, { at, reason, isSkipped }]) => (
    request.say(isSkipped ? 'calls.skipped' : 'calls.refused', { door, time: momentIn(request)(at), reason })
  ))
}

/** In a group, its own deliveries. */
function here({ source: { bot: { platform }, target } }: Request): Partial<ListFilter> {
  return target.kind === 'private' ? {} : { targets: [{ ...target, platform }] }
}

function idOf(delivery: Delivery | undefined): string {
  return delivery?.id.slice(-shortId) ?? ''
}

function momentIn({ language }: Request): (at: number) => string {
  return at => writeMoment(at, Date.now(), language)
}

/** Until when something lasts, as the end of a sentence; empty if that is not known. */
function untilIn(request: Request, until: number | null): string {
  if (until === null) return ''
  return request.say('until', { time: momentIn(request)(until), span: writeSpan(Math.max(until - Date.now(), 0), request.language) })
}
