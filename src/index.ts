import type {} from '@koishijs/loader'
import type { Context, Session } from 'koishi'
import { join, resolve } from 'node:path'
import { MadeTargets } from './access/made-targets'
import { Refusals } from './access/refusals'
import { startAccess } from './access/start'
import { Usages } from './access/usage'
import { Alerts } from './alerts'
import { beatDoor, beatRoutes, startBeats } from './beats'
import { startChatConsole } from './chat'
import { chatDoor } from './chat/answers'
import { startCommands } from './commands'
import { keyFileName, provideKey } from './config/api-key'
import { startNotices } from './config/notices'
import type { Config } from './config/schema'
import { describeSettings, resolveSettings } from './config/settings'
import { serveConsole } from './console'
import { digestWriter, hookDoors, hookRoutes, LastPayloads, Sources, Templates } from './hooks'
import { httpRoutes } from './http'
import { MediaLinks } from './http/files'
import { registerRoutes } from './http/routes'
import { Sender } from './http/sender'
import { Callback } from './incidents/callback'
import { startChat } from './incidents/chat'
import { Incidents, type Hand } from './incidents/incidents'
import { Roster } from './incidents/people'
import { incidentDoor, Recorder } from './incidents/recorder'
import { countIncidents } from './incidents/table'
import { InFlight } from './lib/async'
import { httpOf } from './lib/endpoint'
import { unwrap } from './lib/koishi'
import { Log } from './lib/log'
import { languageOf, languageOfMachine } from './texts/language'
import { say } from './texts/text'
import { fieldsOf } from './lib/shape'
import { day } from './lib/time'
import { parseNames } from './message/names'
import { Metrics } from './metrics'
import { oneBotRoutes } from './onebot-api'
import { Presence, reportBots } from './platform/presence'
import { HttpAccount } from './platform/http/account'
import { Incoming } from './platform/incoming'
import { Bots, type BotState } from './platform/bots'
import { platforms, startPlatforms } from './platform/platforms'
import { systemClock } from './relay/clock'
import { startRelay } from './relay/start'
import type { Store } from './relay/store/store'
import { alertDoor, tellAll } from './relay/options'
import { digestDoor } from './relay/queue/bundle'
import { announceEnds, announceIncidents, MessageRelay, pluginDoor } from './service'
import { scheduleSweeps, UploadStore } from './uploads/store'

export { Config, usage } from './config/schema'
export type { RelayError } from './errors'
export type {
  MessageRelay, RelayContent, RelayDelivery, RelayIncident, RelayIncidentEntry, RelayItem, RelayPostOptions, RelaySendOptions, RelaySource,
} from './service'

export const name = 'message-relay'
export const inject = ['server']

/** The built-in doors. Other names of sources are further ones. */
const doors = ['webhook', 'send', 'onebot', 'commands', chatDoor, pluginDoor, alertDoor, digestDoor, incidentDoor, beatDoor, ...hookDoors]

/** Wires the parts together. */
export function apply(ctx: Context, config: Config): void {
  // The config page passes `${{ env.KEY }}` as it is written: @koishijs/loader 4.6.11 replaces it only at the start (upstream/16).
  const written = fieldsOf(ctx.get('loader')?.interpolate(config) ?? config)
  const { settings, origins, warnings } = resolveSettings(written, process.env)
  const language = settings.language || languageOf(ctx.i18n.fallback([]))
  const logger = new Log(ctx.logger(name), settings.language || languageOfMachine())
  const warn = startNotices(ctx, logger)
  warn('settings', warnings)
  logger.info(describeSettings(origins))
  const presence = Presence.of(ctx)
  reportBots(ctx, presence, logger)
  startPlatforms(ctx, presence, logger)

  const dataDir = resolve(ctx.baseDir, settings.dataDir)
  const apiKey = provideKey(unwrap(ctx.root), settings.apiKey, dataDir, logger)
  if (apiKey === undefined) return
  const store = (): Store => relay.store
  const roster = new Roster({ people: settings.people, rotas: settings.rotas, store, logger, usersOf: word => names.thatCall(word) })
  const isCalled = (word: string): boolean => roster.has(word)
  const { names: fixedNames, warnings: nameWarnings } = parseNames(settings.targets, word => roster.isFixed(word))
  warn('people', roster.warnings)
  warn('targets', nameWarnings)
  const names = new MadeTargets({ fixed: fixedNames, store, logger, usersOf: name => beats.thatTell(name) }, isCalled)

  // Read once, because access through the context is slow.
  const { server } = ctx
  const metrics = Metrics.of(ctx, doors)
  const alerts = Alerts.to(settings.alertTo, fixedNames, ctx, logger, warn)
  const uploads = new UploadStore(resolve(ctx.baseDir, settings.uploadDir), (files, bytes) => metrics.received(files, bytes))
  const publicUrl = (): string => settings.selfUrl || server.config.selfUrl || ''
  const links = new MediaLinks(() => (publicUrl() || server.selfUrl) + settings.path, apiKey)
  // Some timers accept only whole numbers.
  const timeout = Math.ceil(settings.chatApiTimeout * 1000)
  const stop = new AbortController()
  const port = new Bots(ctx, presence, platforms, [new HttpAccount({ http: () => httpOf(ctx), names, timeout, stop: stop.signal })])
  const inFlight = new InFlight()
  const sources = new Sources()
  const templates = new Templates(join(dataDir, 'templates'), settings.pictureHosts)
  const recorder = new Recorder({ clock: systemClock, names, directory: roster, language, port, store, logger })
  const usages = new Usages(store)
  const { relay, ended } = startRelay(ctx, settings, {
    port, logger, dataDir, timeout,
    writeDigest: digestWriter(templates, language, logger),
    media: { resolve: id => uploads.resolve(id), link: file => links.to(file) },
    files: uploads,
    enter: () => inFlight.tryToEnter(),
    observer: tellAll([recorder, metrics, usages, announceEnds(ctx, logger), ...alerts ? [alerts] : []]),
  })

  const bots = (): BotState[] => port.describe(relay.restricted())
  stop.signal.addEventListener('abort', () => relay.end())
  const { access, fixedKeys, madeKeys, save } = startAccess(ctx, {
    apiKey, keys: settings.keys, targets: names, usages, store, dataDir, logger, warn,
  })
  const payloads = new LastPayloads(store, settings.recordContent !== 'none')
  ctx.setInterval(() => payloads.write(), 1_000)
  const { incidentCallbackUrl: incidentUrl, incidentCallbackSecret: incidentSecret } = settings
  const callback = new Callback({
    // Nothing is posted without the signature that its receiver expects.
    url: incidentSecret === undefined ? '' : incidentUrl, secret: incidentSecret ?? '', timeout, stop: stop.signal,
    clock: systemClock, http: () => httpOf(ctx), logger, ackOf: name => names.get(name)?.ack,
    hearers: [announceIncidents(ctx, logger), ({ since }, { kind, at }) => metrics.happened(kind, at - since)],
  })
  const incidents = new Incidents({
    clock: systemClock, relay, recorder, names, directory: roster, language, logger, retention: settings.recordRetention * day,
    tell: (incident, entries) => callback.tell(incident, entries),
  })
  ctx.effect(() => incidents.start())
  const hand: Hand = submission => incidents.submit(submission)
  const beats = startBeats(ctx, settings.beats, fixedNames, { store, submit: hand, names, language, logger, warn })
  const sender = new Sender(relay, hand, settings.path, isCalled)
  const limits = { maxSize: settings.maxBodySize, advice: say('max-body-size') }
  void templates.check().then(warnings => warn('templates', warnings))
  const refusals = new Refusals()
  const readMetrics = (): ReturnType<Metrics['read']> => metrics.read({
    bots, queues: () => relay.queues(), capacity: settings.chatQueueLimit, backlog: () => relay.backlog(), refusals: () => refusals.counts,
    incidents: () => store().failure ? undefined : countIncidents(store()), beats: () => store().failure ? undefined : beats.counts(),
  })
  registerRoutes(server, [
    ...httpRoutes({
      relay, sender, names, roster, incidents, access, refusals, uploads, links, bots, isOnline: () => port.isOnline, readMetrics, limits,
      fixedKeys, madeKeys,
    }, settings),
    ...hookRoutes({ access, refusals, sender, sources, templates, names, logger, limits, language, payloads }),
    ...oneBotRoutes({ sender, limits, relay }),
    ...beatRoutes(beats, names, relay, settings.path),
  ], {
    prefix: settings.path, access, ready: () => relay.active().catch(() => undefined), trustedProxies: settings.trustedProxies, inFlight,
    refusals, logger, observer: metrics, stop: stop.signal,
  })
  serveConsole(ctx, {
    server,
    prefix: settings.path,
    // The folder is next to both src/ and lib/, so that this path holds before and after the build.
    page: join(__dirname, '../dist'),
    access,
    publicUrl,
    about: () => ({
      sources: [...new Set([...sources.names(), ...templates.names()])],
      maxUploadSize: settings.maxUploadSize,
      ...!settings.apiKey && { keyFile: join(settings.dataDir, keyFileName) },
    }),
    stop: stop.signal,
  })
  const incoming = platforms.flatMap(platform => platform.incoming ?? [])
  const readIncoming = (session: Session): Incoming => new Incoming(session, incoming)
  startChat(ctx, { incidents, directory: roster, relay, readIncoming, logger })
  // Of the middlewares that are put first, the later one comes first.
  startCommands(ctx, settings, { relay, readIncoming, inFlight, logger, warn, timeout })
  startChatConsole(ctx, settings, {
    relay, names, access, madeKeys, refusals, sources, templates, bots, readIncoming, language, logger,
    address: () => ({ url: (publicUrl() || server.selfUrl) + settings.path, isPublic: publicUrl() !== '' }),
  })
  alerts?.start({ relay, timeout, stop: stop.signal, bots, language })
  scheduleSweeps(ctx, uploads, logger)
  ctx.plugin(MessageRelay, { relay, hand, names, isCalled, sources, inFlight, language: logger.language })

  /** Stops within five seconds: present work has four to end; the rest is then cut off, with half a second for its answers. */
  const shut = async (): Promise<void> => {
    await inFlight.drain(4_000)
    save()
    payloads.write()
    stop.abort()
    await inFlight.drain(500)
    await ended.finally(() => port.close())
  }
  ctx.on('exit', () => {
    // A signal also ends the other process of `koishi start`. Koishi 4.18.11 then crashes (upstream/17).
    process.on('error', () => undefined)
    return shut()
  })
  ctx.on('dispose', shut)
}
