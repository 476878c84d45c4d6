import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CauseId } from '../../../../src/message/causes'
import { readData } from '../../../../src/platform/onebot/message'
import { SendError } from '../../../../src/platform/port'

/** What NapCat says of a send that its client refuses, or does not confirm in time. */
function ntEvent(what: 'EventChecker Failed' | 'Timeout', result: object): Record<string, unknown> {
  const event = 'NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg ListenerName:NodeIKernelMsgListener/onMsgInfoListUpdate'
  return both(`${what}: ${event} EventRet:\n${JSON.stringify(result, null, 4)}\n`)
}

/** NapCat and LuckyLilliaBot have the same text in both fields. */
function both(text: string, retcode = 1200): Record<string, unknown> {
  return { retcode, message: text, wording: text }
}

/** What LuckyLilliaBot 7 says of a send that its client refuses, or does not confirm in time: it quotes the message. */
function invoked(how: 'failed' | 'timeout', text: string, result = ''): Record<string, unknown> {
  const message = `[ { elementType: 1, elementId: '', textElement: { content: '${text}', atType: 0 } } ]`
  const call = `[ '0', { chatType: 2, peerUid: '20001', guildId: '' }, ${message}, Map(1) { 0 => { attrType: 0, attrId: '7' } } ]`
  return both(`invoke ${how}, wrapperSession.getMsgService().sendMsg, ${call}${result}`)
}

function snowLuma(wording: string): Record<string, unknown> {
  return { retcode: 100, wording }
}

/** go-cqhttp names the error in one field and explains it in two. */
function goCqhttp(msg: string, wording: string, retcode = 100): Record<string, unknown> {
  return { retcode, msg, wording, message: wording }
}

const cases: readonly (readonly [program: string, answer: Record<string, unknown>, outcome: string, cause: CauseId | undefined])[] = [
  ['LuckyLilliaBot', both('waitForSelfEcho timeout'), 'sent', undefined],

  ['NapCat', ntEvent('EventChecker Failed', { result: -1, errMsg: 'rich media transfer failed' }), 'refused', 'media-failed'],
  ['NapCat 1.7', ntEvent('Timeout', { result: -1, errMsg: 'rich media transfer failed' }), 'refused', 'media-failed'],
  ['NapCat', both('文件处理失败: 识别URL失败, uri= /tmp/禁言.png'), 'refused', 'media-failed'],
  ['NapCat', both('文件异常，大小为0'), 'refused', 'media-failed'],
  ['LuckyLilliaBot', both('文件异常，大小为 0: /tmp/a.png'), 'refused', 'media-failed'],
  ['LuckyLilliaBot', both('https://example.com/a.png 下载失败, HTTP error! status: 404 statusText: Not Found'), 'refused', 'media-failed'],
  ['LuckyLilliaBot', both('未知文件类型或路径不存在: ./不是好友.png'), 'refused', 'media-failed'],
  ['LuckyLilliaBot', both('路径不存在'), 'refused', 'media-failed'],
  ['NapCat in a container', both('ENOENT: no such file or directory, open \'/data/全员禁言.png\''), 'refused', 'media-failed'],
  ['NapCat under another user', both('EACCES: permission denied, copyfile \'/uploads/a.png\' -> \'/app/temp/a.png\''), 'refused', 'media-failed'],
  ['NapCat 4.8', both('ENOENT: no such file or directory, copyfile \'/data/a.mp4\' -> \'/app/.config/QQ/NapCat/temp/a.mp4\''), 'refused', 'media-failed'],
  ['NapCat', both('下载文件失败: Not Found'), 'refused', 'media-failed'],
  ['NapCat', both('getaddrinfo ENOTFOUND img.example.com'), 'refused', 'media-failed'],
  ['NapCat', both('connect ECONNREFUSED 203.0.113.7:443'), 'refused', 'media-failed'],
  ['NapCat', both('other side closed'), 'refused', 'media-failed'],
  ['NapCat', both('terminated'), 'refused', 'media-failed'],
  ['NapCat', both('read ECONNRESET'), 'refused', 'media-failed'],
  ['NapCat', both('Connect Timeout Error (attempted address: img.example.com:443, timeout: 10000ms)'), 'refused', 'media-failed'],
  ['NapCat', both('certificate has expired'), 'refused', 'media-failed'],
  ['NapCat', both('Error\n    at OneBotMsgApi.handleOb11FileLikeMessage (file:///app/napcat/napcat.mjs:1:1)'), 'refused', 'media-failed'],
  ['NapCat', both('语音转换失败, 请检查语音文件是否正常'), 'refused', 'media-failed'],
  ['LuckyLilliaBot', both('视频过大，最大支持100MB，当前文件大小104857601B'), 'refused', 'media-failed'],
  ['LuckyLilliaBot', both('[Highway] httpUpload Error uploading block at offset 0: aborted'), 'refused', 'media-failed'],
  ['LuckyLilliaBot', both('HTTP Upload failed with code 196'), 'refused', 'media-failed'],
  ['Lagrange, of a file', { status: 'Highway Failed', retcode: -91001 }, 'refused', 'media-failed'],
  ['go-cqhttp', goCqhttp('FILE_NOT_FOUND', '文件不存在'), 'refused', 'media-failed'],
  ['go-cqhttp', goCqhttp('OPEN_FILE_ERROR', '打开文件失败'), 'refused', 'media-failed'],

  ['another', both('发送失败，该群已开启全员禁言'), 'refused', 'all-muted'],
  ['NapCat', ntEvent('EventChecker Failed', { result: 120, errMsg: '' }), 'refused', 'muted'],
  ['LuckyLilliaBot', both('当前处于被禁言状态'), 'refused', 'muted'],
  ['LuckyLilliaBot', both('发送消息失败 (code=120): '), 'refused', 'muted'],
  ['Lagrange', { retcode: 120 }, 'refused', 'muted'],
  ['NapCat', ntEvent('EventChecker Failed', { result: 299, errMsg: '本群每分钟只能发5条消息' }), 'refused', 'too-fast'],
  ['LuckyLilliaBot', both('发送消息失败 (code=299): 本群每分钟只能发5条消息'), 'refused', 'too-fast'],
  ['Lagrange', { retcode: 299 }, 'refused', 'too-fast'],
  ['Lagrange', { retcode: 46 }, 'refused', 'restricted'],
  ['NapCat', ntEvent('EventChecker Failed', { result: 46, errMsg: '' }), 'refused', 'restricted'],

  ['go-cqhttp', goCqhttp('GROUP_NOT_FOUND', '群聊不存在'), 'refused', 'no-such-group'],
  ['NapCat', ntEvent('EventChecker Failed', { result: 110, errMsg: '发送失败，你已被移出该群，请重新加群。' }), 'refused', 'removed'],
  ['LuckyLilliaBot', both('发送消息失败 (code=110): 发送失败，你已被移出该群，请重新加群。'), 'refused', 'removed'],
  ['Lagrange', { retcode: 110 }, 'refused', 'removed'],
  ['NapCat, LuckyLilliaBot', both('无法获取用户信息'), 'refused', 'not-friend'],
  ['NapCat', both('私聊10002不存在'), 'refused', 'not-friend'],
  ['another', both('对方不是好友'), 'refused', 'not-friend'],
  ['NapCat', ntEvent('EventChecker Failed', { result: 16, errMsg: '发送失败，请先添加对方为好友' }), 'refused', 'not-friend'],
  ['NapCat 4.9', both('发送失败,请添加对方为好友'), 'refused', 'not-friend'],
  ['Lagrange', { retcode: 16 }, 'refused', 'not-friend'],
  ['Lagrange', { retcode: 55 }, 'refused', 'blocked'],

  ['Lagrange', { retcode: 10 }, 'refused', 'too-long'],
  ['LuckyLilliaBot', both('发送消息失败 (code=34): '), 'refused', 'too-long'],
  ['LuckyLilliaBot', both('发送消息失败 (code=121): '), 'refused', 'at-all-limit'],
  ['go-cqhttp', goCqhttp('EMPTY_MSG_ERROR', '消息为空'), 'refused', 'empty'],
  ['go-cqhttp', goCqhttp('SEND_MSG_API_ERROR', 'empty message'), 'refused', 'empty'],
  ['NapCat', both('消息体无法解析, 请检查是否发送了不支持的消息类型'), 'refused', 'empty'],
  ['LuckyLilliaBot', both('消息体无法解析，请检查是否发送了不支持的消息类型'), 'refused', 'empty'],

  ['NapCat', ntEvent('EventChecker Failed', { result: 1006514, errMsg: '网络连接异常!' }), 'unsent', 'logged-out'],
  ['LuckyLilliaBot', both('Direct client not logged in'), 'unsent', 'logged-out'],
  ['LuckyLilliaBot', both('PMHQ send failed: cmd=MessageSvc.PbSendMsg code=-100 not login pb=<empty>'), 'unsent', 'logged-out'],

  ['LuckyLilliaBot without a connection to QQ', both('Not connected'), 'unsent', 'logged-out'],
  ['LuckyLilliaBot', both('sign failed for MessageSvc.PbSendMsg; see [Sign] log above'), 'unsent', 'logged-out'],

  ['NapCat', ntEvent('Timeout', { result: 0, errMsg: '' }), 'unanswered', 'swallowed'],
  ['NapCat over HTTP', { ...ntEvent('Timeout', { result: 0, errMsg: '' }), retcode: 200 }, 'unanswered', 'swallowed'],
  ['LuckyLilliaBot', both('发送消息失败 (sequence=0)'), 'unanswered', 'swallowed'],
  ['Lagrange', { retcode: 9000 }, 'unanswered', 'swallowed'],

  ['NapCat', ntEvent('Timeout', {}), 'unanswered', 'unconfirmed'],
  ['NapCat 1', ntEvent('Timeout', { result: 1, errMsg: '' }), 'unanswered', 'unconfirmed'],
  ['LLOneBot 3', both('发送超时'), 'unanswered', 'unconfirmed'],
  ['LuckyLilliaBot', both('Command MessageSvc.PbSendMsg timed out after 15000ms'), 'unanswered', 'unconfirmed'],
  ['LuckyLilliaBot, of a file', both('Command OidbSvcTrpcTcp.0x6d9_4 timed out after 15000ms'), 'unanswered', 'unconfirmed'],
  ['LuckyLilliaBot, which lost its connection to QQ', both('Disconnected'), 'unanswered', 'unconfirmed'],
  ['LuckyLilliaBot', both('SSO MessageSvc.PbSendMsg failed: retCode=-10001, extraMsg='), 'unanswered', 'unconfirmed'],
  ['LuckyLilliaBot', both('pmhq ws send: wait result timeout'), 'unanswered', 'unconfirmed'],
  ['LuckyLilliaBot, whose QQ has ended', both('fetch failed'), 'unanswered', 'unconfirmed'],
  ['LuckyLilliaBot', both('PMHQ请求失败，请检查发包器PMHQ设置 502 - Bad Gateway'), 'unanswered', 'unconfirmed'],
  ['LuckyLilliaBot 7', invoked('timeout', '下载失败, connect ECONNREFUSED 192.0.2.7:80 [1], {'), 'unanswered', 'unconfirmed'],
  ['LuckyLilliaBot 7', invoked('failed', '网络连接异常', ', { result: 120, errMsg: \'\' }'), 'refused', 'muted'],
  ['LuckyLilliaBot 7', invoked('failed', '禁言', ', { result: -1, errMsg: \'rich media transfer failed\' }'), 'refused', 'media-failed'],
  ['LuckyLilliaBot 7', invoked('failed', '禁言', ', { result: 1006514, errMsg: \'网络连接异常!\' }'), 'unsent', 'logged-out'],
  ['go-cqhttp', goCqhttp('SEND_MSG_API_ERROR', 'send group message failed: blocked by server'), 'unanswered', 'unconfirmed'],
  ['go-cqhttp', goCqhttp('SEND_MSG_API_ERROR', '请参考 go-cqhttp 端输出'), 'unanswered', 'unconfirmed'],
  ['Lagrange', { retcode: 9057 }, 'unanswered', 'unconfirmed'],
  ['Lagrange, of a file', { status: '(GroupSendFileEvent) No Event', retcode: -90000 }, 'unanswered', 'unconfirmed'],
  ['Lagrange, of a file', { status: '(SendMessageEvent) No Event', retcode: -90000 }, 'unanswered', 'unconfirmed'],
  ['Lagrange, of a file', { status: 'The operation was canceled.', retcode: -99999 }, 'unanswered', 'unconfirmed'],
  ['Lagrange, of a file', { status: '(GroupFSUploadEvent) No Event', retcode: -90000 }, 'refused', undefined],

  ['SnowLuma', snowLuma('send group message rejected: result=120 err='), 'refused', 'muted'],
  ['SnowLuma', snowLuma('send private message rejected: result=16 err='), 'refused', 'not-friend'],
  ['SnowLuma', snowLuma('message is empty'), 'refused', 'empty'],
  ['SnowLuma', snowLuma('send group message failed: qq_hook client is not logged in'), 'unsent', 'logged-out'],
  ['SnowLuma', snowLuma('send group message failed: send reply 7 timed out after 15000 ms'), 'unanswered', 'unconfirmed'],
  ['SnowLuma, whose QQ has ended', snowLuma('send c2c file message failed: control pipe closed'), 'unanswered', 'unconfirmed'],

  ...['發送訊息逾時', '送信がタイムアウトしました', '操作超時', '请求超时', 'i/o timeout', 'Request Timed-Out', 'read time out', 'TIMED_OUT', 'context deadline exceeded'].map(words => (
    ['another', both(words), 'unanswered', 'unconfirmed'] as const
  )),
  ['NapCat', both('不支持的Api send_poll', 1404), 'refused', 'unknown-action'],
  ['LuckyLilliaBot', both('send_poll API 不存在', 404), 'refused', 'unknown-action'],
  ['Lagrange', { retcode: 404 }, 'refused', 'unknown-action'],
  ['go-cqhttp', goCqhttp('API_NOT_FOUND', 'API不存在', 404), 'refused', 'unknown-action'],
  ['NapCat', both('消息undefined不存在'), 'refused', 'empty-chat'],
  ['LuckyLilliaBot', both('未找到消息'), 'refused', 'empty-chat'],

  ['NapCat', ntEvent('EventChecker Failed', { result: 1, errMsg: '发送失败' }), 'refused', undefined],
  ['NapCat', both('Key: message, Message: Expected required property', 1400), 'refused', undefined],
  ['LuckyLilliaBot, of a file', both('发送文件失败 (code=120): upload denied'), 'refused', undefined],
  ['another, with a code of its own', both('no', 46), 'refused', undefined],
  ['NapCat, of a recall', both('Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/recallMsg EventRet:\n{"result": 0}'), 'unanswered', 'unconfirmed'],
]

/** How an answer of failure is read; `undefined` for one that was sent all the same. */
function read(answer: object): SendError | undefined {
  try {
    readData({ status: 'failed', data: null, ...answer })
  } catch (error) {
    assert(error instanceof SendError)
    return error
  }
}

describe('an answer of failure', () => {
  for (const [implementation, answer, outcome, cause] of cases) {
    test(`${implementation}, ${String(answer.wording ?? answer.status ?? answer.retcode).trim().replace(/\s+/g, ' ')}: ${cause ?? outcome}`, () => {
      const failure = read(answer)
      assert.deepEqual([failure?.outcome ?? 'sent', failure?.causeId], [outcome, cause])
    })
  }

  test('is told in plain words, with the platform\'s own after them', () => {
    const told = (answer: object): string | undefined => read(answer)?.toRelayError().message
    assert.equal(told(both('当前处于被禁言状态')), 'the platform refused the message: the bot is muted in this group (platform: "当前处于被禁言状态")')
    assert.equal(told({ retcode: 46 }), 'the platform refused the message: QQ restricts what this account may send here (platform: "retcode 46")')
    const unconfirmed = 'the message may have arrived: the platform does not know whether the message was sent'
    assert.equal(told(invoked('timeout', 'secret')), `${unconfirmed} (platform: "invoke timeout, wrapperSession.getMsgService().sendMsg")`)
    assert.equal(told(both('no')), 'the platform refused the message: no')
    assert.equal(told({ status: '(GroupFSUploadEvent) no space', retcode: -302 }), 'the platform refused the message: (GroupFSUploadEvent) no space')
  })

  test('says what it is about, and whether another call may help', () => {
    const traits = (answer: object): unknown => {
      const failure = read(answer)
      return [failure?.about, failure?.isAboutTarget, failure?.isRetryable]
    }
    assert.deepEqual(traits({ retcode: 120 }), ['chat-closed', true, false])
    assert.deepEqual(traits({ retcode: 110 }), ['chat-gone', true, false])
    assert.deepEqual(traits({ retcode: 10 }), ['message', false, false])
    assert.deepEqual(traits(both('文件异常，大小为0')), ['message', false, true])
    assert.deepEqual(traits(both('Direct client not logged in')), ['account', false, false])
    assert.deepEqual(traits({ retcode: 9000 }), ['unknown', false, true])
    assert.deepEqual(traits(both('no')), ['unknown', false, true])
  })
})
