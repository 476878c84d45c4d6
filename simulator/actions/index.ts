import { unknownAction } from '../answers'
import type { Platform } from '../platform'
import type { Action, ActionContext } from './action'
import { historyActions, messageActions } from './history'
import { infoActions } from './info'
import { sendActions } from './send'
import { uploadActions } from './upload'

/** The actions of a platform: those of its profile and options. */
export function actionsOf({ profile, settings }: Platform): ReadonlyMap<string, Action> {
  const actions = new Map<string, Action>([
    ...Object.entries(infoActions),
    ...Object.entries(messageActions),
    ...(settings.history ? Object.entries(historyActions) : []),
    ...Object.entries(sendActions),
    ...Object.entries(uploadActions),
  ])
  for (const absent of profile.absentActions) actions.delete(absent)
  return actions
}

/** Runs a call. */
export function perform(actions: ReadonlyMap<string, Action>, context: ActionContext): unknown {
  const action = actions.get(context.call.action)
  if (action === undefined) throw unknownAction(context.platform.profile, context.call.action)
  return action(context)
}
