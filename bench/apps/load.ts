// The load generator.
import autocannon from 'autocannon'
import { v7 as uuid } from 'uuid'
import { quantile } from '../lib/statistics'
import { field, numberOf, recordOf, textOf, textsOf } from '../lib/values'
import { serve } from './serve'

serve({ load })

/**
 * Sends requests over several connections and measures the time of each answer after a warm-up. Each connection sends its next request when
 * the previous one is answered. The bodies and paths are distributed over the connections in turn.
 */
async function load(argument: unknown): Promise<object> {
  const bodies = textsOf(argument, 'bodies')
  const paths = textsOf(argument, 'paths')
  const expected = numberOf(argument, 'status')
  const warmUp = numberOf(argument, 'warmUp') * 1000
  const time = numberOf(argument, 'seconds') * 1000
  const amount = numberOf(argument, 'amount') || Infinity
  const isKeyed = field(argument, 'isKeyed') === true
  const times: number[] = []
  let total = 0
  const unexpected = new Map<number, number>()
  let clients = 0
  const instance = autocannon({
    url: textOf(argument, 'url'),
    method: 'POST',
    headers: recordOf(argument, 'headers'),
    body: bodies[0] ?? '',
    connections: numberOf(argument, 'connections'),
    duration: 600,
    sampleInt: 50,
    timeout: 60,
    setupClient(client) {
      const path = paths[clients % paths.length]
      client.setRequests([{ body: bodies[clients % bodies.length] ?? '', ...path !== undefined && { path }, ...isKeyed && { setupRequest: withKey } }])
      clients++
    },
  })
  const started = performance.now()
  let from = warmUp > 0 ? Infinity : started
  let until = started
  instance.on('response', (_client, status: number, _bytes, duration: number) => {
    if (total === amount) return
    total++
    const now = performance.now()
    if (status !== expected) unexpected.set(status, (unexpected.get(status) ?? 0) + 1)
    if (now - started < warmUp) return
    if (from === Infinity) {
      from = now
      return
    }
    if (amount === Infinity && now - from > time) {
      instance.stop()
      return
    }
    until = now
    times.push(duration)
    if (total === amount) instance.stop()
  })
  const { errors, timeouts } = await instance
  return {
    rate: times.length / (until - from) * 1000,
    median: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    total,
    failures: [...unexpected].map(([status, count]) => `${count} × ${status}`)
      .concat(errors > 0 ? `${errors} connection errors` : [], timeouts > 0 ? `${timeouts} × no answer` : []),
  }
}

function withKey(request: autocannon.Request): autocannon.Request {
  return { ...request, headers: { ...request.headers, 'idempotency-key': uuid() } }
}
