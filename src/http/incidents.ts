import type { Caller } from '../access/caller'
import type { MadeTargets } from '../access/made-targets'
import { demand, RelayError } from '../errors'
import { actions, incidentStates, silences, type Actor, type Incident } from '../incidents/incident'
import type { Incidents } from '../incidents/incidents'
import type { Directory } from '../incidents/people'
import { viewEntry, viewIncident } from '../incidents/views'
import { quoted } from '../lib/log'
import { isString } from '../lib/shape'
import { parseDuration, parseTime } from '../lib/time'
import { readValue } from '../lib/words'
import { isName, reachOf, toName } from '../message/target'
import type { Relay } from '../relay/relay'
import { say } from '../texts/text'
import { hasBody, readFields, readJson } from './body'
import { byCaller, route, type Exchange, type Route } from './routes'

/** The parts of the plugin that the routes need. */
export interface IncidentParts {
  relay: Pick<Relay, 'active'>
  incidents: Pick<Incidents, 'act' | 'get' | 'list'>
  names: Pick<MadeTargets, 'get' | 'list'>
  directory: Pick<Directory, 'whom'>
}

/** The bounds of a body. */
const limits = { maxSize: 64 * 1024 }
/** The most characters of the name of somebody. */
const longestBy = 64

/** `GET /incidents`, `GET /incidents/<id>`, and `POST /incidents/<id>/<action>`. */
export function incidentRoutes({ relay, incidents, names, directory }: IncidentParts): Route[] {
  const maySee = (caller: Caller, name: string): boolean => {
    const named = names.get(name)
    return caller.may('admin') || (named !== undefined && caller.maySendToAll(reachOf(name, named, names), name))
  }

  /** The incident of a request. @throws RelayError `not-found`, also for one that the caller may not see; `standby` */
  const find = async (exchange: Exchange): Promise<Incident> => {
    await relay.active()
    const { caller, params: { id = '' } } = exchange
    const found = /^\w{1,16}$/.test(id) ? incidents.get(id.toLowerCase()) : undefined
    if (!found || !maySee(caller, found.name)) throw new RelayError('not-found', say('no-such-incident'))
    exchange.target = found.name
    return found
  }

  /** @returns an incident with its timeline */
  const show = (incident: Incident): object => ({
    ...viewIncident(incident, names.get(incident.name)?.ack), timeline: incident.timeline.map(viewEntry),
  })

  return [
    route('GET', '/incidents', ['read', 'manage'], async ({ caller, query }) => {
      await relay.active()
      const states = readValue('state', query.get('state'), parseStates, say('some-of', { choices: incidentStates })) ?? []
      const since = readValue('since', query.get('since'), readTime, say('time-rule')) ?? 0
      const asked = readValue('target', query.get('target'), parseName, say('name-from-list'))
      const all = asked !== undefined ? [asked] : caller.may('admin') ? undefined : names.list().map(({ name }) => name)
      const wanted = all?.filter(name => maySee(caller, name))
      // An empty list of names would be no filter.
      const found = wanted?.length === 0 ? [] : incidents.list({ states, names: wanted ?? [], since })
      return { data: { incidents: found.map(incident => viewIncident(incident, names.get(incident.name)?.ack)) } }
    }, { quiet: true }),
    route('GET', '/incidents/:id', ['read', 'manage'], async exchange => ({ data: show(await find(exchange)) })),
    route('POST', '/incidents/:id/:action', ['manage'], async exchange => {
      const action = actions.find(each => each === exchange.params.action)
      if (!action) throw new RelayError('not-found', say('no-such-action', { actions }))
      const { by, until, ...others } = readFields(hasBody(exchange) ? await readJson(exchange, limits) : {})
      const [unknown = until === undefined || action === 'silence' ? undefined : 'until'] = Object.keys(others)
      demand(unknown === undefined, say('action-no-field', { action, field: quoted(unknown ?? '') }))
      const end = action === 'silence' ? { until: readUntil(until, Date.now()) } : {}
      // After the body, which may take long: the key may have been revoked meanwhile.
      const { id } = await find(exchange)
      const incident = await incidents.act(id, action, readActor(by, exchange, directory), end)
      return { data: show(incident), log: say('incident-is', { id, state: incident.state, by: byCaller(exchange) }) }
    }),
  ]
}

function parseName(text: string): string | undefined {
  const name = toName(text)
  return isName(name) ? name : undefined
}

function parseStates(text: string): Incident['state'][] | undefined {
  const words = text.split(',')
  const found = incidentStates.filter(state => words.includes(state))
  return found.length < new Set(words).size ? undefined : found
}

/** Who acts: as the caller names them, which may be the name of a person, else by the name of the key. @throws RelayError `bad-request` */
function readActor(by: unknown, { caller: { name } }: Exchange, directory: Pick<Directory, 'whom'>): Actor {
  const parse = (value: unknown): string | undefined => isString(value) && isPrintable(value.trim()) ? value.trim() : undefined
  const written = readValue('by', by, parse, say('line-rule', { most: longestBy }))
  const word = toName(written ?? '')
  const person = directory.whom([word], '', Date.now()).find(called => called.person === word)
  return {
    name: person?.name ?? written ?? name ?? 'master key', ...person && { person: word }, ...name !== null && { key: name }, way: 'http',
  }
}

function isPrintable(text: string): boolean {
  return Array.from(text).length <= longestBy && !/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(text)
}

/** A date-time with an offset, in milliseconds since the epoch; `undefined` for any other text. */
function readTime(text: string): number | undefined {
  const time = parseTime(text.trim())
  return Number.isNaN(time) ? undefined : time
}

/** When a silence ends, in milliseconds since the epoch. @throws RelayError `bad-request` */
function readUntil(value: unknown, now: number): number {
  const parse = (written: unknown): number | undefined => {
    const span = parseDuration(written)
    return span === undefined ? isString(written) ? readTime(written) : undefined : now + span
  }
  const rule = say('until-rule')
  const until = readValue('until', value, parse, rule) ?? now + silences.usual
  demand(until >= now + silences.least && until <= now + silences.most, say('silence-bounds'))
  return until
}
