import type { ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Ends a process of a test, and waits until it has exited and its output has been read. Does nothing if it has ended already. */
export async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill(signal)
  await closed
}

/**
 * A free port that the system does not assign meanwhile, to a connection or to a server that lets the system choose: it assigns ports from
 * 32768 on (`net.ipv4.ip_local_port_range` of Linux; 49152 on other systems).
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_768)
    const server = createServer()
    const isFree = await new Promise<boolean>(resolve => server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)))
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}
