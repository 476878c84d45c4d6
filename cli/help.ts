/** What `relay --help` prints. */
export const help = {
  'en-US': `Usage:
  relay send <to>[,<to>…] [text | -] [options]   send a message; with -, or without text and file, the text comes from standard input
  relay status <delivery>                        show what became of it
  relay tail [target]                            follow the deliveries, each with the beginning of its message
  relay backup <file>                            save a copy of all that the relay has kept; it holds API keys
  relay incidents [target]                       list what is not resolved, and who has it
  relay take|release|resolve <incident>          say that somebody has it, has not, or that it is over
  relay silence <incident> [time]                keep it quiet: for 2h, or until a date-time with an offset (default 1h)
  relay run <beat> -- <command> [args…]          run a command, and report its start, its exit status and the end of its output
  relay demo                                     start a bot with a simulator of QQ on this machine, for a trial

  <to> is group:<id>, private:<id> or a name that the relay knows.

Options:
      --url <address>      of the relay, such as https://relay.example.com (RELAY_URL)
      --api-key <key>      (RELAY_KEY, which other users of the machine cannot read)
      --json               print JSON
  -h, --help
      --version
Of send:
  -f, --file <path>        send a picture, video or file; may be given several times
      --thread <name>      answer the first message of this thread
      --urgent             pass quiet hours and digests
      --at <time>          send later: a date-time with an offset, or seconds from now
      --wait <seconds>     let the relay keep it if it cannot leave yet, and wait this long for the result (0 to 600)
      --key <key>          idempotency key: the same message with it is sent once (default: a random one)
      --retry <seconds>    how long to repeat what can be repeated (default 60)
Of take, silence, release and resolve:
      --by <name>          who does it (default: the name of the key)
Of run:
      --ping <address>     in place of the beat and a key: the address for its pings, or one of healthchecks.io

Exit codes: 0 sent or accepted, 1 refused, 2 unsent, 3 unanswered (it may have arrived), 64 wrong usage, 77 key not allowed.
That of run is that of the command, whether the relay can be reached or not.
`,
  'zh-CN': `用法：
  relay send <目标>[,<目标>…] [文本 | -] [选项]  发送消息；写 -，或者既没有文本也没有文件时，从标准输入读取文本
  relay status <投递>                            查看它的结果
  relay tail [目标]                              持续显示投递，每条附上消息的开头
  relay backup <文件>                            保存全部数据的副本，其中有 API 密钥
  relay incidents [目标]                         列出没有解决的事件，以及由谁处理
  relay take|release|resolve <事件>              认领、放弃或解决事件
  relay silence <事件> [时间]                    静默事件：时长如 2h，或截止的日期时间，须带时区（默认 1h）
  relay run <心跳> -- <命令> [参数…]             运行命令，并上报它的开始、退出码和输出的末尾
  relay demo                                     在本机启动机器人和 QQ 模拟器，供试用

  <目标> 是 group:<群号>、private:<用户号>，或配置好的名称。

选项：
      --url <地址>         如 https://relay.example.com（RELAY_URL）
      --api-key <密钥>     （RELAY_KEY：这台机器上的其他用户看不到）
      --json               输出 JSON
  -h, --help
      --version
用于 send：
  -f, --file <路径>        发送图片、视频或文件；可以写多次
      --thread <名称>      回复这个回复链的第一条消息
      --urgent             不受免打扰和汇总的限制
      --at <时间>          定时发送：日期时间，须带时区；或从现在起的秒数
      --wait <秒数>        暂时发不出时先保留，并等待结果这么久（0 到 600）
      --key <幂等键>       幂等键：相同的消息只发送一次（默认随机）
      --retry <秒数>       可以重试时，最多重试多久（默认 60）
用于 take、silence、release 和 resolve：
      --by <名字>          谁来处理（默认为密钥的名称）
用于 run：
      --ping <地址>        代替心跳和密钥：它的上报地址，或 healthchecks.io 的地址

退出码：0 已发送或已接受，1 被拒绝，2 未发出，3 没有应答（可能已送达），64 用法有误，77 密钥没有权限。
run 的退出码就是命令的退出码，无论能否连上 message-relay。
`,
} as const
