import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, join } from 'node:path'
import { refusal } from './guards'
import { pageActions, type PageAction } from './page-actions'
import { serveEvents } from './page-events'
import { serveMedium } from './page-media'
import { pageState } from './page-view'
import { isRecord, parseJson } from './parse'
import type { Platform } from './platform'

// Media come from here or from a sender's server on this machine. Nothing is fetched from elsewhere.
const contentPolicy = [
  'default-src \'self\'',
  'img-src \'self\' http://127.0.0.1:* http://localhost:*',
  'media-src \'self\' http://127.0.0.1:* http://localhost:*',
  'object-src \'none\'',
  'base-uri \'none\'',
  'form-action \'self\'',
  'frame-ancestors \'none\'',
].join('; ')

// Next to this file, both in the sources and in the build.
const root = join(__dirname, 'page')

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const largestBody = 64 * 1024

/** Serves the page and its requests. */
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
    // The raw path, because `new URL` would resolve `..` before it could be refused.
    const [path = '/', query] = (request.url ?? '/').split('?')
    const language = new URLSearchParams(query).get('lang') === 'en' ? 'en' : 'zh'
    const reads = request.method === 'GET' || request.method === 'HEAD'
    const action = actionAt(path)
    if (action !== undefined) {
      if (request.method !== 'POST') sendNotAllowed(response, 'POST')
      else await this.act(action, request, response)
    } else if (!reads) {
      sendNotAllowed(response, 'GET, HEAD')
    } else if (path === '/' || path === '/simulator') {
      response.writeHead(302, { Location: '/simulator/' }).end()
    } else if (path === '/simulator/api/state') {
      sendJson(response, 200, pageState(this.platform, this.endpoint(), language))
    } else if (path === '/simulator/api/events') {
      serveEvents(this.platform, request, response, language)
    } else if (path.startsWith('/simulator/media/')) {
      const medium = this.platform.media.get(Number(path.slice('/simulator/media/'.length)))
      if (medium === undefined || !await serveMedium(medium, request, response)) sendText(response, 404, 'no such medium')
    } else if (!path.startsWith('/simulator/') || !await servePageFile(path.slice('/simulator/'.length), response)) {
      sendText(response, 404, 'not found')
    }
  }

  private async act(action: PageAction, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const read = await readBody(request)
    const answer = 'error' in read ? read : action(this.platform, read.body)
    sendJson(response, 'error' in answer ? 400 : 200, answer)
  }
}

function actionAt(path: string): PageAction | undefined {
  const name = /^\/simulator\/api\/(\w+)$/.exec(path)?.[1] ?? ''
  return Object.hasOwn(pageActions, name) ? pageActions[name] : undefined
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

/** Serves a file of the page; returns false if there is none. Only plain names reach the disk, so that no path leads out of the folder. */
async function servePageFile(path: string, response: ServerResponse): Promise<boolean> {
  const parts = (path === '' ? 'index.html' : path).split('/')
  const type = contentTypes[extname(parts.at(-1) ?? '')]
  if (type === undefined || !parts.every(part => /^[\w-][\w.-]*$/.test(part))) return false
  const content = await readFile(join(root, ...parts)).catch(() => null)
  if (content === null) return false
  response.writeHead(200, { 'Content-Type': type, 'Cache-Control': 'no-cache' }).end(content)
  return true
}

/** Reads the JSON object that a page posted, or tells what is wrong with it. */
async function readBody(request: IncomingMessage): Promise<{ body: Record<string, unknown> } | { error: string }> {
  // Only this type, because a page of another site can send a form without a preflight request, but not JSON.
  if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) return { error: 'the body must be application/json' }
  const text = await readText(request)
  if (text === null) return { error: 'the body must not be larger than 64 KiB' }
  const body = parseJson(text)?.value
  return isRecord(body) ? { body } : { error: 'the body must be a JSON object' }
}

async function readText(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  let size = 0
  const body: AsyncIterable<Buffer> = request.iterator({ destroyOnReturn: false })
  for await (const chunk of body) {
    size += chunk.length
    if (size > largestBody) {
      // The rest is read and discarded, so that the refusal reaches the sender.
      request.resume()
      return null
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
