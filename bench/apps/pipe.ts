// The rival of uploads: a Node.js server that pipes the request to a file.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { numberOf, textOf } from '../lib/values'
import { serve } from './serve'

serve({ start })

async function start(options: unknown): Promise<object> {
  const folder = textOf(options, 'folder')
  const server = createServer((request, response) => {
    pipeline(request, createWriteStream(join(folder, randomUUID()))).then(() => response.end('{}'), () => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: numberOf(server.address(), 'port') }
}
