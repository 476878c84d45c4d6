import type { RelayError } from '../errors'
import type { Text } from '../texts/text'
import { jsonAnswer as json, type PlainAnswer } from '../http/routes'

/** The parts of a request that the answer may depend on. */
export interface Asked {
  readonly query: URLSearchParams
  /** The targets in the caller's words. */
  readonly targets: string
  /** What the client has appended to the address. */
  readonly tail: string
  /** The chat in Telegram. */
  readonly chat: unknown
}

/** The answers that the callers of a source expect. A failure keeps its HTTP status, because most callers look only at that. */
export interface Shape {
  /** @param data that of the envelope */
  success: (asked: Asked, data: object) => PlainAnswer
  failure: (error: RelayError) => PlainAnswer
}

function text(status: number, body: string | Text): PlainAnswer {
  return { status, type: 'text/plain; charset=utf-8', body }
}

/** Incoming webhooks of Slack. */
export const slackShape: Shape = {
  success: () => text(200, 'ok'),
  failure: ({ status, said }) => text(status, said),
}

/** The epoch of Discord's IDs, whose upper 42 bits count milliseconds, in milliseconds since 1970. */
const discordEpoch = 1_420_070_400_000

/** Webhooks of Discord ("Execute Webhook"): no content, or with `wait` the message. */
export const discordShape: Shape = {
  success({ query }) {
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
  failure({ status, said, headers: { 'retry-after': seconds } }) {
    return json(status, { message: said, code: 0, ...seconds !== undefined && { retry_after: Number(seconds), global: false } })
  },
}

/** The robots of DingTalk and of WeCom. */
export const errcodeShape: Shape = {
  success: () => json(200, { errcode: 0, errmsg: 'ok' }),
  failure: ({ status, said }) => json(status, { errcode: status, errmsg: said }),
}

/** The robots of Feishu, in the current and the older form. */
export const feishuShape: Shape = {
  success: () => json(200, { code: 0, msg: 'success', data: {}, StatusCode: 0, StatusMessage: 'success' }),
  failure: ({ status, said }) => json(status, { code: status, msg: said, data: {}, StatusCode: status, StatusMessage: said }),
}

/** The code of a success, by the path that the client appends: WxPusher, PushDeer and Server酱. Those of Bark and PushPlus expect 200. */
function codeOf(tail: string): number {
  if (tail.startsWith('api/send/message')) return 1000
  return /(?:^|\/)message\/push$|\.send$/.test(tail) ? 0 : 200
}

/**
 * The envelope, with the fields beside it by which clients of push services tell a success or a failure. Each client ignores the others.
 *
 * @param isPush for clients that expect a code of their service, and a text in `error`
 */
function envelopeShape(isPush: boolean): Shape {
  return {
    success({ chat, tail, targets }, data) {
      const now = Date.now()
      const time = Math.floor(now / 1000)
      const chatId = Number(chat)
      return json(200, {
        code: isPush ? codeOf(tail) : 0, msg: 'ok', data: isPush ? { ...data, errno: 0 } : data,
        // Telegram. The message does not exist, but clients parse the numbers.
        ok: true, result: { message_id: time, date: time, chat: { id: Number.isSafeInteger(chatId) ? chatId : 0, type: 'group' } },
        // ntfy has texts as IDs, Gotify has numbers.
        id: /(?:^|\/)message$/.test(tail) ? now : now.toString(36), time, event: 'message', topic: targets, message: 'success',
        // Pushover, Server酱, WeCom, iGot, Synology Chat.
        status: 1, errno: 0, errcode: 0, errmsg: 'ok', ret: 0, success: true,
        // PushDeer. Its clients take a field `error` for a failure.
        content: { result: ['{"success":"ok"}'] },
      })
    },
    failure: ({ status, said, envelope }) => json(status, {
      ...envelope, ok: false, error_code: status, description: said, message: said, errno: status, errcode: status, errmsg: said,
      success: false, errorCode: status, errorDescription: said, content: { result: [] }, ...isPush && { error: said },
    }),
  }
}

export const messageShape = envelopeShape(false)
export const pushShape = envelopeShape(true)
