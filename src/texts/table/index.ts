// Every text that the relay says to callers and operators, in English and Chinese. The ID of a text says what it is about. `{name}` is
// the place of a value. A text has no capital at its start and no full stop, because others may stand before and behind it.
import { access } from './access'
import { causes } from './causes'
import { cli } from './cli'
import { core } from './core'
import { errors } from './errors'
import { hooks } from './hooks'
import { http } from './http'
import { message } from './message'
import { notices } from './notices'
import { platform } from './platform'

/** The texts by their IDs, in English and Chinese. Bundles that do not read it leave it out, as the call is pure. */
export const table = /* @__PURE__ */ (() => ({
  ...errors, ...causes, ...core, ...platform, ...message, ...http, ...hooks, ...access, ...notices, ...cli,
} as const satisfies Record<string, readonly [english: string, chinese: string]>))()

/** The ID of a text. */
export type TextId = keyof typeof table
