import type { Caller } from '../access/caller'
import type { Listed } from '../access/made'
import { demand, RelayError } from '../errors'
import { hasBody, readBody } from '../http/body'
import { changeRoute, madeRoutes } from '../http/made'
import { route, type Exchange, type PlainAnswer, type Route } from '../http/routes'
import { decodeUnnamed } from '../lib/bytes'
import { toIso } from '../lib/time'
import type { TargetNames } from '../message/model'
import { parseDestinations, toName, waysOf } from '../message/target'
import type { Relay } from '../relay/relay'
import type { Sign } from './beat'
import type { Beats } from './beats'
import type { BeatRule } from './rule'
import type { Row } from './table'
import { say, type Text } from '../texts/text'

/** How much of a body is kept, in bytes: its end. */
const bodyLimit = 10_000
const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

/**
 * `/beats`, `/beats/<name>`, and `POST` behind it: the beats, and their signs by a key. `/ping/<secret>[/<sign>]`: signs in the protocol
 * of healthchecks.io.
 *
 * @param prefix of the plugin's paths
 */
export function beatRoutes(beats: Beats, names: TargetNames, relay: Pick<Relay, 'standsBehind' | 'active'>, prefix: string): Route[] {
  const { rules } = beats

  /** A beat that may tell only targets that the caller may send to. @throws RelayError `not-found` */
  const find = ({ params, caller }: Exchange): Listed<BeatRule> => {
    const name = toName(params.name ?? '')
    const found = rules.inForce().find(each => each.name === name)
    if (!found || !mayKnow(caller, found.entry, names)) throw new RelayError('not-found', say('no-such-beat'))
    return found
  }
  const show = (listed: Listed<BeatRule>, isAdmin: boolean): object => {
    const row = beats.read(listed.name)
    const { secret, beat: { log } } = row
    return { ...view(row, listed), ...log !== undefined && { log }, ...isAdmin && { ping: `${prefix}/ping/${secret}` } }
  }
  const change = (verb: string, done: 'beat-rotated' | 'beat-paused' | 'beat-resumed', act: (name: string) => Promise<Row>): Route => (
    changeRoute(relay, 'POST', `/beats/:name/${verb}`, async (_, exchange) => {
      const listed = find(exchange)
      await act(listed.name)
      return { data: show(listed, true), log: say(done, { name: JSON.stringify(listed.name) }) }
    })
  )
  const signed = (path: string): Route => route('POST', path, ['send'], async exchange => {
    const { name } = find(exchange)
    const { beat: { state } } = await beats.sign(name, await readSign(exchange))
    return { data: { name, state } }
  }, { quiet: true })
  const pinged = (method: 'GET' | 'POST', path: string): Route => ({
    ...route(method, path, 'anyone', async exchange => {
      await relay.active()
      const name = beats.find(exchange.params.secret ?? '')
      exchange.target = `beat:${name}`
      await beats.sign(name, await readSign(exchange))
      return plain(200, 'OK', { 'ping-body-limit': String(bodyLimit) })
    }, { quiet: true }),
    fail: error => plain(error.status, error.said),
  })

  return [
    route('GET', '/beats', ['read', 'admin'], ({ caller }) => {
      const known = rules.inForce().filter(({ entry }) => mayKnow(caller, entry, names))
      return { data: { beats: beats.withRows(known).map(([listed, row]) => view(row, listed)) } }
    }, { quiet: true }),
    route('GET', '/beats/:name', ['read', 'admin'], exchange => ({ data: show(find(exchange), exchange.caller.may('admin')) })),
    signed('/beats/:name'),
    ...madeRoutes(relay, 'beats', say('kind-beat'), beats, listed => show(listed, true)),
    change('rotate', 'beat-rotated', name => beats.rotate(name)),
    change('pause', 'beat-paused', name => beats.setPaused(name, true)),
    change('resume', 'beat-resumed', name => beats.setPaused(name, false)),
    // The router takes the first path that fits.
    signed('/beats/:name/:sign'),
    ...['/ping/:secret', '/ping/:secret/:sign'].flatMap(path => [pinged('GET', path), pinged('POST', path)]),
  ]
}

/** Whether a caller may send to all targets of a beat, or may administer it. */
function mayKnow(caller: Caller, { to }: BeatRule, names: TargetNames): boolean {
  if (caller.may('admin')) return true
  try {
    const { list } = parseDestinations(to, {}, names)
    return list.every(each => caller.maySendToAll(waysOf(each), each.asked))
  } catch {
    return false
  }
}

/** @throws RelayError `not-found`, `bad-request`, or as `readBody` */
async function readSign(exchange: Exchange): Promise<Sign> {
  const { params: { sign: word }, query } = exchange
  const run = query.get('rid') ?? undefined
  demand(run === undefined || uuid.test(run), say('run-id'))
  const status = word !== undefined && /^\d+$/.test(word) ? Number(word) : undefined
  demand(status === undefined || status <= 255, say('exit-status'))
  const kind = status === undefined ? kinds.get(word) : status === 0 ? 'good' : 'bad'
  if (!kind) throw new RelayError('not-found', say('beat-signs'))
  const body = hasBody(exchange) ? (await readBody(exchange, { maxSize: Infinity, tail: bodyLimit })).subarray(-bodyLimit) : Buffer.alloc(0)
  // Without the rest of a character that is cut at the beginning.
  const start = body.findIndex(byte => (byte & 0xc0) !== 0x80)
  return { kind, run: run?.toLowerCase(), status, ...body.length > 0 && { log: decodeUnnamed(body.subarray(Math.max(start, 0))) } }
}

const kinds: ReadonlyMap<string | undefined, Sign['kind']> = new Map([[undefined, 'good'], ['start', 'start'], ['fail', 'bad'], ['log', 'log']])

function plain(status: number, body: string | Text, headers?: PlainAnswer['headers']): PlainAnswer {
  return { status, type: 'text/plain; charset=utf-8', body, ...headers && { headers } }
}

/** A beat as callers see it. Times of rules are in seconds. */
function view({ beat }: Row, { name, entry, source }: Listed<BeatRule>): object {
  const { state, due, last, duration, status } = beat
  const { every, cron, zone, grace, severity, to } = entry
  const at = (time: number | undefined): string | null => time === undefined ? null : toIso(time)
  return {
    name, state, last: at(last), next: at(due !== undefined && state === 'started' ? due + grace : due),
    duration: duration === undefined ? null : duration / 1000, target: to.join(), ...status !== undefined && { status },
    ...every === undefined ? { cron, zone } : { every: every / 1000 }, grace: grace / 1000, severity, source,
  }
}
