import type { Bot } from 'koishi'
import { streamOf } from './link'
import { gather } from '../../lib/gather'
import type { JsonObject } from '../../message/parse'

/** Makes a call and gives the whole answer, unread. */
export type Request = (action: string, params: JsonObject) => unknown

/** The adapter's way to a whole answer; it is there only while the bot is connected. */
export function requestOf(bot: Bot): Request | undefined {
  const internal: unknown = bot.internal
  if (typeof internal !== 'object' || internal === null) return
  const request: unknown = Reflect.get(internal, '_request')
  if (typeof request !== 'function') return
  return (action, params): unknown => {
    const stream = streamOf(bot)
    if (stream) gather(stream)
    return Reflect.apply(request, internal, [action, params])
  }
}

/** Implementations differ in whether they take IDs as text; a number they all take, as far as it is exact. */
export function toNumber(id: string): number | string {
  const number = Number(id)
  return Number.isSafeInteger(number) ? number : id
}
