import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { Server } from 'node:net'
import type { TestContext } from 'node:test'

/** Makes a server listen on a free port of 127.0.0.1, and returns the port. */
export async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  return address.port
}

/** Starts an HTTP server that ends with the test; returns its address. */
export async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  const port = await listen(server)
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${port}`
}
