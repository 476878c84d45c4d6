import type { Context } from 'koishi'
import { Made, type MadeOptions } from '../access/made'
import type { Warn } from '../lib/log'
import type { JsonObject } from '../lib/shape'
import { parseEntries } from '../message/names'
import { systemClock } from '../relay/clock'
import { Beats, type BeatOptions } from './beats'
import { parseBeat, type BeatRule } from './rule'

export { beatDoor, type Beats } from './beats'
export { beatRoutes } from './routes'

/** Starts to watch the beats of the setting, and those that are made while the relay runs. */
export function startBeats(
  ctx: Context, setting: JsonObject, fixedNames: BeatOptions['names'], options: Omit<BeatOptions, 'clock' | 'rules'> & Pick<MadeOptions<unknown>, 'logger'> & { warn: Warn },
): Beats {
  const { entries, warnings } = parseEntries('beats', setting, (name, value) => parseBeat(name, value, fixedNames))
  options.warn('beats', warnings)
  const rules = new Made<BeatRule>({
    ...options, table: 'beats', kind: 'beat', fixed: entries, parse: (name, value, isNew) => parseBeat(name, value, isNew ? options.names : undefined),
  })
  const beats = new Beats({ ...options, clock: systemClock, rules })
  ctx.setInterval(() => void beats.check(), 1_000)
  return beats
}
