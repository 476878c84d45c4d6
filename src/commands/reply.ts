import type { Logger } from 'koishi'
import type { Delivery } from '../relay/deliver'
import { RelayError } from '../errors'
import type { InFlight } from '../lib/in-flight'
import type { Deliver } from './middleware'

/** Sends the replies of the callback through the bot that received the command; what is wrong or fails is logged. */
export function createReplier(delivery: Delivery, inFlight: InFlight, logger: Logger): Deliver {
  return async ({ bot, target }, reply, id) => {
    const items = reply.items.filter(item => {
      if (item instanceof RelayError) logger.warn('%s', `${id} an item of the reply is left out: ${item.message}`)
      return !(item instanceof RelayError)
    })
    const leave = inFlight.enter()
    try {
      const results = await delivery.deliver({ bot, target: reply.target ?? target, items })
      for (const result of results) {
        if (!result.success) logger.warn('%s', `${id} an item of the reply failed: ${result.error.status} ${result.error.logText}`)
      }
    } finally {
      leave()
    }
  }
}
