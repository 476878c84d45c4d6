/** The texts that all tabs share, in English. */
export const english = {
  title: 'Message relay',
  tabs: { overview: 'Overview', incidents: 'Incidents', beats: 'Beats', deliveries: 'Deliveries', send: 'Send', integrations: 'Integrations', keys: 'Keys & targets' },
  language: 'Language',
  common: {
    copy: 'Copy', copied: 'Copied', cancel: 'Cancel', close: 'Close', loading: 'Loading …', all: 'All',
    failed: (why: string) => `Failed: ${why}`,
    noOptions: 'Nothing to choose from', noMatch: 'No match',
    milliseconds: (count: number) => `${count} ms`,
    justNow: 'just now', days: (count: number) => `${count} d`, hours: (count: number) => `${count} h`,
    minutes: (count: number) => `${count} min`, seconds: (count: number) => `${count} s`,
    list: (parts: readonly string[]) => parts.join(', '),
    pair: (name: string, value: string) => `${name}: ${value}`,
    held: (why: string, until: string) => until ? `Held until ${until} because ${why}` : `Held because ${why}`,
    paused: (why: string, until: string) => `Paused until ${until} after repeated failures: ${why}`,
    quiet: (until: string) => `Quiet hours: it leaves at ${until}`, digest: (until: string) => `It leaves with the next digest, at ${until}`,
    named: (name: string, address: string) => `${name} (${address})`,
  },
  states: { queued: 'Waiting', sending: 'Sending', sent: 'Sent', failed: 'Failed', unanswered: 'Unanswered', expired: 'Expired', scheduled: 'Scheduled' },
  partly: 'Partly sent',
  outcomes: { sent: 'Sent', refused: 'Refused', suppressed: 'Blocked by another plugin', unsent: 'Not sent', unanswered: 'Unanswered' },
  kinds: { text: 'Text', image: 'Picture', video: 'Video', audio: 'Voice message', file: 'File', at: 'Mention', reply: 'Reply', invalid: 'Malformed item' },
}

/** The texts in Chinese. */
export const chinese: typeof english = {
  title: '消息转发',
  tabs: { overview: '概览', incidents: '事件', beats: '心跳', deliveries: '投递', send: '发送', integrations: '接入', keys: '密钥与目标' },
  language: '语言',
  common: {
    copy: '复制', copied: '已复制', cancel: '取消', close: '关闭', loading: '加载中…', all: '全部',
    failed: why => `操作失败：${why}`,
    noOptions: '没有可选项', noMatch: '没有匹配项',
    milliseconds: count => `${count} 毫秒`,
    justNow: '刚刚', days: count => `${count} 天`, hours: count => `${count} 小时`,
    minutes: count => `${count} 分钟`, seconds: count => `${count} 秒`,
    list: parts => parts.join('，'),
    pair: (name, value) => `${name}：${value}`,
    held: (why, until) => until ? `${until} 前暂不发送：${why}` : `暂不发送：${why}`,
    paused: (why, until) => `因连续失败，${until} 前暂停发送：${why}`,
    quiet: until => `免打扰时段，将于 ${until} 发出`, digest: until => `将于 ${until} 随下一份摘要发出`,
    named: (name, address) => `${name}（${address}）`,
  },
  states: { queued: '等待', sending: '发送中', sent: '已发送', failed: '失败', unanswered: '无应答', expired: '已过期', scheduled: '定时' },
  partly: '部分发送',
  outcomes: { sent: '已发送', refused: '被拒绝', suppressed: '被其他插件拦截', unsent: '未发出', unanswered: '无应答' },
  kinds: { text: '文本', image: '图片', video: '视频', audio: '语音', file: '文件', at: '提及', reply: '回复', invalid: '格式有误的项' },
}
