import type { Bot } from 'koishi'
import type { JsonObject } from '../../lib/shape'
import type { CauseId } from '../../message/causes'
import type { Item } from '../../message/model'
import { breakTags } from '../session'
import type { Limit } from '../port'

/** The type of an item, or a mention of everybody. */
export type Feature = Item['type'] | 'at-all'

/** Facts about an adapter, from its source and from tests against a small server of its platform. */
export interface Adapter {
  /** The usual name of the platform. */
  readonly name: string
  /** Item types that it drops silently, or cannot send. */
  readonly lacks: readonly Feature[]
  /**
   * How to find the private channel of a user: `ask` the platform; `user`: the user's ID; `prefix`: the user's ID after `private:`;
   * `answer`: known only once the user has written to the bot.
   */
  readonly direct: 'ask' | 'user' | 'prefix' | 'answer'
  /** Whether it has private chats only. */
  readonly isPrivateOnly?: true
  /** Whether it sends by another protocol than HTTP: the relay cannot observe its calls, so an error may come after one. */
  readonly isUnseen?: true
  /** Whether a message should be the answer to another one: the platform accepts few other messages, or none. */
  readonly answers?: true
  /** The format of users' IDs, which adapters put into markup unescaped. */
  readonly userId?: RegExp
  /** The types of media that it sends. It drops all others. */
  readonly mediaTypes?: RegExp
  /** The longest text in characters or bytes, if the platform would cut a longer one. Other platforms refuse it. */
  readonly longest?: number
  readonly countsBytes?: true
  /** The element of a picture, if not `img`. */
  readonly picture?: 'image'
  /** Whether it sends pictures and texts apart, or only a text after one picture with it. */
  readonly separates?: 'all' | 'but-one'
  /** Escapes markup and mentions in a text, if the adapter does not. */
  readonly escape?: (text: string) => string
  /** Links in texts that it changes. As elements, they stay intact. */
  readonly spoilsLinks?: RegExp
  /** The platform's codes for rate limits, with their scope. */
  readonly limits?: ReadonlyMap<string, Limit['scope']>
  /** The causes of the platform's codes. */
  readonly causes?: ReadonlyMap<string, CauseId>
  /** Codes of server failures with another status: the call may have been carried out. */
  readonly unclear?: readonly string[]
  /** Reads a complaint from an answer with a status of success, besides the usual fields. */
  readonly complaint?: (body: JsonObject) => string | undefined
  /** Reads the message ID from an answer, if the adapter may fail after it. */
  readonly confirmed?: (body: JsonObject) => unknown
}

const media = ['image', 'video', 'audio', 'file'] as const

/** Any document or media type that WhatsApp takes. https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media */
const whatsAppTypes = new RegExp([
  'audio/(?:aac|mp4|mpeg|amr|ogg|opus)', 'image/(?:jpeg|png|webp)', 'video/(?:mp4|3gpp)', 'text/plain',
  String.raw`application/(?:pdf|msword|vnd\.ms-(?:powerpoint|excel)|vnd\.openxmlformats-officedocument\..*)`,
].map(type => `^${type}$`).join('|'))

/** Causes by the codes that mean them. */
function causesOf(...table: readonly (readonly [cause: CauseId, codes: readonly string[]])[]): ReadonlyMap<string, CauseId> {
  return new Map(table.flatMap(([cause, codes]) => codes.map(code => [code, cause] as const)))
}

/** The adapters by name; those of QQ by platform, because one adapter serves groups and guilds. */
const adapters = new Map<string, Adapter>(Object.entries({
  // @satorijs/adapter-kook 4.8.0. It escapes brackets, of which all mentions are made.
  kook: { name: 'KOOK', lacks: [], direct: 'ask', userId: /^\d+$/ },
  // @satorijs/adapter-qq 4.11.0. A voice message takes a further service to convert it, without which it is left out.
  qq: {
    name: 'QQ', lacks: ['audio', 'file', 'at', 'at-all', 'reply'], direct: 'ask', answers: true, separates: 'but-one', escape: breakTags,
    // https://bot.q.qq.com/wiki/develop/api-v2/server-inter/message/send-receive/send.html
    limits: new Map([['22009', 'chat']]),
    // Only as an answer, as in tencent-connect/openclaw-qqbot issue 52.
    causes: causesOf(['forbidden', ['40034102']]),
  },
  // https://bot.q.qq.com/wiki/develop/api-v2/server-inter/message/message_format.html has the escapes.
  qqguild: {
    name: 'QQ', lacks: ['video', 'audio', 'file'], direct: 'answer', answers: true, separates: 'all', userId: /^\d+$/,
    escape: text => breakTags(escapeEntities(text)),
    limits: new Map([['20028', 'chat']]),
    // Only as an answer.
    causes: causesOf(['forbidden', ['304048']]),
  },
  // @satorijs/adapter-slack 2.5.0. Slack has closed the method by which it sends files. https://docs.slack.dev/messaging/formatting-message-text
  slack: {
    name: 'Slack', lacks: media, direct: 'ask', userId: /^[A-Z0-9]+$/, escape: escapeEntities, spoilsLinks: /[*_~`]/, longest: 40_000,
    limits: new Map([['ratelimited', 'account'], ['rate_limited', 'account']]),
    // https://docs.slack.dev/reference/methods/chat.postMessage#errors, and of conversations.open, which finds the private chat.
    causes: causesOf(
      ['no-such-group', ['channel_not_found']], ['removed', ['not_in_channel']], ['not-friend', ['user_not_found', 'users_not_found', 'cannot_dm_bot']],
      ['forbidden', ['is_archived', 'restricted_action', 'restricted_action_read_only_channel', 'restricted_action_thread_only_channel']],
      ['too-long', ['msg_too_long']], ['empty', ['no_text']],
      ['logged-out', ['invalid_auth', 'not_authed', 'account_inactive', 'token_revoked', 'token_expired']],
      ['not-permitted', ['missing_scope', 'no_permission', 'access_denied', 'accesslimited', 'ekm_access_denied', 'team_access_not_granted']],
    ),
    // "It's possible some aspect of the operation succeeded before the error was raised."
    unclear: ['internal_error', 'fatal_error', 'service_unavailable'],
    // After a reply in a thread it looks for the message that was answered, and fails.
    confirmed: ({ ok, ts }) => ok === true && ts,
  },
  // @satorijs/adapter-dingtalk 2.5.0. https://open.dingtalk.com/document/orgapp/chatbots-send-one-on-one-chat-messages-in-batches
  dingtalk: {
    name: 'DingTalk', lacks: [...media, 'at', 'at-all', 'reply'], direct: 'user',
    // Of the element it would encode a percent sign once more.
    spoilsLinks: /^[^%]*[-*_~`#!][^%]*$/,
    limits: new Map([
      ['Forbidden.AccessDenied.QpsLimitForApi', 'account'], ['Forbidden.AccessDenied.QpsLimitForAppkeyAndApi', 'account'],
      ['flowControlledStaffIdList', 'chat'],
    ]),
    // The adapter asks for no new token where its timer got none (satorijs/satori issue 240 has the first code).
    causes: causesOf(
      ['not-friend', ['invalidStaffIdList']], ['logged-out', ['InvalidAuthentication']],
      ['not-permitted', ['Forbidden.AccessDenied.IpNotInWhiteList', 'Forbidden.AccessDenied.AccessTokenPermissionDenied']],
    ),
    complaint: body => ['invalidStaffIdList', 'flowControlledStaffIdList'].find(list => Array.isArray(body[list]) && body[list].length > 0),
  },
  // @satorijs/adapter-wecom 2.5.0. https://developer.work.weixin.qq.com/document/path/90313
  wecom: {
    name: 'WeCom', lacks: ['at', 'at-all', 'reply'], direct: 'user', isPrivateOnly: true, picture: 'image', separates: 'all',
    // https://developer.work.weixin.qq.com/document/path/90236
    longest: 2048, countsBytes: true,
    limits: new Map([['45009', 'account'], ['45033', 'account']]),
    // The adapter asks for no new token where its timer got none.
    causes: causesOf(
      ['not-friend', ['60111', '81013']], ['too-long', ['45002']], ['empty', ['44004']], ['logged-out', ['40001', '40014', '41001', '42001']],
      ['not-permitted', ['48002', '60020', '301002']],
    ),
    unclear: ['-1'],
  },
  // @satorijs/adapter-whatsapp 2.6.0. https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes
  whatsapp: {
    name: 'WhatsApp', lacks: ['at', 'at-all'], direct: 'user', separates: 'all', mediaTypes: whatsAppTypes,
    limits: new Map([['4', 'account'], ['80007', 'account'], ['130429', 'account'], ['131056', 'chat']]),
    causes: causesOf(
      ['not-friend', ['131026', '131030']],
      // More than a day after the last message of the user.
      ['forbidden', ['131047']],
      ['logged-out', ['190']],
      // A permission is missing; the account is locked, restricted for its messages, or cannot pay.
      ['not-permitted', ['3', '10', '200', '368', '131031', '131042', '131048']],
    ),
  },
  // @satorijs/adapter-mail 2.3.2. It writes HTML, with texts as they are, and leaves out `img`.
  mail: { name: 'mail', lacks: ['at-all'], direct: 'prefix', isPrivateOnly: true, isUnseen: true, picture: 'image', escape: escapeEntities },
} satisfies Record<string, Adapter>))

/** The facts about a bot's adapter; `undefined` for an unknown one. */
export function adapterOf({ adapterName, platform }: Bot): Adapter | undefined {
  return adapters.get(adapterName === 'qq' && platform === 'qqguild' ? platform : adapterName)
}

function escapeEntities(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
