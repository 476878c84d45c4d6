import { Logger, type Context } from 'koishi'

const logger = new Logger('bot')

/** How long everything may take to end after a signal, in milliseconds: a little more than the relay's own limits are together. */
const patience = 4_950

/** Lets an app end with its process, whatever ends that. */
export function endOnSignal(app: Context): void {
  let ending = false
  const end = (signal: NodeJS.Signals): void => {
    if (ending) return
    ending = true
    logger.info('%s: ending', signal)
    setTimeout(() => process.exit(1), patience)
    void app.parallel('exit', signal).finally(() => process.exit())
  }
  // A terminal that is closed sends SIGHUP, and Windows kills the process a few seconds later.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end)
}
