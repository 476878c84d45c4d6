import type { Access } from '../access/access'
import type { Refusals } from '../access/refusals'
import type { MadeTargets } from '../access/made-targets'
import type { Roster } from '../incidents/people'
import type { BodyLimits } from './body'
import type { Relay } from '../relay/relay'
import { parseExtensions } from '../uploads/names'
import type { UploadStore } from '../uploads/store'
import { adminRoutes, type AdminOptions } from './admin'
import { backupRoute } from './backup'
import { contactsRoute } from './contacts'
import { deliveryRoutes } from './deliveries'
import { mediaRoute, uploadRoute, type MediaLinks } from './files'
import { healthRoute, metricsRoute, readyRoute, statusRoute } from './monitoring'
import { incidentRoutes, type IncidentParts } from './incidents'
import { peopleRoutes } from './people'
import { queueRoutes } from './queues'
import type { Route } from './routes'
import { sendRoutes } from './send'
import type { Sender } from './sender'
import { webhookRoute } from './webhook'

/** What the routes of this folder are about. */
export interface HttpParts extends Pick<AdminOptions, 'fixedKeys' | 'madeKeys'>, Pick<IncidentParts, 'incidents'> {
  relay: Relay
  sender: Sender
  names: MadeTargets
  roster: Roster
  access: Access
  refusals: Refusals
  uploads: UploadStore
  links: MediaLinks
  /** The bots, to be shown, and whether one is online. */
  bots: () => readonly { since: number }[]
  isOnline: () => boolean
  readMetrics: Parameters<typeof metricsRoute>[0]
  limits: BodyLimits
}

/** The settings of the same names. */
interface HttpSettings {
  path: string
  maxUploadSize: number
  allowedExtensions: Parameters<typeof parseExtensions>[0]
}

/** The routes of this folder. */
export function httpRoutes(
  {
    relay, sender, names, roster, incidents, access, refusals, uploads, links, bots, isOnline, readMetrics, limits, fixedKeys, madeKeys,
  }: HttpParts,
  { path, maxUploadSize, allowedExtensions }: HttpSettings,
): Route[] {
  const files = { maxFileSize: maxUploadSize, allowedExtensions: parseExtensions(allowedExtensions) }
  return [
    healthRoute,
    readyRoute(relay, isOnline),
    statusRoute(relay, bots, { access, refusals }),
    metricsRoute(readMetrics),
    uploadRoute(uploads, relay, files),
    mediaRoute(uploads, links),
    webhookRoute(sender, names, limits),
    ...sendRoutes({ sender, uploads, names, limits: { text: limits, files } }),
    ...deliveryRoutes(relay, names, uploads, path),
    ...queueRoutes(relay),
    ...incidentRoutes({ relay, incidents, names, directory: roster }),
    contactsRoute(relay.inquiries),
    ...adminRoutes({ access, fixedKeys, madeKeys, targets: names, relay }),
    ...peopleRoutes(relay, roster),
    backupRoute(() => relay.store),
  ]
}
