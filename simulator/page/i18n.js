/** @typedef {'en' | 'zh'} Language */

const REMEMBERED = 'simulator.language'

/** Every text of the page. Both languages have the same keys. A text that contains a value is a function in both. */
export const texts = {
  en: {
    tag: 'en',
    other: '中文',
    otherTag: 'zh-CN',
    title: 'OneBot simulator',
    hint: 'Not the real platform: nothing sent here reaches a real chat.',
    connected: 'Bot connected',
    waiting: 'No bot connected',
    offline: 'Simulator unreachable, reconnecting…',
    loading: 'Loading…',
    switchedOff: 'Bot disconnected (Offline is on)',
    loggedOut: 'Account logged out (Log out is on)',
    details: 'About this simulator',
    account: 'Bot account',
    endpoint: 'OneBot address',
    profile: 'Emulates',
    chats: 'Chats',
    group: 'Group',
    private: 'Private chat',
    members: count => count === 1 ? '1 member' : `${count} members`,
    unread: count => `${count} unread`,
    back: 'Back to the chats',
    messages: 'Messages',
    noMessages: 'No messages yet',
    today: 'Today',
    yesterday: 'Yesterday',
    earlier: 'Earlier messages',
    later: 'Later messages',
    latest: 'Go to the latest message',
    newMessages: count => count === 1 ? '1 new message' : `${count} new messages`,
    bot: 'Bot',
    everyone: 'everyone',
    image: 'Image',
    video: 'Video',
    record: 'Voice message',
    file: 'File',
    reply: 'Reply to',
    replyGone: 'The original message is not available',
    quote: 'Reply',
    unquote: 'Do not reply',
    react: 'React',
    enlarge: name => `Enlarge image ${name}`,
    mediaFailed: name => `Cannot be shown, the file is missing or damaged: ${name}`,
    unfetched: 'Not loaded: the simulator fetches nothing from other machines. A real platform would load it.',
    notPlayable: 'browsers cannot play this format.',
    sizeUnknown: 'Size unknown',
    download: 'Download',
    downloadName: name => `Download ${name}`,
    noDownload: 'Not available for download',
    close: 'Close',
    source: 'ID and segments',
    messageId: 'Message ID',
    noMessageId: 'A file has no message ID.',
    segments: 'Segments',
    copyId: 'Copy the message ID',
    copySegments: 'Copy the segments',
    trouble: 'Trouble',
    troubleAll: 'Trouble in all chats',
    switches: {
      offline: { name: 'Offline', about: 'The bot loses its connection and cannot connect again until this is off.' },
      slow: { name: 'Slow', about: 'Messages of the bot arrive after 5 seconds.' },
      refusing: { name: 'Refuse', about: 'Messages of the bot are refused.' },
      loggedOut: { name: 'Log out', about: 'The account is logged out: messages of the bot are refused, and it receives none. It stays connected.' },
      swallowing: { name: 'Swallow', about: 'Risk control: messages of the bot are accepted, but nobody sees them.' },
      tooFast: { name: 'Too fast', about: 'Messages of the bot are refused: the group has reached its limit for this minute.' },
      muted: { name: 'Muted', about: 'The bot is muted in this group, and its messages are refused. The mute ends after:' },
      allMuted: { name: 'Everybody muted', about: 'Only admins may speak in this group, and the bot is not one.' },
      anyTarget: { name: 'Accept any target', about: 'A group or friend that does not exist is created. Otherwise it is refused, as on a real platform.' },
    },
    muteLength: 'How long the bot is muted',
    minutes: count => `${count} min`,
    hours: count => `${count} h`,
    until: (name, time) => `${name} until ${time}`,
    swallowed: 'Swallowed: nobody sees it.',
    switchedOn: list => `Switched on here: ${list}.`,
    refusedGroup: name => `Refused: a message to the group ${name}.`,
    refusedPrivate: name => `Refused: a private message to ${name}.`,
    refusedNowhere: 'Refused: a message without a target.',
    noSuchChat: 'It does not exist here. “Accept any target” would create it.',
    emptyText: 'Send the first one through the relay. In a terminal, in the folder where it was started:',
    emptyAfter: 'It appears here at once. Below you can answer as a member of this chat. With COMMAND_CALLBACK_URL set, a message such as “#ping hello” is forwarded to that address.',
    command: 'Command to send the first message',
    copy: 'Copy',
    copied: 'Copied',
    copyFailed: 'Press Ctrl+C to copy',
    speakAs: 'Speak as',
    write: 'Message',
    writeAs: name => `Message as ${name}`,
    send: 'Send',
    keys: 'Enter sends, Shift+Enter starts a new line.',
    nobodyListens: 'No bot is connected: nobody will answer.',
    notSent: reason => `Not sent: ${reason}`,
    unreachable: 'the simulator cannot be reached',
  },
  zh: {
    tag: 'zh-CN',
    other: 'English',
    otherTag: 'en',
    title: 'OneBot 模拟器',
    hint: '不是真实平台：在这里发送的内容不会进入真实聊天。',
    connected: '机器人已连接',
    waiting: '没有机器人连接',
    offline: '无法连接模拟器，正在重新连接…',
    loading: '正在加载…',
    switchedOff: '机器人已断开（“离线”已打开）',
    loggedOut: '账号已掉线（“掉线”已打开）',
    details: '关于此模拟器',
    account: '机器人账号',
    endpoint: 'OneBot 地址',
    profile: '模拟的实现',
    chats: '聊天',
    group: '群聊',
    private: '私聊',
    members: count => `${count} 位成员`,
    unread: count => `${count} 条未读`,
    back: '返回聊天列表',
    messages: '消息',
    noMessages: '还没有消息',
    today: '今天',
    yesterday: '昨天',
    earlier: '更早的消息',
    later: '更晚的消息',
    latest: '转到最新消息',
    newMessages: count => `${count} 条新消息`,
    bot: '机器人',
    everyone: '全体成员',
    image: '图片',
    video: '视频',
    record: '语音消息',
    file: '文件',
    reply: '回复',
    replyGone: '找不到原消息',
    quote: '回复',
    unquote: '取消回复',
    react: '表情回应',
    enlarge: name => `放大图片 ${name}`,
    mediaFailed: name => `无法显示，文件不存在或已损坏：${name}`,
    unfetched: '未加载：模拟器不访问其他机器，真实平台会加载。',
    notPlayable: '浏览器无法播放此格式。',
    sizeUnknown: '大小未知',
    download: '下载',
    downloadName: name => `下载 ${name}`,
    noDownload: '无法下载',
    close: '关闭',
    source: 'ID 与消息段',
    messageId: '消息 ID',
    noMessageId: '文件没有消息 ID。',
    segments: '消息段',
    copyId: '复制消息 ID',
    copySegments: '复制消息段',
    trouble: '故障',
    troubleAll: '所有聊天的故障',
    switches: {
      offline: { name: '离线', about: '机器人断开连接，关闭此项之前连不上。' },
      slow: { name: '缓慢', about: '机器人发送的内容 5 秒后才到达。' },
      refusing: { name: '拒绝', about: '平台拒绝机器人发送的内容。' },
      loggedOut: { name: '掉线', about: '账号已掉线：机器人发不出也收不到消息，但连接不断开。' },
      swallowing: { name: '风控', about: '平台收下机器人发送的内容，但没有人能看到。' },
      tooFast: { name: '发言过快', about: '该群这一分钟的发言次数已用完，平台拒绝机器人发送的内容。' },
      muted: { name: '禁言', about: '机器人在此群被禁言，平台拒绝它发送的内容。多久后解除：' },
      allMuted: { name: '全员禁言', about: '此群只有管理员可以发言，机器人不是管理员。' },
      anyTarget: { name: '接受任意目标', about: '不存在的群或好友会自动创建。关闭时像真实平台一样拒绝。' },
    },
    muteLength: '禁言时长',
    minutes: count => `${count} 分钟`,
    hours: count => `${count} 小时`,
    until: (name, time) => `${name}至 ${time}`,
    swallowed: '已被风控拦截：没有人能看到。',
    switchedOn: list => `已打开：${list}。`,
    refusedGroup: name => `已拒绝：发往群 ${name} 的消息。`,
    refusedPrivate: name => `已拒绝：发给 ${name} 的私聊消息。`,
    refusedNowhere: '已拒绝：没有目标的消息。',
    noSuchChat: '这里没有这个群或好友，打开“接受任意目标”会自动创建。',
    emptyText: '来发第一条消息：在启动机器人的目录中打开终端，运行：',
    emptyAfter: '消息会立即显示在这里。在下方可以用聊天成员的身份回复。设置 COMMAND_CALLBACK_URL 后，“#ping hello”这样的消息会转发到该地址。',
    command: '发送第一条消息的命令',
    copy: '复制',
    copied: '已复制',
    copyFailed: '请按 Ctrl+C 复制',
    speakAs: '发言身份',
    write: '消息',
    writeAs: name => `以 ${name} 的身份发言`,
    send: '发送',
    keys: '按 Enter 发送，按 Shift+Enter 换行。',
    nobodyListens: '没有机器人连接：不会有人回复。',
    notSent: reason => `未发送：${reason}`,
    unreachable: '无法连接模拟器',
  },
}

/**
 * The initial language: the one chosen before, or else the browser's.
 * @returns {Language}
 */
export function initialLanguage() {
  let remembered = null
  try {
    remembered = localStorage.getItem(REMEMBERED)
  } catch {
    // Storage may be forbidden. Then the browser's language is used.
  }
  if (remembered === 'en' || remembered === 'zh') return remembered
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

/** @param {Language} language */
export function rememberLanguage(language) {
  try {
    localStorage.setItem(REMEMBERED, language)
  } catch {
    // The choice then lasts for this visit only.
  }
}

/**
 * Fills the fixed texts of index.html: `data-text` names the content, `data-label` the accessible name.
 * @param {Language} language
 */
export function applyTexts(language) {
  const t = texts[language]
  document.documentElement.lang = t.tag
  for (const node of document.querySelectorAll('[data-text]')) node.textContent = t[node.dataset.text]
  for (const node of document.querySelectorAll('[data-label]')) node.setAttribute('aria-label', t[node.dataset.label])
}
