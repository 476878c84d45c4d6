import { messages } from './count'

/** What Deliveries and a record say, in English. */
export const english = {
  deliveries: {
    filters: 'Filters', state: 'State', target: 'Target', door: 'Came through', key: 'Key', text: 'Text', since: 'From', until: 'To', clear: 'Clear filters',
    time: (zone: string) => `Time (${zone})`, what: 'What', list: 'Deliveries, newest first', empty: 'No delivery fits these filters.',
    none: 'Nothing was sent yet. Whatever is will be listed here, also when it fails.',
    open: (target: string, state: string) => `${state}: ${target}, details`,
    master: 'master key',
    again: 'Send all of these again',
    againTitle: 'Send again all that these filters show?', againText: 'Up to 1,000 deliveries are queued, the oldest first. Only what has not arrived is sent.',
    queued: (queued: number, skipped: number, more: boolean) =>
      `${messages(queued)} queued${skipped > 0 ? `, ${skipped} skipped` : ''}${more ? '; there are more' : ''}.`,
  },
  record: {
    title: 'Delivery', id: 'ID', bot: 'Bot', created: 'Accepted', updated: 'Last change', expires: 'Expires', waited: 'Waited', platform: 'The platform took',
    items: 'What it is', noContent: 'Its content is not kept.', onlyPreview: 'Once sent, only the beginning of texts is kept, and of pictures and files the name.',
    timeline: 'Attempts', noAttempts: 'Nothing was tried yet.',
    attempt: (count: number) => `Attempt ${count}`, attempts: (count: number) => count === 1 ? '1 attempt' : `${count} attempts`,
    took: (ms: number) => `took ${ms} ms`,
    ids: (ids: string) => `message ID ${ids}`, picture: (name: string) => `Picture ${name}`,
    again: 'Send again', withdraw: 'Withdraw', curl: 'Copy as curl', sentAgain: 'It waits to be sent again.', withdrawn: 'It is withdrawn, and will not be sent.',
    againTitle: 'Send this again?', againText: 'Only what has not arrived is sent.',
    againDoubt: 'It is not known whether it arrived. It may arrive twice.',
    withdrawTitle: 'Withdraw this?', withdrawText: 'It will not be sent, and its record goes. This cannot be undone.',
    partly: (sent: number, total: number) => `${sent} of ${total} items arrived. Only the rest is sent again; the reason stands with each.`,
    means: {
      queued: 'It waits for its turn. As long as it does, it can be withdrawn.',
      sending: 'Its turn has come. The platform is being asked.',
      sent: 'The platform took all of it.',
      failed: 'The platform refused it, or it never left. Put right what the reason below names, and send it again.',
      unanswered: 'The platform did not answer in time. It may have arrived: look into the chat before you send it again.',
      expired: 'Its time was over before it could be sent. Nothing was sent. Send it again if it is still of use.',
    },
  },
}

/** The same in Chinese. */
export const chinese: typeof english = {
  deliveries: {
    filters: '筛选', state: '状态', target: '目标', door: '入口', key: '密钥', text: '文本', since: '从', until: '到', clear: '清除筛选',
    time: zone => `时间（${zone}）`, what: '内容', list: '投递记录，最新在前', empty: '没有符合筛选条件的投递。',
    none: '还没有发送过消息。发送的消息无论成功与否都会列在这里。',
    open: (target, state) => `${state}：${target}，详情`,
    master: '主密钥',
    again: '全部再次发送',
    againTitle: '再次发送筛选出的全部投递？', againText: '最多 1,000 个投递将依次排队，从最早的开始。只发送尚未送达的部分。',
    queued: (queued, skipped, more) => `已排队 ${queued} 条${skipped > 0 ? `，跳过 ${skipped} 条` : ''}${more ? '，还有更多' : ''}。`,
  },
  record: {
    title: '投递', id: '编号', bot: '机器人', created: '接收时间', updated: '最近变化', expires: '过期时间', waited: '等待用时', platform: '平台用时',
    items: '内容', noContent: '没有保留内容。', onlyPreview: '送达后只保留文本的开头，以及图片和文件的名称。',
    timeline: '尝试', noAttempts: '尚未尝试发送。',
    attempt: count => `第 ${count} 次`, attempts: count => `共 ${count} 次尝试`,
    took: ms => `用时 ${ms} 毫秒`,
    ids: ids => `消息 ID ${ids}`, picture: name => `图片 ${name}`,
    again: '再次发送', withdraw: '取消发送', curl: '复制为 curl', sentAgain: '已排队，将再次发送。', withdrawn: '已取消，不会再发送。',
    againTitle: '再次发送？', againText: '只发送尚未送达的部分。',
    againDoubt: '尚不清楚它是否已送达，再次发送可能会重复。',
    withdrawTitle: '取消发送？', withdrawText: '这条消息将不会发送，记录也会删除。此操作无法撤销。',
    partly: (sent, total) => `共 ${total} 项，已送达 ${sent} 项。再次发送时只发送其余各项，各项的原因见下。`,
    means: {
      queued: '正在排队等待。此时仍可取消发送。',
      sending: '正在发送，等待平台应答。',
      sent: '平台已全部接收。',
      failed: '平台拒绝了它，或者它没有发出。请根据下面的原因处理后再次发送。',
      unanswered: '平台没有及时应答，消息可能已经送达：再次发送前请先到聊天中查看。',
      expired: '还没有轮到发送就已过期，消息没有发出。如果仍然需要，请再次发送。',
    },
  },
}
