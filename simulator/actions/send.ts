import { badParameter } from '../answers'
import { inTurn } from '../messages'
import { parseText } from '../parse'
import { isMedia, parseMessage } from '../segments'
import type { Target } from '../types'
import type { Action, ActionContext } from './action'
import { groupTarget, privateTarget } from './targets'

/** The send actions. Data: `{ message_id }`. */
export const sendActions: Readonly<Record<string, Action>> = {
  send_group_msg: context => send(context, groupTarget(context.platform, context.call.params)),
  send_private_msg: context => send(context, privateTarget(context.platform, context.call.params)),
  send_msg: context => {
    const { platform, call: { params } } = context
    const type = params.message_type ?? (params.group_id === undefined ? 'private' : 'group')
    if (type !== 'group' && type !== 'private') throw badParameter(platform.profile, 'message_type must be group or private')
    return send(context, type === 'group' ? groupTarget(platform, params) : privateTarget(platform, params))
  },
}

function send({ platform, call: { action, params }, weight, isSwallowed }: ActionContext, target: Target): unknown {
  const segments = parseMessage(platform.profile, params.message, params.auto_escape)
  const media = segments.filter(isMedia)
  const chat = platform.messages.chat(target)
  const delivery = { target, kind: 'message' as const, action, segments, weight, isSwallowed }
  if (media.length === 0 && chat.tail === null) return { message_id: platform.deliver({ ...delivery, media: [] }).id }
  // Read at once, so that other chats need not wait, but delivered in turn.
  const opening = Promise.all(media.map(({ type, data }) => (
    platform.opener.open(parseText(data.file) ?? '', type, parseText(data.name))
  )))
  opening.catch(() => undefined)
  return inTurn(chat, async () => ({ message_id: platform.deliver({ ...delivery, media: await opening }).id }))
}
