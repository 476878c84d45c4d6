import type { MediaForm, ProfileName } from './types'

/** Failures with a wording per implementation. */
export type PlatformFailure
  = 'refused' | 'muted' | 'not-member' | 'not-friend' | 'too-fast' | 'logged-out' | 'swallowed' | 'timeout' | 'empty'

/** `code` is go-cqhttp's `msg`, a constant. The other implementations have none. */
export interface Reason { retcode: number, wording: string, code?: string }

/**
 * What an implementation may tell beyond answers: a notice that the account was logged out (`kick`); in heartbeats and `get_status`, that
 * it is (`status`); until when the bot is muted (`mute`); whether everybody is muted (`all-muted`), or until when (`all-muted-until`);
 * reactions to messages (`reaction`); the server's number of a message as `real_seq`, or as `message_seq`.
 */
export type Telling = 'kick' | 'status' | 'mute' | 'all-muted' | 'all-muted-until' | 'reaction' | 'real_seq' | 'message_seq'

/** The peculiarities of an implementation, according to its source. */
export interface Profile {
  appName: string
  appVersion: string
  retcodes: { parameter: number, execution: number, unknown: number }
  /** The field with the reason of a failure: `message` and `wording`, or `wording` (with a constant in `msg`), or none. */
  reasonIn: 'both' | 'wording' | 'none'
  reasons: Record<PlatformFailure, Reason>
  tells: ReadonlySet<Telling>
  /** Accepted forms in image and record segments, in video segments, and in the upload actions. */
  forms: Record<'image' | 'record' | 'video' | 'file' | 'upload', readonly MediaForm[]>
  absentActions: readonly string[]
  /** NapCat accepts the connection and then sends 1403. The Go and C# implementations refuse the upgrade. */
  tokenRefusal: 'frame' | 'http'
  /** Whether a `%` in a bare path is taken for an escape. */
  decodesPaths: boolean
  uploadName: { required: boolean, slashes: boolean }
  uploadData: 'file_id' | 'null'
  refusesEmptyFiles: boolean
  /** Largest frame, bytes. */
  maxFrame: number
}

const allForms: readonly MediaForm[] = ['file', 'path', 'base64', 'data', 'http']

/** The wording of NapCat and LuckyLilliaBot if the client below them refuses or does not confirm a message. */
function sendEvent(kind: 'EventChecker Failed' | 'Timeout', result: number, errMsg: string): string {
  return `${kind}: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg `
    + `ListenerName:NodeIKernelMsgListener/onMsgInfoListUpdate EventRet:\n${JSON.stringify({ result, errMsg }, null, 4)}\n`
}

const removed = '发送失败，你已被移出该群，请重新加群。'
const muted = '发送失败，你已被禁言'
const tooFast = '本群每分钟只能发5条消息'

const napcat: Profile = {
  appName: 'NapCat.Onebot',
  appVersion: '4.8.0',
  retcodes: { parameter: 1400, execution: 1200, unknown: 1404 },
  reasonIn: 'both',
  reasons: {
    'refused': { retcode: 1200, wording: sendEvent('EventChecker Failed', 1, '发送失败') },
    'muted': { retcode: 1200, wording: sendEvent('EventChecker Failed', 120, muted) },
    'not-member': { retcode: 1200, wording: sendEvent('EventChecker Failed', 110, removed) },
    'not-friend': { retcode: 1200, wording: '无法获取用户信息' },
    'too-fast': { retcode: 1200, wording: sendEvent('EventChecker Failed', 299, tooFast) },
    'logged-out': { retcode: 1200, wording: sendEvent('EventChecker Failed', 1006514, '网络连接异常!') },
    'swallowed': { retcode: 1200, wording: sendEvent('Timeout', 0, '') },
    'timeout': { retcode: 1200, wording: sendEvent('Timeout', 0, '') },
    'empty': { retcode: 1200, wording: '消息体无法解析, 请检查是否发送了不支持的消息类型' },
  },
  tells: new Set(['kick', 'status', 'mute', 'all-muted', 'reaction', 'real_seq']),
  forms: { image: allForms, record: allForms, video: allForms, file: allForms, upload: allForms },
  absentActions: [],
  tokenRefusal: 'frame',
  decodesPaths: true,
  uploadName: { required: true, slashes: true },
  uploadData: 'file_id',
  refusesEmptyFiles: true,
  maxFrame: 50 * 1024 * 1024,
}

const llbot: Profile = {
  ...napcat,
  appName: 'LLOneBot',
  appVersion: '6.0.0',
  reasons: {
    'refused': { retcode: 1200, wording: '发送消息失败 (code=1): ' },
    'muted': { retcode: 1200, wording: '当前处于被禁言状态' },
    'not-member': { retcode: 1200, wording: `发送消息失败 (code=110): ${removed}` },
    'not-friend': { retcode: 1200, wording: '无法获取用户信息' },
    'too-fast': { retcode: 1200, wording: `发送消息失败 (code=299): ${tooFast}` },
    'logged-out': { retcode: 1200, wording: 'Direct client not logged in' },
    'swallowed': { retcode: 1200, wording: '发送消息失败 (sequence=0)' },
    'timeout': { retcode: 1200, wording: 'waitForSelfEcho timeout' },
    'empty': { retcode: 1200, wording: '消息体无法解析，请检查是否发送了不支持的消息类型' },
  },
  tells: new Set(['status', 'mute', 'all-muted-until', 'reaction']),
  decodesPaths: false,
  uploadName: { required: false, slashes: false },
  maxFrame: 100 * 1024 * 1024,
}

const lagrangeForms: readonly MediaForm[] = ['file', 'path', 'base64', 'http']

const lagrange: Profile = {
  appName: 'Lagrange.OneBot',
  appVersion: '0.0.3',
  retcodes: { parameter: 200, execution: 200, unknown: 404 },
  reasonIn: 'none',
  reasons: {
    'refused': { retcode: 200, wording: '' },
    'muted': { retcode: 120, wording: '' },
    'not-member': { retcode: 110, wording: '' },
    'not-friend': { retcode: 200, wording: '' },
    'too-fast': { retcode: 299, wording: '' },
    'logged-out': { retcode: 9057, wording: '' },
    'swallowed': { retcode: 9000, wording: '' },
    'timeout': { retcode: 9057, wording: '' },
    'empty': { retcode: 200, wording: '' },
  },
  tells: new Set(['kick', 'message_seq']),
  forms: { image: lagrangeForms, record: lagrangeForms, video: lagrangeForms, file: lagrangeForms, upload: ['path'] },
  absentActions: ['download_file', 'get_group_msg_history', 'get_friend_msg_history'],
  tokenRefusal: 'http',
  decodesPaths: false,
  uploadName: { required: false, slashes: true },
  uploadData: 'null',
  refusesEmptyFiles: false,
  maxFrame: 100 * 1024 * 1024,
}

const unclear: Reason = { retcode: 100, code: 'SEND_MSG_API_ERROR', wording: '请参考 go-cqhttp 端输出' }

const gocqhttp: Profile = {
  appName: 'go-cqhttp',
  appVersion: 'v1.2.0',
  retcodes: { parameter: 100, execution: 100, unknown: 404 },
  reasonIn: 'wording',
  reasons: {
    // go-cqhttp waits for a receipt, and cannot distinguish a mute from any other send without a receipt.
    'refused': unclear,
    'muted': unclear,
    'not-member': { retcode: 100, code: 'GROUP_NOT_FOUND', wording: '群聊不存在' },
    'not-friend': unclear,
    'too-fast': unclear,
    'logged-out': unclear,
    'swallowed': unclear,
    'timeout': unclear,
    'empty': { retcode: 100, code: 'EMPTY_MSG_ERROR', wording: '消息为空' },
  },
  tells: new Set(['status', 'mute', 'message_seq']),
  forms: {
    image: ['file', 'base64', 'http'],
    record: ['file', 'base64', 'http'],
    video: ['file', 'http'],
    file: [],
    upload: ['path'],
  },
  absentActions: ['get_friend_msg_history'],
  tokenRefusal: 'http',
  decodesPaths: false,
  uploadName: { required: false, slashes: true },
  uploadData: 'null',
  refusesEmptyFiles: false,
  maxFrame: 100 * 1024 * 1024,
}

/** Every profile by its name. */
export const profiles: Readonly<Record<ProfileName, Profile>> = { napcat, llbot, lagrange, gocqhttp }

/** Whether a word names a profile. */
export function isProfileName(word: string): word is ProfileName {
  return Object.hasOwn(profiles, word)
}
