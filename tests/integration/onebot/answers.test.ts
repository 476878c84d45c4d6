import assert from 'node:assert/strict'
import { test } from 'node:test'
import { text } from '../../support/items'
import { relayFor } from '../../support/relay'
import { begin, deliveredId, stage } from './stage'

const target = { kind: 'group', id: '123456' } as const

test('an answer that comes late is heard long after the adapter has given its own calls up', async t => {
  // The adapter of this stage waits for a second.
  const { account, simulator } = await stage(t)
  simulator.fault({ fault: { kind: 'late', ms: 1_500 } })
  assert.deepEqual(await account.message(target, [text('a')], 'x').send(begin), { messageIds: [deliveredId(simulator, 0)] })
})

/** NapCat and LuckyLilliaBot have the same text in both fields. */
function both(wording: string, retcode = 1200): Record<string, unknown> {
  return { retcode, message: wording, wording }
}

function shamrock(message: string, retcode = 35_000): Record<string, unknown> {
  return { retcode, message }
}

const checked = 'NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg ListenerName:NodeIKernelMsgListener/onMsgInfoListUpdate EventRet:'

/**
 * Answers of failure that users have seen for messages that were there (NapCatQQ issues 41, 214, 932, 1267), or that the sources give
 * without knowing: a time-out (504), and words that no table has (502).
 */
const answers: readonly [source: string, answer: Record<string, unknown>, isAbsent: 502 | 504][] = [
  ['NapNeko/NapCatQQ packages/napcat-onebot/api/msg.ts', both('发送消息失败'), 502],
  ['NapNeko/NapCatQQ packages/napcat-core/helper/event.ts, checked', both(`EventChecker Failed: ${checked}\n{"result": 1, "errMsg": ""}`), 502],
  ['NapNeko/NapCatQQ packages/napcat-core/helper/event.ts, silent', both(`Timeout: ${checked}\n{}`), 504],
  ['NapNeko/NapCatQQ packages/napcat-core/helper/event.ts, unheard', both(' ListenerName:NodeIKernelMsgListener/onRecvMsg timeout'), 504],
  ['NapNeko/NapCatQQ packages/napcat-core/apis/msg.ts', both('转发消息超时'), 504],
  ['NapNeko/NapCatQQ packages/napcat-core/packet/client/nativeClient.ts', both('[PacketClient] sendPacket 超时 cmd=a timeout=5000ms'), 504],
  ['NapNeko/NapCatQQ packages/napcat-core/packet/highway/uploader/highwayHttpUploader.ts', both('Upload aborted due to timeout'), 504],
  ['NapNeko/NapCatQQ packages/napcat-core/packet/transformer/oidb/oidbBase.ts', both('OidbSvcTrpcTcpBase parse error:  (code=1)'), 502],
  ['NapNeko/NapCatQQ packages/napcat-onebot/action/OneBotAction.ts', both('未知错误，可能操作超时', 200), 504],
  ['LLOneBot/LuckyLilliaBot src/ntqqapi/api/msg.ts', both('发送消息失败 (code=1): '), 502],
  ['LLOneBot/LuckyLilliaBot src/main/qqProtocol/pmhq.ts', both('PMHQ send failed: cmd=MessageSvc.PbSendMsg code=-1'), 502],
  ['LLOneBot/LuckyLilliaBot src/main/qqProtocol/direct-lib/pbCodec.ts', both('pbDecode: varint truncated'), 502],
  ['LLOneBot/LuckyLilliaBot src/main/qqProtocol/direct-lib/client.ts', both('Command MessageSvc.PbSendMsg timed out after 15000ms'), 504],
  ['LagrangeDev/Lagrange.Core v1 Lagrange.OneBot/Core/Operation/Message/SendGroupMessageOperation.cs', { retcode: 79 }, 502],
  ['LagrangeDev/Lagrange.Core v1 Lagrange.OneBot/Core/Operation/Message/SendMessageOperation.cs', { retcode: 9000 }, 504],
  ['Mrs4s/go-cqhttp coolq/api.go', { retcode: 100, msg: 'API_ERROR', wording: 'context deadline exceeded', message: '' }, 504],
  ['Mrs4s/go-cqhttp coolq/api.go, unknown', { retcode: 100 }, 502],
  ['whitechi73/OpenShamrock v1.0.9 …/action/handlers/SendMessage.kt', shamrock('send message failed'), 502],
  ['whitechi73/OpenShamrock v1.0.9 …/servlet/MsgSvc.kt', shamrock('unable to upload multi message, response timeout'), 504],
  ['whitechi73/OpenShamrock v1.0.9 …/transfile/NtV2RichMediaSvc.kt', shamrock('no response'), 502],
  ['MrXiaoM/Overflow overflow-core/…/client/handler/ActionHandler.kt', both('请求失败: [send_group_msg] Timed out waiting for 10000 ms', 100), 504],
  ['MrXiaoM/Overflow overflow-core/…/utils/TransformerUtils.kt', both('消息发送失败，详见网络日志 (logs/onebot/*.log)', 100), 502],
]

test('a failing answer that says nothing certain is a 200 where the message is there, which then comes once', { timeout: 60_000 }, async t => {
  const { simulator, send } = await relayFor(t, { config: { chatApiTimeout: 3, chatApiMaxRetries: 2, chatSettleTime: 1 } })
  const outcomes = await Promise.all(answers.flatMap(([source, answer], nth) => [true, false].map(async delivered => {
    const id = `1${nth}${delivered ? 1 : 0}`
    const fault = { kind: 'answer', delivered, answer: { status: 'failed', data: null, ...answer } } as const
    const handle = simulator.fault({ target: id, times: Infinity, fault })
    const { status } = await send({ group_id: id, msg: source })
    const copies = simulator.ledger.filter(({ target }) => target.id === id).length
    return [source, delivered, status, handle.hits === (delivered ? 1 : 3), copies]
  })))
  assert.deepEqual(outcomes, answers.flatMap(([source, , absent]) => [[source, true, 200, true, 1], [source, false, absent, true, 0]]))
})
