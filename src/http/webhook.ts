import { RelayError } from '../errors'
import type { Delivery, ItemResult } from '../delivery/delivery'
import { parseRequest } from '../message/parse'
import { bodyTimeout, readBody } from './body'
import type { Answer, Exchange, Route } from './routes'

/**
 * `POST /webhook`: sends a single message or a batch (document, section 4; contract, "HTTP").
 *
 * @param maxBodySize in bytes
 */
export function webhookRoute(delivery: Delivery, maxBodySize: number): Route {
  return {
    path: '/webhook',
    method: 'POST',
    async handle(exchange) {
      const request = parseRequest(await readJson(exchange, maxBodySize))
      const { target, bot } = request
      exchange.target = `${target.kind}:${target.id}`
      if (request.mode === 'batch') return toBatchAnswer(exchange, await delivery.deliver({ target, bot, items: request.items }))
      const [result] = await delivery.deliver({ target, bot, items: [request.item] })
      if (!result) throw new RelayError('internal')
      if (!result.success) throw result.error
      exchange.outcome = 'sent'
      return { data: { message_ids: result.messageIds } }
    },
  }
}

async function readJson({ request, parsedBody }: Exchange, limit: number): Promise<unknown> {
  if (typeof parsedBody === 'object' && parsedBody !== null) return parsedBody
  const text = typeof parsedBody === 'string' ? parsedBody : (await readBody(request, limit, bodyTimeout)).toString()
  try {
    const body: unknown = JSON.parse(text)
    return body
  } catch {
    throw new RelayError('invalid-json')
  }
}

function toBatchAnswer(exchange: Exchange, results: readonly ItemResult[]): Answer {
  const success = results.filter(result => result.success).length
  exchange.outcome = `${success} of ${results.length} sent`
  return {
    data: {
      total: results.length,
      success,
      failed: results.length - success,
      results: results.map((result, index) => result.success
        ? { index, success: true, message_ids: result.messageIds }
        : { index, success: false, code: result.error.status, msg: result.error.message }),
    },
  }
}
