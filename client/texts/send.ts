/** What Send says, in English. */
export const english = {
  send: {
    bot: 'Bot', anyBot: 'The first that is online', target: 'Target', targetHint: 'A name, a group or a person: type to search, or write group:123456',
    noContacts: 'The groups of this bot are not known. Write the target.', text: 'Text', files: 'Pictures and files', choose: 'Choose files',
    removeShort: 'Remove', remove: (name: string) => `Remove ${name}`,
    preview: 'Preview', send: 'Send', previewTitle: 'As it would leave', to: (target: string, bot: string) => `To ${target} through ${bot}`,
    sent: 'It arrived.', result: 'Result', needTarget: 'Choose a target.', needContent: 'Write a text or choose a file.',
    open: 'Open its record', message: (index: number) => `Message ${index}`,
    toNobody: (target: string) => `To ${target}`,
  },
}

/** The same in Chinese. */
export const chinese: typeof english = {
  send: {
    bot: '机器人', anyBot: '第一个在线的机器人', target: '目标', targetHint: '名称、群或好友：输入以搜索，或直接填写，如 group:123456',
    noContacts: '无法得知此机器人的群，请直接填写目标。', text: '文本', files: '图片与文件', choose: '选择文件',
    removeShort: '移除', remove: name => `移除 ${name}`,
    preview: '预览', send: '发送', previewTitle: '将会这样发出', to: (target, bot) => `经由 ${bot} 发往 ${target}`,
    sent: '已送达。', result: '结果', needTarget: '请选择目标。', needContent: '请填写文本或选择文件。',
    open: '打开记录', message: index => `第 ${index} 条消息`,
    toNobody: target => `发往 ${target}`,
  },
}
