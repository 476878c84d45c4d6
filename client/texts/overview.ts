import { messages } from './count'

const count = (number: number, one: string, many: string): string => `${number} ${number === 1 ? one : many}`

/** The texts of Overview, in English. */
export const english = {
  overview: {
    fine: 'Everything works', attention: 'Needs attention', quiet: 'Ready to send',
    offlineAccounts: (number: number) => `${count(number, 'account is', 'accounts are')} not online`,
    restrictedAccounts: (number: number) => `${count(number, 'account is', 'accounts are')} restricted`,
    closedTargets: (number: number) => `${count(number, 'target is', 'targets are')} on hold`,
    standby: (name: string) => `${name} does the work, this relay stands by`,
    day: 'Last 24 hours', month: 'Last 30 days', before: (value: string) => `day before: ${value}`,
    arrived: 'Delivered', sent: 'Sent', failed: 'Failed', unanswered: 'Unanswered', waiting: 'Waiting',
    change: (points: string) => `${points} points vs. the day before`, noChange: 'as the day before', noneBefore: 'nothing the day before',
    oldest: (ago: string) => `oldest: ${ago}`, noneWaits: 'nothing waits',
    accounts: 'Accounts', noBots: 'No bot is loaded.',
    statuses: { online: 'Online', offline: 'Offline', connecting: 'Connecting', restricted: 'Restricted' },
    lasts: (span: string) => `for ${span}`,
    closed: 'On hold', paused: 'Paused after repeated failures',
    resumes: (span: string) => `resumes in ${span}`, resumesNow: 'resumes now',
    ends: { 'chat-closed': 'until the chat opens again', 'account': 'until the account can send again', 'unknown': 'until it can be reached' },
    waitingHere: (number: number) => `${messages(number)} waiting`, resume: 'Resume', drop: 'Drop',
    dropTitle: (target: string) => `Drop everything that waits for ${target}?`,
    dropText: (number: number) => `${messages(number)} will not be sent, and will be listed as failed. You can retry them from there.`,
    resumed: 'Resumed: what waits is tried now.', stillHeld: (why: string) => `Not resumed. ${why}.`, dropped: (number: number) => `${messages(number)} dropped.`,
    later: 'Waiting for their time', laterHere: (number: number, next: string) => `${messages(number)}, next at ${next}`,
    traffic: 'Traffic',
    summary: (sent: number, failed: number, unanswered: number) => `${sent} sent, ${failed} failed, ${unanswered} unanswered`,
    nothing: 'Nothing was sent in this time.',
    failures: 'Latest failures', noFailures: 'No failures on record.', allFailures: 'Show all',
    start: 'Three steps to the first message',
    steps: [
      ['Connect a bot', 'Load a platform adapter in Koishi, for example OneBot for QQ, and wait until the account is online here.'],
      ['Make a target and a key', 'Choose what will call the relay. The page makes the address, the target and the key.'],
      ['Send the first message', 'Write a message here and see it arrive in the chat.'],
    ],
    done: 'done', toIntegrations: 'Open Integrations', toSend: 'Open Send',
  },
}

/** The texts in Chinese. */
export const chinese: typeof english = {
  overview: {
    fine: '一切正常', attention: '需要处理', quiet: '可以发送',
    offlineAccounts: number => `${number} 个账号不在线`,
    restrictedAccounts: number => `${number} 个账号受限`,
    closedTargets: number => `${number} 个目标暂不发送`,
    standby: name => `当前由 ${name} 工作，本实例待命`,
    day: '最近 24 小时', month: '最近 30 天', before: value => `前一天：${value}`,
    arrived: '送达率', sent: '已发送', failed: '失败', unanswered: '无应答', waiting: '等待',
    change: points => `较前一天 ${points} 个百分点`, noChange: '与前一天持平', noneBefore: '前一天没有消息',
    oldest: ago => `最早：${ago}`, noneWaits: '没有等待的消息',
    accounts: '账号', noBots: '没有加载机器人。',
    statuses: { online: '在线', offline: '离线', connecting: '连接中', restricted: '受限' },
    lasts: span => `已持续 ${span}`,
    closed: '暂不发送', paused: '连续失败，已暂停',
    resumes: span => `${span}后恢复`, resumesNow: '即将恢复',
    ends: { 'chat-closed': '等待聊天恢复', 'account': '等待账号恢复', 'unknown': '等待重新连通' },
    waitingHere: number => `${number} 条消息在等待`, resume: '恢复发送', drop: '丢弃',
    dropTitle: target => `丢弃等待发往 ${target} 的全部消息？`,
    dropText: number => `${number} 条消息将不再发送，并列为失败；之后可以在“投递”中重试。`,
    resumed: '已恢复，等待的消息正在尝试发送。', stillHeld: why => `未能恢复。${why}。`, dropped: number => `已丢弃 ${number} 条消息。`,
    later: '等待发送时间', laterHere: (number, next) => `${number} 条，下一条 ${next}`,
    traffic: '流量',
    summary: (sent, failed, unanswered) => `已发送 ${sent}，失败 ${failed}，无应答 ${unanswered}`,
    nothing: '这段时间没有发送消息。',
    failures: '最近的失败', noFailures: '没有失败的记录。', allFailures: '查看全部',
    start: '三步发出第一条消息',
    steps: [
      ['连接机器人', '在 Koishi 中加载平台适配器（例如 QQ 的 OneBot），等账号在这里显示为在线。'],
      ['新建目标和密钥', '选择由谁调用，页面会生成地址、目标和密钥。'],
      ['发送第一条消息', '在这里写一条消息，看它出现在聊天中。'],
    ],
    done: '已完成', toIntegrations: '去接入', toSend: '去发送',
  },
}
