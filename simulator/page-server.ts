import type { IncomingMessage, ServerResponse } from 'node:http'
import { serveEvents } from './page-events'
import { serveMedium } from './page-media'
import { servePageFile } from './page-files'
import { readSaying } from './page-say'
import { pageState } from './page-view'
import { refusal } from './guards'
import type { Platform } from './platform'

const contentPolicy = [
  'default-src \'self\'',
  'img-src \'self\' http: https: data:',
  'media-src \'self\' http: https: data:',
  'object-src \'none\'',
  'base-uri \'none\'',
  'form-action \'self\'',
  'frame-ancestors \'none\'',
].join('; ')

/** Serves the page and what it asks for. */
export class PageServer {
  constructor(private readonly platform: Platform, private readonly endpoint: () => string) {}

  /** Answers one HTTP request. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    response.setHeader('Content-Security-Policy', contentPolicy)
    response.setHeader('Cross-Origin-Resource-Policy', 'same-origin')
    response.setHeader('X-Content-Type-Options', 'nosniff')
    response.setHeader('Referrer-Policy', 'no-referrer')
    const problem = refusal(request)
    if (problem !== null) {
      sendText(response, 403, problem)
      return
    }
    this.route(request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy()
      else sendText(response, 500, error instanceof Error ? error.message : String(error))
    })
  }

  private async route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The path as it was sent: `new URL` would resolve `..` before anybody could refuse it.
    const [path = '/'] = (request.url ?? '/').split('?')
    const reads = request.method === 'GET' || request.method === 'HEAD'
    if (path === '/simulator/api/say') {
      if (request.method !== 'POST') sendNotAllowed(response, 'POST')
      else await this.say(request, response)
    } else if (!reads) {
      sendNotAllowed(response, 'GET, HEAD')
    } else if (path === '/' || path === '/simulator') {
      response.writeHead(302, { Location: '/simulator/' }).end()
    } else if (path === '/simulator/api/state') {
      sendJson(response, 200, pageState(this.platform, this.endpoint()))
    } else if (path === '/simulator/api/events') {
      serveEvents(this.platform, response)
    } else if (path.startsWith('/simulator/media/')) {
      const medium = this.platform.media.get(Number(path.slice('/simulator/media/'.length)))
      if (medium === undefined || !await serveMedium(medium, request, response)) sendText(response, 404, 'no such medium')
    } else if (!path.startsWith('/simulator/') || !await servePageFile(path.slice('/simulator/'.length), response)) {
      sendText(response, 404, 'not found')
    }
  }

  private async say(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const result = await readSaying(request, this.platform)
    if ('error' in result) sendJson(response, 400, result)
    else sendJson(response, 200, { id: this.platform.say(result.saying) })
  }
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(`${text}\n`)
}

function sendNotAllowed(response: ServerResponse, allow: string): void {
  response.setHeader('Allow', allow)
  sendText(response, 405, `only ${allow}`)
}

function sendJson(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' })
  response.end(JSON.stringify(value))
}
