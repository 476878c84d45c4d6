import type { RelayError } from '../errors'
import { failure, jsonAnswer as json, type PlainAnswer } from '../http/routes'

/** The answers that the callers of a chat robot expect. A failure keeps its HTTP status, because most callers look only at that. */
export interface Shape {
  success: (query: URLSearchParams) => PlainAnswer
  failure: (error: RelayError) => PlainAnswer
}

function text(status: number, body: string): PlainAnswer {
  return { status, type: 'text/plain; charset=utf-8', body }
}

/** Incoming webhooks of Slack. */
export const slackShape: Shape = {
  success: () => text(200, 'ok'),
  failure: ({ status, message }) => text(status, message),
}

/** The epoch of Discord's IDs, whose upper 42 bits count milliseconds, in milliseconds since 1970. */
const discordEpoch = 1_420_070_400_000

/** Webhooks of Discord ("Execute Webhook"): no content, or with `wait` the message. */
export const discordShape: Shape = {
  success(query) {
    if (!/^(?:true|1)$/i.test(query.get('wait') ?? '')) return { status: 204, type: 'text/plain', body: '' }
    const now = Date.now()
    const id = String(BigInt(now - discordEpoch) << 22n)
    // The message does not exist, but clients parse its ID as a number like Discord's.
    return json(200, {
      id, type: 0, content: '', channel_id: id, author: { id, username: 'message-relay', bot: true },
      attachments: [], embeds: [], mentions: [], mention_roles: [], mention_everyone: false, pinned: false, tts: false, flags: 0,
      timestamp: new Date(now).toISOString(), edited_timestamp: null,
    })
  },
  failure({ status, message, headers: { 'retry-after': seconds } }) {
    return json(status, { message, code: 0, ...seconds !== undefined && { retry_after: Number(seconds), global: false } })
  },
}

/** The robots of DingTalk and of WeCom. */
export const errcodeShape: Shape = {
  success: () => json(200, { errcode: 0, errmsg: 'ok' }),
  failure: ({ status, message }) => json(status, { errcode: status, errmsg: message }),
}

/** The robots of Feishu, in the current and the older form. */
export const feishuShape: Shape = {
  success: () => json(200, { code: 0, msg: 'success', data: {}, StatusCode: 0, StatusMessage: 'success' }),
  failure: ({ status, message }) => json(status, { code: status, msg: message, data: {}, StatusCode: status, StatusMessage: message }),
}

/** The fields that clients of Bark, Gotify and PushDeer expect, in this order. Each client ignores the other fields. */
export const pushShape: Shape = {
  success: () => json(200, { code: 200, message: 'success', id: Date.now(), content: { result: ['{"success":"ok"}'] } }),
  failure,
}
