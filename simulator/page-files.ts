import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { extname, join } from 'node:path'

// Beside the sources and, once built, beside the bundle.
const root = join(__dirname, 'page')

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Serves a file of the page; false when there is none. Only plain names reach the disk, so nothing outside can be named. */
export async function servePageFile(path: string, response: ServerResponse): Promise<boolean> {
  const parts = (path === '' ? 'index.html' : path).split('/')
  const type = contentTypes[extname(parts.at(-1) ?? '')]
  if (type === undefined || !parts.every(part => /^[\w-][\w.-]*$/.test(part))) return false
  const content = await readFile(join(root, ...parts)).catch(() => null)
  if (content === null) return false
  response.writeHead(200, { 'Content-Type': type, 'Cache-Control': 'no-cache' }).end(content)
  return true
}
