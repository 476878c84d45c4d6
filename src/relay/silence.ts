import type { Context } from 'koishi'

/** What the names of all tables of this plugin begin with. */
const mark = 'message_relay_'

const methods = ['warn', 'debug'] as const

/**
 * Keeps the statements about this plugin's tables out of the log, until the context is disposed: the drivers write each one
 * that fails there with its values, and so with the messages in it.
 */
export function silenceStatements(ctx: Context): void {
  for (const { logger } of ctx.database.drivers) {
    for (const method of methods) {
      const original = logger[method]
      const filtered: typeof original = (...args: [unknown, ...unknown[]]) => {
        if (!args.some(arg => typeof arg === 'string' && arg.includes(mark))) original(...args)
      }
      logger[method] = filtered
      ctx.on('dispose', () => {
        // Somebody else may have come after.
        if (logger[method] === filtered) logger[method] = original
      })
    }
  }
}
