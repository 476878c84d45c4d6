import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Reported } from '../../../../src/platform/history'
import { readData } from '../../../../src/platform/onebot/message'
import { readContent, readHistory, readReport } from '../../../../src/platform/onebot/message'
import { SendError, type HistoryPage, type Report } from '../../../../src/platform/port'

const seconds = 1_700_000_000
const since = seconds * 1000
const selfId = '10000'
const content = readContent('a') ?? assert.fail()

/** As NapCat has it; LuckyLilliaBot's is the same without `target_id`. */
const napcat = {
  self_id: 10000, user_id: 10000, time: seconds, message_id: 1804289383, message_seq: 1804289383, real_seq: '12',
  message_type: 'group', sender: { user_id: 10000, nickname: '机器人', card: '', role: 'member' },
  raw_message: 'a', font: 14, sub_type: 'normal', message: [{ type: 'text', data: { text: 'a' } }],
  message_format: 'array', post_type: 'message_sent', group_id: 123456, target_id: 123456,
}
const luckyLillia = {
  self_id: 10000, user_id: 10000, time: seconds, message_id: 77, message_seq: 4, message_type: 'private',
  sender: { user_id: 10000, nickname: '机器人' }, raw_message: 'a', font: 14, sub_type: 'friend',
  message: [{ type: 'text', data: { text: 'a' } }], message_format: 'array', post_type: 'message_sent',
}
const goCqhttp = {
  anonymous: null, font: 0, group_id: 123456, message: 'a', message_id: -1204289383, message_seq: 31, message_type: 'group',
  post_type: 'message', raw_message: 'a', self_id: 10000, sub_type: 'normal', time: seconds, user_id: 10000,
  sender: { age: 0, area: '', card: '', level: '', nickname: '机器人', role: 'member', sex: 'unknown', title: '', user_id: 10000 },
}
const foreign = { ...napcat, message_id: 5, user_id: 10001, sender: { user_id: 10001 }, post_type: 'message' }

/** Reads the history of an answer. */
function readAnswer(answer: unknown): Promise<HistoryPage | undefined> {
  return readHistory(Promise.resolve(answer).then(readData), selfId, content)
}

function read(messages: unknown): Promise<HistoryPage | undefined> {
  return readAnswer({ status: 'ok', retcode: 0, data: { messages } })
}

test('reads the own messages of NapCat, LuckyLilliaBot and go-cqhttp', async () => {
  const pages = await Promise.all([[foreign, napcat], [null, luckyLillia], [goCqhttp]].map(read))
  const own = pages.flatMap(page => page?.own ?? [])
  assert.deepEqual(own, ['1804289383', '77', '-1204289383'].map(id => ({ id, time: since, isEqual: true, isSeen: true })))
  assert.deepEqual((await read([{ ...napcat, message: 'b' }]))?.own.map(({ isEqual }) => isEqual), [false])
})

test('takes no message for one that the server has seen which it gave no number, where the others of the page have one', async () => {
  const swallowed = [{ real_seq: '0' }, { real_seq: 0 }, { real_seq: undefined }, { real_seq: '' }].map(fields => ({ ...napcat, ...fields }))
  assert.deepEqual((await read([foreign, ...swallowed, napcat]))?.own.map(({ isSeen }) => isSeen), [false, false, false, false, true])
})

test('knows an own message by its sender, and without one by its user_id', async () => {
  const senders: [change: object, isOwn: boolean][] = [
    [{ user_id: 10001 }, true], [{ sender: { user_id: '10000' } }, true], [{ sender: undefined }, true], [{ sender: { user_id: 10001 } }, false],
  ]
  for (const [change, isOwn] of senders) assert.equal((await read([{ ...napcat, ...change }]))?.own.length, isOwn ? 1 : 0)
})

test('tells how far a history reaches back, whoever spoke', async () => {
  const page = await read([napcat, { ...foreign, time: seconds - 1 }, { ...foreign, time: seconds + 1 }, { ...foreign, time: null }])
  assert.equal(page?.oldest, since - 1_000)
  assert.equal((await read([]))?.oldest, Infinity)
})

test('concludes nothing from an own message that cannot be read', async () => {
  for (const change of [{ message_id: undefined }, { time: null }, { message: null }]) {
    assert.equal((await read([{ ...napcat, ...change }]))?.isReadable, false)
  }
  assert.equal((await read([{ ...foreign, message: null }, 'x', null]))?.isReadable, true)
})

test('takes a private chat of Lagrange and SnowLuma, which ends with the last message of the other side, for no history, but not a group', async () => {
  const lagrange = { ...foreign, real_seq: undefined, message_type: 'private', message_style: null }
  assert.equal(await read([{ ...lagrange, message_id: 1, user_id: 10000, sender: { user_id: 10000 } }, lagrange]), undefined)
  assert.equal((await read([{ ...lagrange, message_type: 'group' }]))?.isReadable, true)
  const snowLuma = { ...foreign, real_seq: undefined, message_type: 'private', self_id: undefined }
  assert.equal(await read([snowLuma]), undefined)
  assert.equal((await read([{ ...snowLuma, self_id: 10000 }]))?.isReadable, true)
  assert.equal((await read([{ ...snowLuma, message_type: 'group' }]))?.isReadable, true)
})

test('takes an unknown action and data of another form for no history', async () => {
  for (const answer of [
    { status: 'failed', retcode: 1404, data: null, message: '不支持的Api get_group_msg_history', wording: '' },
    { status: 'failed', retcode: 404, data: null },
    { status: 'failed', retcode: 404, msg: 'API_NOT_FOUND', wording: 'API不存在', data: null },
    { status: 'failed', retcode: 1200, message: 'Unsupported API', data: null },
    { status: 'ok', retcode: 0, data: null },
    { status: 'ok', retcode: 0, data: { messages: {} } },
  ]) assert.equal(await readAnswer(answer), undefined, JSON.stringify(answer))
})

test('takes any other failure, and what cannot be read, for a question that was not answered', async () => {
  for (const answer of [
    { status: 'ok' },
    { status: 'ok', retcode: '0', data: { messages: [] } },
    { status: 'async', retcode: 1, data: null },
    'ok',
    undefined,
    { status: 'failed', retcode: 1200, message: 'Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/getAioFirstViewLatestMsgs', data: null },
    { status: 'failed', retcode: 100, msg: 'MESSAGES_API_ERROR', wording: 'timeout', data: null },
    { status: 'failed', retcode: 200, data: null },
    { status: 'failed', retcode: 100, msg: 'GROUP_NOT_FOUND', wording: '群聊不存在', data: null },
  ]) {
    await assert.rejects(readAnswer(answer), SendError)
  }
})

test('takes the words for a chat without messages for an empty history', async () => {
  for (const message of ['消息undefined不存在', '未找到消息']) {
    assert.deepEqual(await readAnswer({ status: 'failed', retcode: 1200, message, data: null }), { own: [], oldest: Infinity, isReadable: true })
  }
})

/** A report of a message in a group. */
const report = { ...napcat, message_id: 1 }

test('reads the reports of own messages, and of nothing else', () => {
  assert.deepEqual(readReport(report, selfId), { chat: 'group 123456', id: '1', content })
  assert.deepEqual(readReport({ ...goCqhttp, message_id: 2 }, selfId), { chat: 'group 123456', id: '2', content })
  assert.deepEqual(readReport({ ...luckyLillia, target_id: 10001 }, selfId), { chat: 'private 10001', id: '77', content })
  const events = [{}, foreign, { ...report, post_type: 'notice' }, { ...report, group_id: undefined }, { ...report, message_id: '' }, { ...report, message: null }]
  for (const event of events) assert.equal(readReport(event, selfId), undefined)
})

test('keeps the last 200 reports of a chat, each once, the oldest first', () => {
  const reported = new Reported<string>()
  const find = (): Report[] => reported.find('a', content => content === 'x')
  for (let id = 1; id <= 201; id++) for (const chat of ['a', 'b']) reported.keep(chat, String(id), 'x')
  reported.keep('a', '201', 'x')
  reported.keep('a', '202', 'x')
  reported.keep('a', '203', 'y')
  const kept = find()
  assert.deepEqual([kept.length, kept[0]?.id, kept.at(-1)?.id], [199, '4', '202'])
})
