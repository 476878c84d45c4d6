import type { Context } from 'koishi'
import DingTalk from '@satorijs/adapter-dingtalk'
import Kook from '@satorijs/adapter-kook'
import QQ from '@satorijs/adapter-qq'
import Slack from '@satorijs/adapter-slack'
import WeCom from '@satorijs/adapter-wecom'
import WhatsApp from '@satorijs/adapter-whatsapp'
import { PlatformServer, type Answer, type Call } from './server'

export const platformNames = ['kook', 'qq', 'qqguild', 'slack', 'dingtalk', 'wecom', 'whatsapp'] as const

/** A group and a user of each platform, in the form of its IDs. */
export const places = {
  kook: { group: '5555555555555555', user: '1780328444' },
  qq: { group: 'C9F778FE6ADF9D1D1DBE395BF744A33A', user: '4D4D9F9A3D8A1F5D4B4F6A7B8C9D0E1F' },
  qqguild: { group: '633500000', user: '1234' },
  slack: { group: 'C024BE91L', user: 'U024BE7LH' },
  dingtalk: { group: 'cid6KeBBLoveMJOGXoYKF5x7EeiodoA==', user: 'manager4220' },
  wecom: { user: 'zhangsan' },
  whatsapp: { user: '16505551234' },
} as const

/** What sends a message, by platforms. */
export const sending = {
  kook: /^\/kook\/(?:message\/create|user-chat\/create-msg)$/,
  qq: /^\/qq\/v2\/(?:groups|users)\/\w+\/messages$/,
  qqguild: /^\/qq\/(?:channels|dms)\/\w+\/messages$/,
  slack: /^\/slack\/chat\.postMessage$/,
  dingtalk: /^\/dingtalk\/robot\/(?:groupMessages\/send|oToMessages\/batchSend)$/,
  wecom: /^\/wecom\/cgi-bin\/message\/send$/,
  whatsapp: /^\/whatsapp\/\w+\/messages$/,
} as const

/** What the platforms answer to a send that was carried out, as their documentation has it. */
const taken: Readonly<Record<keyof typeof sending, (call: Call) => unknown>> = {
  // https://developer.kookapp.cn/doc/http/message#发送频道聊天消息
  kook: () => ({ code: 0, message: '操作成功', data: { msg_id: '1edb5f2d-d57a-4ba0', msg_timestamp: 1612688112336, nonce: '' } }),
  // https://bot.q.qq.com/wiki/develop/api-v2/server-inter/message/send-receive/send.html
  qq: () => ({ id: 'ROBOT1.0_pWvFG', timestamp: '2026-01-05T14:45:45+08:00' }),
  qqguild: () => ({ id: '08e092eeb983afef9e0110f9bb5d1a', channel_id: '633500000', timestamp: '2026-01-05T14:45:45+08:00' }),
  // https://docs.slack.dev/reference/methods/chat.postMessage
  slack: ({ fields: { channel, thread_ts: thread } }) => ({
    ok: true, channel, ts: '1503435956.000247', message: { ts: '1503435956.000247', user: 'U0BOT', blocks: [], ...thread !== null && { thread_ts: thread } },
  }),
  // https://open.dingtalk.com/document/orgapp/the-robot-sends-a-group-message
  dingtalk: () => ({ processQueryKey: 'ZzIl4pbRU+EA', invalidStaffIdList: [], flowControlledStaffIdList: [] }),
  // https://developer.work.weixin.qq.com/document/path/90236
  wecom: () => ({ errcode: 0, errmsg: 'ok', msgid: 'xxxx' }),
  // https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages
  whatsapp: () => ({ messaging_product: 'whatsapp', contacts: [], messages: [{ id: 'wamid.HBgLMTY1MDUwNzY1MjAVAgARGBI5' }] }),
}

/** The APIs of the platforms, each under a path of its own: as much of them as the adapters call at the start and for a send. */
export class Platforms {
  private constructor(readonly server: PlatformServer) {}

  static async start(): Promise<Platforms> {
    const server: PlatformServer = await PlatformServer.start(call => answer(server, call), socket => {
      // Each adapter takes no notice of the greeting of the other platform.
      socket.send(JSON.stringify({ op: 10, d: { heartbeat_interval: 3_600_000 } }))
      socket.send(JSON.stringify({ type: 'hello' }))
      socket.on('message', (data: Buffer) => {
        if (!data.toString().includes('"op":2')) return
        const user = { id: '888', username: 'bot', bot: true }
        socket.send(JSON.stringify({ op: 0, s: 1, t: 'READY', d: { version: 1, session_id: 's', user, shard: [0, 1] } }))
      })
    })
    return new Platforms(server)
  }

  /** Loads the adapters. */
  load(app: Context): void {
    const { url } = this.server
    const endpoint = (name: string) => ({ endpoint: `${url}/${name}`, proxyAgent: '' })
    app.plugin<Kook.Config>(Kook, { protocol: 'http', token: 't', verifyToken: 'v', path: '/kook', ...endpoint('kook') })
    // Its declaration says of what it needs something that the types of Koishi do not know.
    app.inject(['http'], ctx => new QQ(ctx, {
      id: '102', secret: 's', token: 't', type: 'public', sandbox: false, authType: 'bot', protocol: 'websocket', intents: 0, retryWhen: [],
      manualAcknowledge: false, retryTimes: 1, retryInterval: 1000, retryLazy: 1000, ...endpoint('qq'),
    }))
    app.plugin<Slack.Config>(Slack, { protocol: 'ws', token: 'xapp', botToken: 'xoxb', retryTimes: 1, retryInterval: 1000, retryLazy: 1000, ...endpoint('slack') })
    app.plugin<DingTalk.Config>(DingTalk, {
      protocol: 'http', secret: 's', appkey: 'ding', api: endpoint('dingtalk'), oldApi: endpoint('dingtalk/old'), retryTimes: 1, retryInterval: 1000,
      retryLazy: 1000,
    })
    app.plugin<WeCom.Config>(WeCom, { corpId: 'c', agentId: '1000002', secret: 's', token: 't', aesKey: 'k', ...endpoint('wecom') })
    app.plugin<WhatsApp.Config>(WhatsApp, { secret: 's', systemToken: 't', verifyToken: 'v', id: '9', ...endpoint('whatsapp') })
  }

  /** A user writes to the bot of QQ in a group, or in the private chat of a guild, as the gateway of the platform reports it. */
  say(content: string, isPrivate = false): void {
    const { qq: { group, user }, qqguild } = places
    const common = { id: 'ROBOT1.0_asked', content, timestamp: new Date().toISOString() }
    const event = isPrivate
      ? {
          t: 'DIRECT_MESSAGE_CREATE',
          d: {
            ...common, guild_id: '71', channel_id: '72', src_guild_id: '70', direct_message: true, author: { id: qqguild.user, username: 'x', bot: false },
          },
        }
      : { t: 'GROUP_AT_MESSAGE_CREATE', d: { ...common, group_id: group, group_openid: group, author: { id: user, member_openid: user } } }
    for (const socket of this.server.sockets) socket.send(JSON.stringify({ op: 0, s: 2, ...event }))
  }

  /** The calls that send, of one platform. */
  sends(platform: keyof typeof sending): Call[] {
    return this.server.callsTo(sending[platform])
  }
}

function answer(server: PlatformServer, call: Call): Answer {
  if (call.path.startsWith('/files/')) return { headers: { 'content-type': 'application/pdf' }, body: '%PDF-1.4\n' }
  const platform = platformOf(call.path)
  return { body: platform ? taken[platform](call) : other(server, call.path) }
}

/** The platform whose message a call sends. */
function platformOf(path: string): keyof typeof sending | undefined {
  return platformNames.find(name => sending[name].test(path))
}

/** What the adapters ask beside sending. */
function other({ url }: PlatformServer, path: string): unknown {
  const socket = url.replace('http', 'ws')
  switch (path) {
    case '/kook/user/me': return { code: 0, data: { id: '77', username: 'bot' } }
    case '/kook/user-chat/create': return { code: 0, data: { code: 'b4cd1ae5c3d2411e9f0a7c9d8e7f6a5b' } }
    case '/kook/asset/create': return { code: 0, data: { url: 'https://img.kookapp.cn/attachments/a' } }
    case '/kook/guild/list': return { code: 0, data: { items: [{ id: '1', name: 'Guild' }] } }
    case '/kook/channel/list': return { code: 0, data: { items: [{ id: places.kook.group, name: 'general', type: 1 }] } }
    case '/qq/gateway': return { url: socket }
    case '/qq/users/@me': return { id: '888', username: 'bot', bot: true }
    case '/slack/auth.test': return { ok: true, user_id: 'U0BOT', user: 'bot', bot_id: 'B1' }
    case '/slack/apps.connections.open': return { ok: true, url: socket }
    case '/slack/conversations.open': return { ok: true, channel: { id: 'D024BE91L' } }
    case '/dingtalk/oauth2/accessToken': return { accessToken: 't', expireIn: 7200 }
    case '/dingtalk/microApp/allInnerApps': return { appList: [] }
    case '/dingtalk/old/microapp/list': return { errcode: 0, appList: [] }
    case '/wecom/cgi-bin/gettoken': return { errcode: 0, errmsg: 'ok', access_token: 't', expires_in: 7200 }
    case '/wecom/cgi-bin/agent/get': return { errcode: 0, errmsg: 'ok', agentid: 1000002, name: 'bot' }
    case '/wecom/cgi-bin/media/upload': return { errcode: 0, errmsg: '', type: 'image', media_id: 'M1' }
    case '/whatsapp/9/phone_numbers': return { data: [{ id: '1065', display_phone_number: '15550100' }] }
    case '/whatsapp/1065/media': return { id: 'M2' }
    case '/callback': return { reply: 'pong' }
    default: return path.endsWith('/files') ? { file_uuid: 'u', file_info: 'i', ttl: 0 } : {}
  }
}
