import type { CauseId } from '../message/causes'
import { timeOut } from './failure'
import type { SendFailure } from './port'

/*
 * What the clients of QQ answer to a send. They quote QQ in the same words through OneBot and through Satori.
 */

/** What an answer of failure means: the message was sent all the same, or how it failed, and why. */
export interface Known {
  outcome: 'sent' | Exclude<SendFailure, 'suppressed'>
  cause: CauseId
  /** Whether the same message would fail again at any time. */
  isFinal?: true
}

/** One kind of answers: an answer is of this kind when one of the three fits. */
interface Row extends Known {
  /**
   * What QQ's server, or its client, said to the send. NapCat and LuckyLilliaBot quote it in their words, Lagrange has it as the `retcode`
   * of an answer without words.
   */
  results?: readonly number[]
  /** The `retcode` of the answer itself. */
  retcodes?: readonly number[]
  words?: RegExp
}

/**
 * The answers to a send that fails, read from the sources of the implementations and from what their users report. The first row that fits
 * counts. Where no source is named, the words are for implementations and versions that were not read.
 *
 * Sources of the results of QQ: mamoe/mirai `GeneralMessageSenderProtocol.kt`, takayama-lily/oicq `lib/errors.ts`, Mrs4s/MiraiGo
 * `client/group_msg.go` (`decodeMsgSendResponse`). Sources of the words, if not named otherwise:
 * - NapNeko/NapCatQQ `packages/napcat-core/helper/event.ts`, `packages/napcat-onebot/api/msg.ts`, `api/file.ts`, `action/msg/SendMsg.ts`
 * - LLOneBot/LuckyLilliaBot `src/ntqqapi/core.ts`, `src/ntqqapi/api/msg.ts`, `src/onebot11/utils.ts`
 * - SnowLuma/SnowLuma `packages/core/src/bridge/apis/message.ts`, `packages/bridge/src/qq-hook-client.ts`, `hook-packet-client.ts`
 * - Mrs4s/go-cqhttp `coolq/api.go`, `coolq/bot.go`
 * - LagrangeDev/Lagrange.Core, branch v1, `Lagrange.OneBot/Core/Operation/Message/SendGroupMessageOperation.cs`; of files,
 *   `Lagrange.Core/Internal/Context/Uploader/FileUploader.cs`
 */
const rows: readonly Row[] = [
  // LuckyLilliaBot: the server took the message and numbered it, only its echo was not seen.
  { cause: 'unconfirmed', outcome: 'sent', words: /waitForSelfEcho timeout/i },

  // First, because these words quote names of files and links, in which the words of any other row may stand.
  // NapCat: the file is empty, or QQ's server for media did not take it (NapCatQQ issues 182 and 901). LuckyLilliaBot
  // `src/common/utils/file.ts`, `src/ntqqapi/entities.ts`, `src/ntqqapi/helper/highway.ts`. go-cqhttp has the last words, Lagrange those
  // before.
  {
    cause: 'media-failed', outcome: 'refused',
    words: new RegExp([
      'rich media transfer failed', '文件处理失败', '识别URL失败', '未知文件类型或路径不存在', '^路径不存在', '文件异常，大小为',
      '语音转换失败', '视频过大', String.raw`\[Highway\]|HTTP Upload|Highway Failed`, 'FILE_NOT_FOUND|OPEN_FILE_ERROR',
    ].join('|')),
  },
  // NapCat: the path is one of another container or machine (NapCat-Docker issues 37 and 95, NapCatQQ issue 1188), or it may not read it.
  // `packages/napcat-common/src/file.ts`, which throws what lies behind a failed `fetch`; the stack of an error without a text.
  {
    cause: 'media-failed', outcome: 'refused',
    words: new RegExp([
      String.raw`\b(?:ENOENT|EACCES|EBUSY|EPERM)\b|下载(?:文件)?失败[,:] |\bgetaddrinfo |\bconnect E[A-Z]|\bcertificate\b|\.handleOb11FileLikeMessage`,
      '(?:Connect|Headers|Body) Timeout Error|^other side closed$|^terminated$|^read ECONNRESET$|获取视频缩略图失败',
    ].join('|'), 'm'),
  },

  // mirai, oicq. The whole group muted is told so too. LuckyLilliaBot asks before it sends and says 当前处于被禁言状态.
  { cause: 'all-muted', outcome: 'refused', words: /全[员体]禁言/ },
  { cause: 'muted', outcome: 'refused', results: [120], words: /禁言|\bmuted\b/i },
  // mirai, and its issue 1220: 本群每分钟只能发5条消息.
  { cause: 'too-fast', outcome: 'refused', results: [299], words: /每分钟只能发|发言过于频繁/ },
  // mirai: the account is frozen, or limited after complaints; MiraiGo: it has to be verified.
  { cause: 'restricted', outcome: 'refused', results: [46] },

  // go-cqhttp.
  { cause: 'no-such-group', outcome: 'refused', words: /GROUP_NOT_FOUND|no such group|群聊?(?:不存在|已解散)/i },
  // NapCatQQ issue 600: 发送失败，你已被移出该群，请重新加群。
  { cause: 'removed', outcome: 'refused', results: [110], words: /被移出|被踢|不在(?:该)?群|not (?:a )?(?:group )?member|not in the group/i },
  // NapCat and LuckyLilliaBot look the account up first: 无法获取用户信息. NapCat `action/go-cqhttp/UploadPrivateFile.ts`: 私聊10002不存在.
  // go-cqhttp issue 184 and NapCatQQ issue 1480: 发送失败，请先添加对方为好友.
  {
    cause: 'not-friend', outcome: 'refused', results: [16],
    words: /添加对方为好友|无法获取用户信息|私聊\d+不存在|no such (?:user|friend)|not (?:a )?friend|非好友|不是好友/i,
  },
  // MiraiGo.
  { cause: 'blocked', outcome: 'refused', results: [55] },

  // oicq; mirai.
  { cause: 'too-long', outcome: 'refused', isFinal: true, results: [10, 34], words: /消息过长/ },
  // mirai; oicq: AT全体剩余次数不足.
  { cause: 'at-all-limit', outcome: 'refused', isFinal: true, results: [121] },
  // go-cqhttp has the third words for a group, beside SEND_MSG_API_ERROR; NapCat and LuckyLilliaBot have the second, SnowLuma the last.
  { cause: 'empty', outcome: 'refused', isFinal: true, words: /EMPTY_MSG_ERROR|消息体无法解析|^empty message$|^message is empty$/m },

  // NapCat when QQ was kicked or has no network. LuckyLilliaBot `src/main/qqProtocol/direct.ts`, `direct-lib/connection.ts`; `pmhq.ts`: not
  // logged in is -100; `direct-lib/client.ts`: nothing leaves without the signature of another server (LuckyLilliaBot issue 812). SnowLuma
  // has the last words.
  {
    cause: 'logged-out', outcome: 'unsent', results: [1006514],
    words: new RegExp([
      String.raw`网络连接异常|Direct client not logged in|^Not connected$|^sign failed for |PMHQ send failed: cmd=\S+ code=-100\b`,
      'qq_hook client is not logged in$|control pipe is not connected$|no packet sender attached$',
    ].join('|'), 'm'),
  },

  // NapCat: the client took the message, and the server never confirmed it (NapCatQQ issues 182, 808, 1410). LuckyLilliaBot and Lagrange:
  // the server answered without numbering the message.
  { cause: 'swallowed', outcome: 'unanswered', results: [0], retcodes: [9000], words: /发送消息失败 \(sequence=0\)/ },
  // LuckyLilliaBot `src/main/qqProtocol/direct-lib/client.ts`, `pmhq.ts`; its pull request 856 has the SSO. go-cqhttp, also where the bot
  // is muted. Lagrange: 9057; of a file, -99999 for any exception. SnowLuma has the last words.
  {
    cause: 'unconfirmed', outcome: 'unanswered', retcodes: [9057, -99999],
    words: new RegExp([
      'SEND_MSG_API_ERROR|^fetch failed$|^PMHQ请求失败|^Disconnected$|^SSO .*failed: retCode=',
      String.raw`^\((?:SendMessage|GroupSendFile)Event\) No Event|^send .+ message failed: |^failed to decode SendMessageResponse$`,
    ].join('|'), 'im'),
  },

  // NapCat, where its client did not answer (NapCatQQ issues 600 and 869). LuckyLilliaBot in all versions (its issue 314), also of files.
  { cause: 'unconfirmed', outcome: 'unanswered', words: timeOut },

  // NapCat and LuckyLilliaBot; Lagrange and go-cqhttp.
  {
    cause: 'unknown-action', outcome: 'refused', retcodes: [1404, 404],
    words: /不支持的?\s*(?:API|action|动作|接口)|API\s?不存在|API_NOT_FOUND|unsupported|not supported|(?:no such|unknown) (?:api|action)/i,
  },
  // NapCat `action/go-cqhttp/GetGroupMsgHistory.ts`; LuckyLilliaBot.
  { cause: 'empty-chat', outcome: 'refused', words: /消息\S*不存在|未找到消息/ },
]

/**
 * What is known of an answer of failure, by its code and its words: go-cqhttp has the name of the error in one field and its explanation in
 * another, NapCat has the same text in both, Lagrange has none.
 *
 * @param words the texts of the answer, one a line
 */
export function classify(retcode: number, words: string): Known | undefined {
  const result = Number(quoted.exec(words)?.[1] ?? (words === '' ? retcode : NaN))
  return rows.find(row => [row.results?.includes(result), row.retcodes?.includes(retcode), row.words?.test(words)].includes(true))
}

/** What NapCat and older LuckyLilliaBot quote of their client's answer to a send, LuckyLilliaBot and SnowLuma of the server's. */
const quoted = new RegExp(String.raw`(?:${[
  String.raw`NodeIKernelMsgService\/sendMsg[^{]*\{\s*"result":\s*`, String.raw`^invoke failed, \S+\.sendMsg, \{ result: `,
  String.raw`^发送消息失败 \(code=`, '^send .+ message rejected: result=',
].join('|')})(-?\d+)`)

/**
 * The words of an answer without the call that LuckyLilliaBot quotes in them up to version 7: the message in it may hold the words of any
 * row.
 */
export function withoutCall(words: string): string {
  return words.replace(/^(invoke (?:failed|timeout), \S+), \[.*\](?=$|, \{)/s, '$1')
}
