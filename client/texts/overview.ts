import { messages } from './count'

/** What Overview says, in English. */
export const english = {
  overview: {
    bots: 'Bots', noBots: 'No bot is loaded.', online: 'online', offline: 'offline', connecting: 'connecting', restricted: 'restricted: nobody sees its messages',
    queues: 'Queues', noQueues: 'Nothing waits, and no target is paused.',
    waiting: (count: number) => `${messages(count)} waiting`, nobodyWaits: 'Nothing waits',
    busy: 'A message is being sent', inLine: 'Waits for its turn', paused: (until: string) => `Paused until ${until}`,
    resume: 'Resume sending', drop: (count: number) => `Drop ${messages(count)}`,
    dropTitle: (target: string) => `Drop everything that waits for ${target}?`,
    dropText: (count: number) => `${messages(count)} will not be sent, and will be listed as failed: from there each can be sent again.`,
    resumed: 'Sending goes on.', dropped: 'What waited is dropped.',
    outbox: 'Outbox', noOutbox: 'Without a database nothing is kept for later.', empty: 'Empty: whatever was accepted for later has left.',
    size: (count: number) => `${messages(count)} accepted and not sent yet`, oldest: (when: string) => `the oldest from ${when}`,
    unavailable: 'The database does not answer.',
    day: 'The last 24 hours', sent: 'sent', failed: 'failed', unanswered: 'unanswered', hour: (zone: string) => `Hour (${zone})`,
    summary: (sent: number, failed: number, unanswered: number) => `${sent} sent, ${failed} failed, ${unanswered} unanswered`,
    highest: (count: number, zone: string) => `At most ${count} an hour; hours in ${zone}`,
    nothing: 'Nothing was sent in the last 24 hours.', asTable: 'As a table',
  },
}

/** The same in Chinese. */
export const chinese: typeof english = {
  overview: {
    bots: '机器人', noBots: '没有加载机器人。', online: '在线', offline: '离线', connecting: '连接中', restricted: '受限：消息发出后没有人能看到',
    queues: '队列', noQueues: '没有等待的消息，也没有暂停的目标。',
    waiting: count => `${count} 条消息在等待`, nobodyWaits: '没有等待的消息',
    busy: '正在发送一条消息', inLine: '排队等待', paused: until => `暂停至 ${until}`,
    resume: '恢复发送', drop: count => `丢弃 ${count} 条消息`,
    dropTitle: target => `丢弃等待发往 ${target} 的全部消息？`,
    dropText: count => `${count} 条消息将不再发送，并列为失败；之后可以在投递记录中逐条再次发送。`,
    resumed: '已恢复发送。', dropped: '等待的消息已丢弃。',
    outbox: '发件箱', noOutbox: '没有数据库，无法保存延后发送的消息。', empty: '没有待发的消息。',
    size: count => `${count} 条消息已接收，尚未发出`, oldest: when => `最早的一条接收于 ${when}`,
    unavailable: '数据库没有应答。',
    day: '最近 24 小时', sent: '已送达', failed: '失败', unanswered: '无应答', hour: zone => `时间（${zone}）`,
    summary: (sent, failed, unanswered) => `送达 ${sent} 条，失败 ${failed} 条，无应答 ${unanswered} 条`,
    highest: (count, zone) => `每小时最多 ${count} 条；时区 ${zone}`,
    nothing: '最近 24 小时没有发送消息。', asTable: '以表格查看',
  },
}
