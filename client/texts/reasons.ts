import type { Language } from '../../src/texts/language'
import { causes } from '../../src/texts/table/causes'

/** The phrases around a cause. They are omitted if there is a cause, because the state says the same. */
export const frames: Readonly<Record<string, string>> = {
  'the platform refused the message': '平台拒绝了这条消息',
  'the platform refused it': '平台拒绝了请求',
  'nothing was done, try again later': '没有执行，请稍后重试',
  'nothing was sent, try again later': '没有发送，请稍后重试',
  'nothing was sent this time': '这次没有发送',
  'nothing was sent': '没有发送',
  'try again later': '请稍后重试',
  'not ready': '尚未就绪',
}

/** The other phrases of the relay for operators. `{}` is a variable part. */
export const sentences: Readonly<Record<string, string>> = {
  'the message may have arrived': '消息可能已送达',
  'the platform did not answer in time': '平台没有及时应答',
  'the platform cannot be reached': '无法连接到平台',
  'the connection was lost': '连接已断开',
  'the answer of the platform cannot be read': '无法读取平台的应答',
  'its template gives no text': '模板没有输出文本',
  'only a part of it has arrived': '只送达了一部分',
  'it waited for too long': '等得太久，已换下一条途径',
  '{} cannot be sent by the adapter for {}': '该平台的适配器不能发送这种内容',
  'send a link to it as text': '请把链接作为文本发送',
  'the platform takes files of at most {} MB': '平台只接受不超过 {} MB 的文件',
  'the text is too long for this chat': '文本太长，该聊天放不下',
  'another plugin of the bot suppressed the message': '机器人的其他插件拦截了这条消息',
  'another plugin of the bot held the message back, or its files came too slowly': '机器人的其他插件没有放行这条消息，或文件下载太慢',
  'no bot is online': '没有机器人在线',
  'no OneBot bot is online': '没有 OneBot 机器人在线',
  'no bot with this platform and self_id is online': '指定的机器人不在线',
  'there is no bot with this platform and self_id': '没有指定的机器人',
  'this target is paused after repeated failures': '该目标因连续失败而暂停',
  'too many messages are waiting for this target': '等待发往该目标的消息太多',
  'this key has reached its message rate': '已达到该密钥的发送频率上限',
  'the message expired before it could be delivered': '消息在送达之前已过期',
  'dropped by an operator while it was waiting': '等待时被手动丢弃',
  'withdrawn while it was waiting': '等待时被取消',
  'the caller went away while its message was waiting': '消息还在等待时，调用方断开了连接',
  'the relay is stopping': '插件正在停止',
  'the relay ended before this could be sent': '插件在发送之前停止了',
  'the relay cannot use its data file': '无法使用数据文件',
  'the relay has not opened its data file yet': '还没有打开数据文件',
  'the data folder of the relay cannot be used': '无法使用数据目录',
  'check its disk, and that it has space': '请检查磁盘和剩余空间',
  'this relay stands by, because another process uses its data folder': '本实例待命，数据目录正由另一个进程使用',
  'another process uses the data folder of this bot, and this relay stands by: make changes there':
    '数据目录正由另一个进程使用，本实例待命：请在那里修改',
  'another process has taken the data folder of the relay: nothing was stored': '数据目录已被另一个进程接手：没有保存',
  'the data file of the relay is damaged, and was left as it is: restore a backup, or move relay.db and relay.db-wal away':
    '数据文件已损坏，未作改动：请恢复备份，或移走 relay.db 和 relay.db-wal',
  'relay.db in the data folder of the relay is no data file of a relay, and was left as it is: move it away, or restore a backup':
    '数据目录中的 relay.db 不是本插件的数据文件，未作改动：请移走它，或恢复备份',
  'relay.db was written by a newer release of the relay: install that release again, or move the file away':
    'relay.db 由更新的版本写入：请装回那个版本，或移走这个文件',
  'the relay may not write to its data folder, or to a file in it: give folder and files to the user that runs the bot':
    '无法写入数据目录或其中的文件：请把它们交给运行机器人的用户',
  'the data folder of the relay is read-only: make it writable, or set dataDir to another folder':
    '数据目录只读：请让它可写，或把 dataDir 设为另一个目录',
  'the disk of the relay is full: free some space': '磁盘已满：请腾出空间',
  'the disk of the relay does not keep what is written: check the disk': '磁盘没有保住写入的内容：请检查磁盘',
  'the store of the relay has crashed: restart the bot': '存储已崩溃：请重启机器人',
  'the disk of the relay is full: nothing was stored or sent; free some space, then try again': '磁盘已满，没有保存或发送：请腾出空间后重试',
  'internal error: see the log of the bot for this request ID': '内部错误：请按请求 ID 查看机器人的日志',
  'no such delivery': '没有这条投递',
  'no such file: it was never uploaded here, or has been removed since; upload it again': '没有这个文件，可能已被清理：请重新上传',
  'no such target {}: write group:<id> or private:<id>, or a name from the list of targets': '没有目标 {}：请填写 group:<群号> 或 private:<QQ 号>，或目标列表中的名称',
  '{}: this is not the ID of a {}': '{}：目标的号码不正确',
  'a reply cannot be sent alone: add a text, picture or mention': '不能只发送回复：请加上文本、图片或提及',
  'files of this kind are not accepted, only: {}': '不接受这种文件，只接受：{}',
  'a file is larger than {}': '文件超过 {}',
  'the file is too large for base64 (36 MB): send a link, or upload it and set mediaTransport to url or path': '文件过大，无法以 base64 发送（36 MB）：请改发链接，或上传后把 mediaTransport 设为 url 或 path',
  'the content of this delivery is gone: send it again as a new request': '投递的内容已不存在：请重新发送',
  'the content of this delivery is not kept: send it as a new request': '没有保留投递的内容：请重新发送',
  'a part of this delivery has been sent: it cannot be withdrawn any more': '已发送一部分，无法取消',
  'the caller of this delivery waits for it: it cannot be withdrawn': '调用方正在等待结果，无法取消',
  'this delivery is {}: only a queued one can be withdrawn': '只有等待中的投递可以取消',
  'this delivery is {}: only an undelivered one can be retried': '只有未送达的投递可以重试',
  'the same request came again with its Idempotency-Key, as delivery {}': '同一请求已用它的幂等键重新提交，见投递 {}',
  'the platform may still be carrying it out: try again in {} s': '平台可能仍在发送：请 {} 秒后重试',
  'nothing is waiting in a queue of this name': '这个队列中没有等待的消息',
  'there is a key of this name already': '已有同名的密钥',
  'this key has expired, and a new one would have, too: remove it, and make another': '这个密钥已过期，更换后仍然过期：请删除它，另建一个',
  'there are {} keys already: remove one first': '已有 {} 个密钥：请先删除一个',
  'this key is in the settings of the relay: change it there': '这个密钥写在配置中：请到配置中修改',
  'no such key': '没有这个密钥',
  'expires is over: the key would never work': '有效期已过：这个密钥不会有效',
  'a name must be 1 to 64 letters, digits, dots, underscores and hyphens, in their usual width, and begin with a letter or digit':
    '名称由 1 到 64 个文字（汉字、字母等）、数字、点、下划线和连字符组成，以文字或数字开头，不用全角字符',
  'its name must be 1 to 64 letters (a to z), digits, dots, underscores and hyphens, and begin with a letter or digit':
    '名称由 1 到 64 个英文字母、数字、点、下划线和连字符组成，以字母或数字开头',
  'there are {} {} already: remove one first': '已有 {} 个：请先删除一个',
  'this {} is in the settings of the relay: change it there': '这一项写在配置中：请到配置中修改',
  'this {} is used by {}: change that first': '正在使用：请先修改用到它的目标或值班表',
  'there is a person of this name': '已有同名的人员',
  'there is a rota of this name': '已有同名的值班表',
  '{} is reserved: as a mention it means {}': '“{}”是保留的名称，请换一个',
  '{} must be the ID of an account': '{} 账号不正确',
  '{}: there is no person and no rota {}': '有的人员或值班表已经不在',
  'people must be a list of 1 to {} people': '请至少选择一名人员',
  'every must be a duration from 1h to 366d, such as 12h, 1d or 1w': '间隔应为 1h 到 366d，如 12h、1d、1w',
  'until must be after from, and ahead': '结束时间应晚于开始时间和现在',
  '{} must be a duration of at most 30d: seconds, or such as 90s, 5m, 4h or 1d': '时长应如 90s、5m、4h、1d，最长 30d',
  '{} must be later than the step before: it counts from the first message': '每一步应晚于上一步，都从第一条消息算起',
  '{} must have mention or to': '每一步应选择 @ 谁，或另一个聊天',
  'no such incident': '没有这起事件',
  'cron must have five fields, such as "30 2 * * *" for each day at 02:30': 'cron 表达式应有五段，例如每天 02:30 为“30 2 * * *”',
  'cron never comes': '这个 cron 表达式没有对应的时间',
  '{} must be a duration such as 90s, 5m, 4h or 1d, from {}s to 366d': '时长应如 90s、5m、4h、1d，最长 366d',
  'to must be a target or a name, or a list of these': '请至少选择一个目标',
  'the template cannot be written': '模板无法写入',
  'make the data folder writable, and free some space': '请让数据目录可写，并腾出空间',
  '{} has several ways, each with a bot of its own: leave out platform and self_id': '“{}”有多条途径，各由自己的机器人发送：请不要再选择机器人',
  'name must be without blanks, slashes, colons and commas': '名称不能包含空格、斜杠、冒号和逗号',
  'name must be one line of text, of at most {} bytes': '名称应为一行文本，最长 {} 字节（每个汉字 3 字节）',
  '{} is the name of the page in the console': '{} 是本页面在日志中的名称，请换一个名称',
  'target must be group:<id>, private:<id>, one of these with its platform in front, or a name from the list of targets':
    '目标应为 group:<群号>、private:<QQ 号>（前面可以加平台）或目标列表中的名称',
  'the target names one bot, and platform or self_id another bot: leave out platform and self_id': '目标的地址中已有另一个机器人：请不要再选择机器人',
  'more than {} targets: send several requests': '目标超过 {} 个：请分几次发送',
  '{}: a QQ {}number has 1 to 20 digits, and does not begin with 0': '{}：QQ 群号和 QQ 号是 1 到 20 位数字，不以 0 开头',
  'targets must be a list of targets such as group:1 or group:*, or of names for targets': '目标应为列表，例如 group:1、group:*，或目标列表中的名称',
  'from must be a list of addresses, or of ranges such as 10.0.0.0/8': '允许的地址应为 IP 地址或网段的列表，例如 10.0.0.0/8',
  'rate must be a whole number of messages a minute, from 1 to {}': '发送频率应为 1 到 {} 之间的整数（每分钟条数）',
  'to must be group:<id> or private:<id>, or a list of these, and must not name another platform or account than platform and selfId':
    '目标应为 group:<群号> 或 private:<QQ 号>，或它们的列表，其中的平台和账号不能与另行指定的不同',
  'first: {} must be a name that leads to one chat': '途径中的 {} 应为指向一个聊天的名称',
  'an address of first must be group:<id> or private:<id>, with platform and account in front or not, a name, an http:// or https:// address, or {url, secret, format}':
    '每条途径应为 group:<群号> 或 private:<QQ 号>（前面可以加平台和账号）、名称，或 http(s) 地址',
  '{} events produce no message': '{} 事件不发送消息',
  'its {} "{}" produces no message': '{} 为“{}”的事件不发送消息',
  'events without an action produce no message': '没有 action 的事件不发送消息',
  'events without a state produce no message': '没有状态的事件不发送消息',
  'the server of the bot does not listen': '机器人的服务器没有监听',
  'the relay gave no answer that can be read': '插件的应答无法读取',
  'no connection': '没有连接',
  'no such {}': '没有这一项',
}

/** A known sentence at the beginning of a text, up to its end, a colon or a bracket. */
interface Phrase { pattern: RegExp, zh: string, isFrame: boolean }

const phrases: readonly Phrase[] = [
  ...Object.values(causes).map(([en, zh]) => phrase(en, zh)),
  ...Object.entries(sentences).map(([en, zh]) => phrase(en, zh)),
  ...Object.entries(frames).map(([en, zh]) => phrase(en, zh, true)),
]

function phrase(en: string, zh: string, isFrame = false): Phrase {
  const literal = en.split('{}').map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('(.+?)')
  return { pattern: new RegExp(`^${literal}(?=$|: | \\()`, 's'), zh, isFrame }
}

/**
 * Splits a reason of the relay into its cause, translated if it is known, and the platform's own words.
 *
 * @param reason sentences separated by colons, with the platform's words in brackets
 */
export function explainIn(language: Language, reason: string): { cause: string, raw: string } {
  const isChinese = language === 'zh-CN'
  const said: { text: string, isFrame: boolean }[] = []
  const raw: string[] = []
  let rest = reason
  while (rest !== '') {
    const start = rest
    const found = phrases.find(({ pattern }) => pattern.test(start))
    const match = found?.pattern.exec(start)
    if (!found || !match) break
    const [text, ...values] = match
    said.push({ text: isChinese ? values.reduce((zh, value) => zh.replace('{}', value), found.zh) : text, isFrame: found.isFrame })
    const [brackets = '', words, more = ''] = /^ \((?:platform: "(.*?)"|(.*?))\)(?=$|: )/s.exec(start.slice(text.length)) ?? []
    if (brackets !== '') raw.push(words ?? translateTo(language, more))
    rest = start.slice(text.length + brackets.length).replace(/^: /, '')
  }
  if (said.length === 0) return { cause: capital(reason), raw: '' }
  if (rest !== '') raw.push(rest.trim())
  const causesSaid = said.filter(({ isFrame }) => !isFrame)
  const cause = (causesSaid.length > 0 ? causesSaid : said).map(({ text }) => text).join(isChinese ? '：' : ': ')
  return { cause: isChinese ? cause : capital(cause), raw: raw.join(' ') }
}

/** A text of the relay in one line. In English, and if it is not known, it stays as it is. */
export function translateTo(language: Language, text: string): string {
  if (language !== 'zh-CN' || !phrases.some(({ pattern }) => pattern.test(text))) return text
  const { cause, raw } = explainIn(language, text)
  return raw === '' ? cause : `${cause}（${raw}）`
}

/** A text with its first letter in upper case. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
