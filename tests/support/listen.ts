import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:net'

/** Has a server listen on a free port of 127.0.0.1, and gives the port. */
export async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  return address.port
}
