import type { Listed } from '../access/made'
import type { Person, Roster } from '../incidents/people'
import { onDuty, type Rota } from '../incidents/rota'
import { toIso } from '../lib/time'
import type { Relay } from '../relay/relay'
import { readFields, readJson } from './body'
import { adminLimits, changeRoute, madeRoutes } from './made'
import { route, type Route } from './routes'
import { say } from '../texts/text'

/**
 * `GET /people` and `/rotas`, `PUT` and `DELETE` of those that are made while the relay runs, and `POST /rotas/<name>/swaps`: who can be
 * called, and who is on duty.
 */
export function peopleRoutes(relay: Pick<Relay, 'standsBehind'>, roster: Roster): Route[] {
  const viewRota = ({ name, entry, source }: Listed<Rota>): object => {
    const now = Date.now()
    const swaps = roster.swapsOf(name, now)
    const { who, until } = onDuty(entry, swaps, now)
    const { people, every, from, zone } = entry
    return {
      name, people, every: every / 1000, from: toIso(from), zone, now: who, ...until !== undefined && { until: toIso(until) },
      swaps: swaps.map(swap => ({ from: toIso(swap.from), until: toIso(swap.until), who: swap.who })), source,
    }
  }
  return [
    route('GET', '/people', ['read', 'admin'], () => ({ data: { people: roster.people.list().map(viewPerson) } })),
    ...madeRoutes(relay, 'people', say('kind-person'), roster.people, viewPerson),
    route('GET', '/rotas', ['read', 'admin'], () => ({ data: { rotas: roster.rotas.list().map(viewRota) } })),
    ...madeRoutes(relay, 'rotas', say('kind-rota'), roster.rotas, viewRota),
    changeRoute(relay, 'POST', '/rotas/:name/swaps', async (written, exchange) => {
      const { name, who } = await roster.swap(written, readFields(await readJson(exchange, adminLimits)))
      const listed = roster.rotas.inForce().filter(rota => rota.name === name)
      return { data: { ...listed.map(viewRota)[0] }, log: say('rota-given', { name: JSON.stringify(name), who: JSON.stringify(who) }) }
    }),
  ]
}

/** The field `person` is what `PUT` takes: accounts by platform, and the name for texts. */
function viewPerson({ name, entry, source }: Listed<Person>): object {
  return { name, person: { ...Object.fromEntries(entry.accounts), ...entry.name !== undefined && { name: entry.name } }, source }
}
