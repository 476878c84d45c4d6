/** The texts of Send, in English. */
export const english = {
  send: {
    compose: 'New message', bot: 'Bot', anyBot: 'The first bot that is online', target: 'Target',
    targetHint: 'A name, a group or a person. Type to search, or enter an address such as group:123456.',
    notIn: (groups: string) => `The bot is not in ${groups}. Check the number, or add the bot to the group.`,
    noContacts: 'This bot does not list its groups. Enter an address such as group:123456.',
    more: 'Urgent, time, mention, thread', urgent: 'Urgent: send it during quiet hours, too, and not in a digest',
    sendAt: 'Send at', sendAtHint: 'Leave empty to send it now.',
    thread: 'Thread', threadHint: 'A later message of the same thread answers the first one.', mention: 'Mention', mentionHint: 'People, rotas or everyone.',
    text: 'Text', files: 'Pictures and files', choose: 'Choose files',
    remove: 'Remove', preview: 'Preview', send: 'Send', previewTitle: 'Preview',
    nothingSent: 'Nothing has been sent yet.', to: (target: string, bot: string) => `To ${target} through ${bot}`,
    sent: (target: string) => `Sent to ${target}.`, accepted: (target: string) => `Accepted for ${target}, and not sent yet.`,
    rest: (target: string) => `The rest was sent to ${target}.`,
    unreadable: (name: string) => `${name} cannot be read: it has been changed or removed. Choose it again.`,
    needTarget: 'Choose a target.', needContent: 'Enter a text or choose a file.',
    open: 'Open record', message: (index: number) => `Message ${index}`,
    toNobody: (target: string) => `To ${target}`,
  },
}

/** The texts in Chinese. */
export const chinese: typeof english = {
  send: {
    compose: '新消息', bot: '机器人', anyBot: '第一个在线的机器人', target: '目标',
    targetHint: '目标名称、群或好友。输入以搜索，也可直接填写地址，如 group:123456。',
    notIn: groups => `机器人不在 ${groups} 中。请检查群号，或先把机器人拉进群。`,
    noContacts: '无法获取此机器人的群列表，请直接填写地址，如 group:123456。',
    more: '紧急、定时、@、回复链', urgent: '紧急：免打扰时段也发送，也不并入摘要',
    sendAt: '发送时间', sendAtHint: '留空表示立即发送。',
    thread: '回复链', threadHint: '同一回复链中后面的消息会回复第一条。', mention: '@', mentionHint: '人员、值班表或全体成员。',
    text: '文本', files: '图片与文件', choose: '选择文件',
    remove: '移除', preview: '预览', send: '发送', previewTitle: '预览',
    nothingSent: '尚未发送。', to: (target, bot) => `经由 ${bot} 发往 ${target}`,
    sent: target => `已发送到 ${target}。`, accepted: target => `已接受，尚未发送到 ${target}。`,
    rest: target => `其余部分已发送到 ${target}。`,
    unreadable: name => `无法读取 ${name}：文件已被修改或删除，请重新选择。`,
    needTarget: '请选择目标。', needContent: '请输入文本或选择文件。',
    open: '打开记录', message: index => `第 ${index} 条消息`,
    toNobody: target => `发往 ${target}`,
  },
}
