import type { Scenario } from '../lib/scenario'
import { commands } from './commands'
import { hooks } from './hooks'
import { manyKeys } from './keys'
import { memory } from './memory'
import { accepting, keyed, records } from './deferred'
import { refused } from './refused'
import { retention } from './retention'
import { batch, manyGroups, oneConnection, oneGroup } from './sends'
import { start } from './start'
import { uploadMemory, uploads } from './uploads'

/** All scenarios, in the order of the table. */
export const scenarios: readonly Scenario[] = [
  manyGroups, oneGroup, oneConnection, batch, refused, manyKeys, hooks, uploads, uploadMemory, memory, commands, retention, start,
  accepting, keyed, records,
]
