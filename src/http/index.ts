import type { Server } from '@koishijs/plugin-server'
import type { TargetNames } from '../message/model'
import type { Relay } from '../relay/relay'
import { parseExtensions } from '../uploads/names'
import type { UploadStore } from '../uploads/store'
import { contactsRoute } from './contacts'
import { deliveryRoutes } from './deliveries'
import { mediaRoute, uploadRoute, type MediaLinks } from './files'
import { healthRoute, metricsRoute, readyRoute, statusRoute, type BotState } from './monitoring'
import { queueRoutes } from './queues'
import { registerRoutes, type Route, type RouteOptions } from './routes'
import { sendRoutes } from './send'
import type { Sender } from './sender'
import { webhookRoute } from './webhook'

export { adminRoutes } from './admin'
export { MediaLinks } from './files'
export { Sender } from './sender'

/** What the routes of the plugin need of the rest of it. */
export interface HttpOptions {
  /** Sizes are in bytes. */
  limits: { maxBodySize: number, maxUploadSize: number, allowedExtensions: readonly string[] }
  relay: Relay
  sender: Sender
  uploads: UploadStore
  links: MediaLinks
  /** Those that may stand for targets. */
  names: TargetNames
  /** Whether any bot is online. */
  isOnline: () => boolean
  bots: () => BotState[]
  /** Gives what was counted, as Prometheus reads it, and its Content-Type. */
  metrics: () => Promise<{ type: string, body: string }>
  /** Those of other doors. */
  others: readonly Route[]
}

/** Serves everything that callers reach by HTTP, until the plugin is disposed. */
export function serveHttp(server: Server, routing: RouteOptions, options: HttpOptions): void {
  const { limits, relay, sender, uploads, links, names, isOnline, bots, metrics, others } = options
  const { prefix } = routing
  const { inquiries } = relay
  const text = { maxSize: limits.maxBodySize }
  const files = { maxFileSize: limits.maxUploadSize, allowedExtensions: parseExtensions(limits.allowedExtensions) }
  registerRoutes(server, [
    healthRoute,
    readyRoute(relay, isOnline),
    statusRoute(relay, bots, routing),
    metricsRoute(metrics),
    uploadRoute(uploads, relay, files),
    mediaRoute(uploads, links),
    webhookRoute(sender, names, text),
    ...sendRoutes({ sender, uploads, names, limits: { text, files } }),
    ...deliveryRoutes(relay, names, uploads, prefix),
    ...queueRoutes(relay),
    contactsRoute(inquiries),
    ...others,
  ], routing)
}
