import type { Context } from 'koishi'
import type {} from 'koishi-plugin-message-relay'
import { Broker } from './broker'
import type { Config } from './config'
import { Log } from './texts'

export { Config } from './config'

export const name = 'message-relay-mqtt'
export const inject = ['messageRelay']
/** A plugin for each broker. */
export const reusable = true

/** Those that are ending, by broker and client ID: the broker ends the session of the earlier one if both are connected. */
const ending = new Map<string, Promise<void>>()

/** Takes messages from an MQTT 5 broker, and hands them to the relay. */
export function apply(ctx: Context, config: Config): void {
  const { messageRelay } = ctx
  const session = `${config.url} ${config.clientId}`
  let broker: Broker | undefined
  let isDisposed = false
  ctx.on('ready', async () => {
    await ending.get(session)
    const log = new Log(ctx.logger(name), messageRelay.language)
    try {
      if (!isDisposed) broker = new Broker(messageRelay, config, log)
    } catch (error) {
      log.warn('not-started', { reason: String(error) })
    }
  })
  ctx.on('message-relay/sent', delivery => broker?.ended(delivery))
  ctx.on('message-relay/failed', delivery => broker?.ended(delivery))
  ctx.on('dispose', () => {
    isDisposed = true
    const end = broker?.end().finally(() => ending.get(session) === end && ending.delete(session))
    if (end) ending.set(session, end)
  })
}
