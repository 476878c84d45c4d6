import type { Platform } from '../platform'
import type { Call } from '../types'

/** What an action gets: the platform, the call and about how many bytes the call was. */
export interface ActionContext { platform: Platform, call: Call, weight: number }

/**
 * An action: returns the `data` of its answer, or a promise for it when bytes have to be read first.
 * @throws ActionFailure
 */
export type Action = (context: ActionContext) => unknown
