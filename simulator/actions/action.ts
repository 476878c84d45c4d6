import type { Platform } from '../platform'
import type { Call } from '../types'

/** What an action gets: the platform, the call, about how many bytes the call was, and whether nobody is to see what it sends. */
export interface ActionContext { platform: Platform, call: Call, weight: number, isSwallowed: boolean }

/**
 * An action: returns the `data` of its answer, or a promise for it when bytes have to be read first.
 * @throws ActionFailure
 */
export type Action = (context: ActionContext) => unknown
