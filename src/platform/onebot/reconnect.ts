import type { Bot, Context, Logger } from 'koishi'
import { unwrap } from '../../lib/unwrap'
import { dials, linkMode } from './link'
import { dialTimeout } from './redial'
import { Supervisor } from './supervisor'

/** How often it is made sure that the other side is still there, in milliseconds. */
const defaultPulse = 15_000

/**
 * Keeps OneBot bots connected until the plugin is disposed: the adapter does not dial again after a forward connection was
 * closed, and can be left with a reverse one that is of no use (OneBot guide, "Connections"). Bots over HTTP, and forward ones
 * that a person has stopped, are left alone. A stop of a bot that is offline anyway is none: Koishi ignores it.
 *
 * @param pulse milliseconds between two looks at whether the other side of a connection is still there
 */
export function keepConnected(ctx: Context, logger: Logger, pulse = defaultPulse): void {
  const bots = unwrap(ctx.bots)
  const supervisors = new Map<Bot, Supervisor>()

  /** The one who looks after this bot; `undefined` when nobody has to. */
  const supervise = (bot: Bot): Supervisor | undefined => {
    const mode = linkMode(bot)
    // While an adapter is reloaded, the last words of the old bot come out in the name of the new one.
    if (!mode || !bots.some(each => unwrap(each) === bot)) return
    const supervisor = supervisors.get(bot) ?? new Supervisor(bot, mode, logger, pulse)
    supervisors.set(bot, supervisor)
    return supervisor
  }

  ctx.on('ready', () => {
    for (const bot of bots) supervise(unwrap(bot))?.begin()
  })
  // A bot that is added later says so by its first change of status: when it is announced, its platform is not known yet.
  ctx.on('bot-status-updated', bot => supervise(unwrap(bot))?.update())
  ctx.on('bot-removed', bot => {
    supervisors.get(unwrap(bot))?.dispose()
    supervisors.delete(unwrap(bot))
  })
  ctx.on('http/websocket-init', (url, options) => {
    for (const bot of supervisors.keys()) {
      if (dials(bot, url)) options.handshakeTimeout ??= dialTimeout
    }
  })
  ctx.on('dispose', () => {
    for (const supervisor of supervisors.values()) supervisor.dispose()
    supervisors.clear()
  })
}
