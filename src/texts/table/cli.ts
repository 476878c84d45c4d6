/** Texts about the command relay. */
export const cli = {
  'cli-colon': [': ', '：'],
  'cli-semicolon': ['; ', '；'],
  'cli-refused': ['refused', '被拒绝'],
  'cli-unsent': ['unsent', '未发出'],
  'cli-unanswered': ['unanswered', '没有应答'],

  'cli-address-wrong': ['the address of the relay is missing or wrong: it begins with http:// or https://', '没有地址或地址不正确：应以 http:// 或 https:// 开头'],
  'cli-key-wrong': ['the API key is missing, or holds characters that no key has', '没有 API 密钥，或密钥中有不允许的字符'],
  'cli-address-unset': ['no address of a relay: set RELAY_URL, or use --url', '没有地址：请设置 RELAY_URL，或用 --url 指定'],
  'cli-key-unset': ['no API key: set RELAY_KEY, or use --api-key', '没有 API 密钥：请设置 RELAY_KEY，或用 --api-key 指定'],

  'cli-commands': ['the commands are {commands}: see relay --help', '可用的命令有 {commands}：详见 relay --help'],
  'cli-no-such-command': [
    'there is no command {command}: the commands are {commands}, see relay --help',
    '没有 {command} 这个命令：可用的命令有 {commands}，详见 relay --help',
  ],
  'cli-command-meant': [
    'there is no command {command}: did you mean relay {meant}? Otherwise see relay --help',
    '没有 {command} 这个命令：是不是 relay {meant}？命令列表见 relay --help',
  ],
  'cli-options-wrong': ['{words}', '选项有误（{words}）：详见 relay --help'],
  'cli-option-belongs': ['--{option} belongs to {commands}', '--{option} 只能用于 {commands}'],
  'cli-too-many-words': ['too many words: put the text in quotes, and -f before each file', '参数太多：请给文本加引号，并在每个文件前写 -f'],
  'cli-send-what-where': ['where to? Write relay send <to> <text>', '发到哪里？请写成 relay send <目标> <文本>'],
  'cli-status-of-what': ['of which delivery? Write relay status <delivery>', '查看哪条投递？请写成 relay status <投递>'],
  'cli-backup-where': ['into which file? Write relay backup <file>', '保存到哪个文件？请写成 relay backup <文件>'],
  'cli-run-what': ['which command? Write relay run <beat> -- <command>', '运行什么命令？请写成 relay run <心跳> -- <命令>'],
  'cli-beat-or-ping': ['give a beat or --ping, one of them', '请在心跳和 --ping 中指定一个'],
  'cli-which-incident': ['which incident? Write relay {command} <incident>', '哪个事件？请写成 relay {command} <事件>'],
  'cli-option-key': ['--key must be 1 to 255 visible ASCII characters without blanks', '--key 须为 1 到 255 个可见的 ASCII 字符，不含空格'],
  'cli-option-seconds': ['--{option} must be a whole number of seconds', '--{option} 须为整数秒数'],
  'cli-file-without-option': ['{file} is a file: write -f before each file', '{file} 是文件：请在每个文件前写 -f'],
  'cli-nothing-to-send': ['nothing to send: give a text, a file, or pipe the text in', '没有要发送的内容：请给出文本或文件，或用管道传入文本'],
  'cli-input-unreadable': ['cannot read the standard input', '无法读取标准输入'],
  'cli-not-utf8': [
    'the text is not UTF-8: convert it (chcp 65001 in cmd, else iconv -f gbk), or send it as a file with -f',
    '文本不是 UTF-8：请先转换编码（cmd 里用 chcp 65001，其他情况用 iconv -f gbk），或用 -f 作为文件发送',
  ],
  'cli-no-file': ['{file} is not a file', '{file} 不是文件'],
  'cli-file-shrank': ['{file} became shorter while it was read', '{file} 在读取时变短了'],
  'cli-file-unreadable': ['cannot read {file} ({code})', '无法读取 {file}（{code}）'],
  'cli-file-unwritable': ['cannot write {file} ({code})', '无法写入 {file}（{code}）'],

  'cli-demo': [
    `A bot is running here, connected to a simulator of QQ. No message leaves this machine.

  Send one (a second terminal)   {command}
  See it in the group “Builds”   {chats}
  The page of the relay          {page}
  All that it keeps              {folder}

Ctrl+C ends it.`,
    `机器人已在本机运行，连接的是内置的 QQ 模拟器，消息不会离开这台机器。

  在另一个终端里发一条消息   {command}
  在群聊里查看               {chats}
  管理页面                   {page}
  全部数据                   {folder}

按 Ctrl+C 结束。`,
  ],
  'cli-demo-page': [
    'only with Koishi\'s console: npx -p koishi-plugin-message-relay -p @koishijs/plugin-console relay demo',
    '需要 Koishi 控制台：npx -p koishi-plugin-message-relay -p @koishijs/plugin-console relay demo',
  ],
  'cli-demo-needs': [
    'the demo needs the package and Koishi: run npx koishi-plugin-message-relay demo',
    '演示需要完整的软件包和 Koishi：请运行 npx koishi-plugin-message-relay demo',
  ],
  'cli-demo-port': ['cannot listen on port {port} ({code}): set WEBHOOK_PORT to another one', '无法监听端口 {port}（{code}）：请把 WEBHOOK_PORT 设为别的端口'],

  'cli-unreachable': ['cannot reach the relay ({cause})', '无法连接到 message-relay（{cause}）'],
  'cli-connection-broke': ['the connection to the relay broke before it answered ({cause})', '连接在收到应答之前中断（{cause}）'],
  'cli-no-answer': ['no answer within {seconds} seconds', '{seconds} 秒内没有应答'],
  'cli-no-relay': [
    'the answer ({status}) is not that of a relay: check the address, and the path in it',
    '应答（{status}）不是来自 message-relay：请检查地址和其中的路径',
  ],
  'cli-from-proxy': [
    '{status} {words}, not from the relay: check the address, and any proxy before it',
    '{status} {words}，不是来自 message-relay：请检查地址和前面的反向代理',
  ],
  'cli-denied': ['the API key is wrong or expired, or not allowed from this address', 'API 密钥不正确或已过期，或不允许从当前地址使用'],
  'cli-earlier-try': ['an earlier try got no answer; the last one: {reason}', '先前的一次尝试没有得到应答；最后一次：{reason}'],
  'cli-trying-again': ['{reason}; trying again in {seconds} s', '{reason}；{seconds} 秒后重试'],
  'cli-still-trying': ['{reason}; still trying', '{reason}；仍在重试'],
  'cli-may-have-arrived': ['it may have arrived; repeat it with --key {key}, and it will not come twice', '消息可能已送达；用 --key {key} 重发，不会重复'],
  'cli-repeat-the-rest': ['repeat it with --key {key}, and it goes only where nothing has arrived', '用 --key {key} 重发，只会发往没有送达的目标'],
  'cli-send-the-rest': ['the rest has arrived, so send only this again', '其余的已送达，只需重发这一部分'],
  'cli-repeat-later': ['repeat it later with --key {key}, and it will not come twice', '请稍后用 --key {key} 重发，不会重复'],
  'cli-progress': ['{percent}% of {size} MB', '{percent}%，共 {size} MB'],
  'cli-saved': ['{file}: {size} MB; it holds API keys and messages, so guard it', '{file}：{size} MB；其中有 API 密钥和消息，请妥善保管'],

  'cli-nobody-told': ['nobody is told of this run: {reason}', '这次运行不会上报：{reason}'],
  'cli-start-not-told': ['the relay was not told of the start: {reason}', '没能上报开始：{reason}'],
  'cli-end-not-told': ['the relay was not told of the exit status {status}: {reason}', '没能上报退出码 {status}：{reason}'],
  'cli-cannot-run': ['cannot run {command} ({code})', '无法运行 {command}（{code}）'],
} as const
