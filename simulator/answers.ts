import type { PlatformFailure, Profile, Reason } from './profiles'

/** A refused call. The profile determines its answer. */
export class ActionFailure extends Error {
  constructor(readonly reason: Reason) {
    super(reason.wording)
  }
}

/** A failure with the profile's own wording. */
export function platformFailure(profile: Profile, kind: PlatformFailure): ActionFailure {
  return new ActionFailure(profile.reasons[kind])
}

/** The parameters are wrong (1400, 200, 100). */
export function badParameter(profile: Profile, detail: string): ActionFailure {
  return new ActionFailure({ retcode: profile.retcodes.parameter, wording: detail, code: 'BAD_PARAMETER' })
}

/** The parameters are right but the action failed (1200, 200, 100). */
export function executionError(profile: Profile, detail: string, code = 'API_ERROR'): ActionFailure {
  return new ActionFailure({ retcode: profile.retcodes.execution, wording: detail, code })
}

/** There is no such action (1404, 404). */
export function unknownAction(profile: Profile, action: string): ActionFailure {
  return profile.reasonIn === 'wording'
    ? new ActionFailure({ retcode: profile.retcodes.unknown, wording: 'API不存在', code: 'API_NOT_FOUND' })
    : new ActionFailure({ retcode: profile.retcodes.unknown, wording: `不支持的API ${action}` })
}

/** An answer frame. Without an `echo` in the call, JSON omits it. */
export type Answer = Record<string, unknown>

/** The answer to a call that succeeded. */
export function success(profile: Profile, data: unknown, echo: unknown): Answer {
  const answer = { status: 'ok', retcode: 0, data }
  if (profile.reasonIn === 'none') return { ...answer, echo }
  if (profile.reasonIn === 'wording') return { ...answer, message: '', echo }
  return { ...answer, message: '', wording: '', echo }
}

/** The answer to a call that failed. */
export function failed(profile: Profile, { retcode, wording, code }: Reason, echo: unknown): Answer {
  const answer = { status: 'failed', retcode, data: null }
  if (profile.reasonIn === 'none') return { ...answer, echo }
  if (profile.reasonIn === 'wording') return { ...answer, msg: code ?? wording, wording, message: wording, echo }
  return { ...answer, message: wording, wording, echo }
}
