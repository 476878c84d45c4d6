import type { Server } from '@koishijs/plugin-server'
import type { Registry } from '../relay/registry'
import type { Submissions } from '../relay/submissions'
import { parseExtensions } from '../uploads/names'
import type { UploadStore } from '../uploads/store'
import { deliveryRoutes } from './deliveries'
import { mediaRoute, uploadRoute, type MediaLinks } from './files'
import { healthRoute, readyRoute, statusRoute, type StatusSources } from './health'
import { registerRoutes, type RouteOptions } from './routes'
import { webhookRoute } from './webhook'

export { createKeyCheck } from './auth'
export { MediaLinks } from './files'

/** What the routes of the plugin need of the rest of it. */
export interface HttpOptions {
  /** Sizes are in bytes. */
  limits: { maxBodySize: number, maxUploadSize: number, allowedExtensions: readonly string[] }
  submissions: Submissions
  registry: Registry
  uploads: UploadStore
  links: MediaLinks
  /** Whether a message could be sent now. */
  isReady: () => Promise<boolean>
  status: StatusSources
  /** Aborted when the relay stops. */
  stop: AbortSignal
}

/** Serves everything that callers reach by HTTP, until the plugin is disposed. */
export function serveHttp(server: Server, routing: RouteOptions, options: HttpOptions): void {
  const { limits, submissions, registry, uploads, links, stop } = options
  const { prefix } = routing
  registerRoutes(server, [
    healthRoute,
    readyRoute(options.isReady),
    statusRoute(options.status),
    uploadRoute(uploads, { maxFileSize: limits.maxUploadSize, allowedExtensions: parseExtensions(limits.allowedExtensions) }, stop),
    mediaRoute(uploads, links),
    webhookRoute(submissions, prefix, { maxSize: limits.maxBodySize }, stop),
    ...deliveryRoutes(registry, prefix),
  ], routing)
}
