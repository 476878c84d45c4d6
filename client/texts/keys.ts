/** What Keys and targets says, in English. */
export const english = {
  keys: {
    list: 'Keys', name: 'Name', targets: 'Targets', allow: 'May', expires: 'Until', used: 'Last used', from: (when: string, address: string) => `${when} from ${address}`,
    sent: 'Sent', refused: 'Refused', everywhere: 'everywhere', everything: 'everything', always: 'no end', never: 'never', over: 'expired',
    master: 'Master key', page: 'This page',
    make: 'Make a key', once: 'The key is shown this once: copy it now. Only its digest goes into the settings.', key: 'The key',
    line: 'Add this to keys of the plugin in koishi.yml (in the bot of this repository: as JSON to WEBHOOK_KEYS in .env), '
      + 'or enter it in the table keys of its settings page, lists with commas. After an edit of a file, start the bot again.',
    targetsHint: 'Separated by commas; empty for every target', expiresHint: 'Empty for a key that never ends', needName: 'Give it a name.', done: 'I have copied it',
    deeds: {
      'send': 'send messages', 'upload': 'upload files', 'hooks': 'call the addresses of /hooks', 'onebot': 'call the OneBot interface',
      'mention-all': 'mention everybody', 'read': 'read deliveries and status', 'manage': 'send again, withdraw, resume and drop',
    },
    pageName: (name: string) => `${name} is what this page is called in log and records, and the settings refuse a key of that name. Choose another one.`,
    needScope: 'Choose at least one thing that it may do.',
  },
}

/** The same in Chinese. */
export const chinese: typeof english = {
  keys: {
    list: '密钥', name: '名称', targets: '目标', allow: '权限', expires: '有效期至', used: '最近使用', from: (when, address) => `${when}，来自 ${address}`,
    sent: '已发送', refused: '被拒绝', everywhere: '所有目标', everything: '全部权限', always: '永久', never: '从未', over: '已过期',
    master: '主密钥', page: '本页面',
    make: '新建密钥', once: '密钥只显示这一次，请立即复制：写入设置的只有它的摘要。', key: '密钥',
    line: '把它加入 koishi.yml 中本插件的 keys（本仓库的机器人：以 JSON 写入 .env 的 WEBHOOK_KEYS），'
      + '或填入插件配置页的 keys 表格（列表用逗号分隔）。修改文件后请重新启动机器人。',
    targetsHint: '以逗号分隔；留空表示所有目标', expiresHint: '留空表示永久有效', needName: '请填写名称。', done: '我已复制',
    deeds: {
      'send': '发送消息', 'upload': '上传文件', 'hooks': '调用 /hooks 地址', 'onebot': '调用 OneBot 接口',
      'mention-all': '提及全体成员', 'read': '查看投递与状态', 'manage': '再次发送、取消、恢复与丢弃',
    },
    pageName: name => `日志与记录用 ${name} 称呼本页面，设置会拒绝同名的密钥。请换一个名称。`,
    needScope: '请至少选择一项权限。',
  },
}
