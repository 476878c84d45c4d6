import type { Access } from '../access/access'
import type { KeyView } from '../access/keys'
import type { MadeKey, MadeKeys } from '../access/made-keys'
import type { Listed } from '../access/made'
import type { MadeTargets } from '../access/made-targets'
import { demand } from '../errors'
import { toIso } from '../lib/time'
import type { Ack, Named, Way, TargetNames } from '../message/model'
import { writeMinutes } from '../message/quiet'
import { reachOf, skippedWays, writeAddress } from '../message/target'
import type { Relay } from '../relay/relay'
import { say } from '../texts/text'
import { hasBody, readFields, readJson } from './body'
import { adminLimits, changeRoute, madeRoutes } from './made'
import { route, type Route } from './routes'

/** The parts of the plugin that the routes need. */
export interface AdminOptions {
  access: Pick<Access, 'usage'>
  /** The keys of the settings. */
  fixedKeys: readonly KeyView[]
  madeKeys: MadeKeys
  targets: MadeTargets
  relay: Pick<Relay, 'standsBehind'>
}

/**
 * `GET` and `POST /keys`, `POST /keys/<name>/rotate`, `DELETE /keys/<name>`: the keys besides the master key. `GET /targets`, `PUT` and
 * `DELETE /targets/<name>`: the names of targets.
 */
export function adminRoutes(options: AdminOptions): Route[] {
  const { access, fixedKeys, madeKeys, targets, relay } = options

  /** Views a key that was just made or rotated. */
  const show = (name: string): object => {
    const made = madeKeys.list().find(each => each.name === name)
    return made ? viewKey(made, access.usage()) : {}
  }

  const change = changeRoute.bind(undefined, relay)

  return [
    route('GET', '/keys', ['read', 'admin'], ({ caller }) => {
      const all = [...fixedKeys, ...madeKeys.list()]
      const own = caller.may('admin') ? all : all.filter(({ name }) => name === caller.name)
      const usage = access.usage()
      return { data: { keys: own.map(key => viewKey(key, usage)) } }
    }),
    change('POST', '/keys', async (_, exchange) => {
      const { name, ...secrets } = await madeKeys.create(readFields(await readJson(exchange, adminLimits)))
      return { status: 201, data: { ...show(name), ...secrets }, log: say('entry-made', { kind: say('kind-key'), name: JSON.stringify(name) }) }
    }),
    change('POST', '/keys/:name/rotate', async (name, exchange) => {
      const { grace, ...others } = readFields(hasBody(exchange) ? await readJson(exchange, adminLimits) : {})
      // With a misspelt `grace`, the old key would end at once.
      demand(Object.keys(others).length === 0, say('only-grace'))
      const secrets = await madeKeys.rotate(name, grace)
      return { data: { ...show(name), ...secrets }, log: say('key-replaced', { name: JSON.stringify(name) }) }
    }),
    change('DELETE', '/keys/:name', async name => {
      await madeKeys.remove(name)
      return { data: { name }, log: say('entry-removed', { kind: say('kind-key'), name: JSON.stringify(name) }) }
    }),
    route('GET', '/targets', ['read', 'admin'], ({ caller }) => {
      const maySee = ({ name, entry }: Listed<Named>): boolean => caller.may('admin')
        || caller.maySendToAll(reachOf(name, entry, targets), name)
      return { data: { targets: targets.list().filter(maySee).map(listed => viewTarget(listed, targets, caller.may('admin'))) } }
    }),
    ...madeRoutes(relay, 'targets', say('kind-target'), targets, listed => viewTarget(listed, targets, true)),
  ]
}

/** @param isWhole whether HTTP addresses show their path and query, which may be secret */
function viewTarget({ name, entry, source }: Listed<Named>, names: TargetNames, isWhole: boolean): object {
  const { addresses, lang, first, policy, mention, ack } = entry
  const { digest, quiet } = policy ?? {}
  const skipped = skippedWays(entry, names)
  return {
    name,
    ...first
      ? { first: first.ways.map(way => viewWay(way, isWhole)), after: first.after / 1000, when_unknown: first.whenUnknown }
      : { to: addresses.map(writeAddress) },
    ...skipped.length > 0 && { skipped },
    ...digest !== undefined && { digest: digest / 1000 },
    ...quiet && { quiet: { ...quiet, from: writeMinutes(quiet.from), to: writeMinutes(quiet.to) } },
    ...lang && { lang },
    ...mention && { mention },
    ...ack && { ack: viewAck(ack) },
    source,
  }
}

function viewAck({ from, who, remind, escalate }: Ack): object {
  return {
    from, ...who && { who }, ...remind !== undefined && { remind: remind / 1000 },
    escalate: escalate.map(({ after, mention, to, again }) => ({
      after: after / 1000, ...mention.length > 0 && { mention }, ...to !== undefined && { to },
      ...again !== undefined && { again: again / 1000 },
    })),
  }
}

function viewWay(way: Way, isWhole: boolean): unknown {
  if ('target' in way) return writeAddress(way)
  if ('name' in way) return way.name
  const { url, secret, format } = way
  return { url: isWhole ? url : new URL(url).origin, ...secret !== undefined && { secret: true }, ...format && { format } }
}

/** A key as callers see it, without its secrets. */
function viewKey({ expires, createdAt, ...rest }: KeyView & Partial<MadeKey>, usage: ReturnType<Access['usage']>): object {
  const { last = 0, accepted = 0, sent = 0, failed = 0, refused = 0 } = usage.get(rest.name) ?? {}
  return {
    ...rest,
    ...expires !== undefined && { expires: toIso(expires) },
    source: createdAt === undefined ? 'settings' : 'made',
    ...createdAt !== undefined && { created_at: createdAt },
    ...last > 0 && { last_used_at: toIso(last) },
    accepted, sent, failed, refused,
  }
}
