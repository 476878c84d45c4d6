import type { Context } from 'koishi'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Log, Warn } from '../lib/log'
import type { Store } from '../relay/store/store'
import { say, type Text } from '../texts/text'
import { Access } from './access'
import { announceExpiry } from './expiry'
import { parseKeys, type KeyView } from './keys'
import { MadeKeys } from './made-keys'
import type { MadeTargets } from './made-targets'
import type { Usages } from './usage'

/** How often the relay writes how keys were used, in milliseconds. */
const saveInterval = 1_000

export interface AccessOptions {
  /** The master key. */
  apiKey: string
  /** The setting `keys`. */
  keys: readonly unknown[]
  targets: MadeTargets
  usages: Usages
  /** Returns the present store. */
  store: () => Store
  /** The data folder, absolute. */
  dataDir: string
  logger: Pick<Log, 'warn'>
  warn: Warn
}

/** Reads the keys, and keeps their usage in the store. */
export function startAccess(ctx: Context, { apiKey, keys: written, targets, usages, store, dataDir, logger, warn }: AccessOptions): {
  access: Access
  /** The keys of the settings. */
  fixedKeys: readonly KeyView[]
  madeKeys: MadeKeys
  /** Writes how keys were used since the last second. */
  save: () => void
} {
  const { keys, warnings } = parseKeys(written, apiKey, targets, usages)
  warn('keys', [...warnings, ...leftovers(dataDir)])
  const madeKeys = new MadeKeys({ store, apiKey, fixed: keys, names: targets, usages, logger })
  const fixedKeys = keys.flatMap(({ view }) => view ?? [])
  const save = (): void => {
    try {
      usages.save()
    } catch {
      // The store itself tells why it cannot write. The next second is another try.
    }
  }
  ctx.setInterval(() => {
    save()
    targets.checkWays()
  }, saveInterval)
  announceExpiry(ctx, () => [...fixedKeys, ...madeKeys.list()], warn)
  return { access: new Access(apiKey, keys, usages, () => madeKeys.keys()), fixedKeys, madeKeys, save }
}

/** Earlier releases kept keys and targets that were made while the relay ran in files of their own. */
function leftovers(dataDir: string): Text[] {
  const found = ['keys.json', 'targets.json'].filter(name => existsSync(join(dataDir, name)))
  const [file = '', other] = found
  return found.length === 0 ? [] : [other === undefined ? say('leftover', { file }) : say('leftovers', { file, other })]
}
