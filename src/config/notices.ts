import type { Notifier } from '@koishijs/plugin-notifier'
import { h, type Context } from 'koishi'
import type { Log, Warn } from '../lib/log'
import type { Text } from '../texts/text'

/** Logs warnings about settings and keys. While `@koishijs/plugin-notifier` is loaded, the config page shows them, too. */
export function startNotices(ctx: Context, log: Log): Warn {
  const topics = new Map<string, readonly Text[]>()
  let show = (): void => undefined
  ctx.inject(['notifier'], inner => {
    let shown: Notifier | undefined
    show = () => {
      shown?.dispose()
      const lines = [...topics.values()].flat()
      // An empty notice would show as an empty box.
      shown = lines.length > 0 ? inner.notifier.create({ type: 'warning', content: lines.map(line => h('p', line.in(log.language))) }) : undefined
    }
    show()
    inner.on('dispose', () => {
      show = () => undefined
    })
  })
  return (topic, lines) => {
    for (const line of lines) log.warn(line)
    topics.set(topic, lines)
    show()
  }
}
