import { parseArgs } from 'node:util'
import { encodeCq } from './cqcode'
import type { SimulatorOptions } from './options'
import { isProfileName } from './profiles'
import { Simulator } from './simulator'

const help = `A OneBot 11 platform on this machine, for the development of bots.
一个运行在本机的 OneBot 11 平台，供开发机器人时使用。

npm run simulator -- [options]

  --port N            port on 127.0.0.1, 0 for any (default 5700)      监听端口，0 表示任意（默认 5700）
  --token T           access token that the bot must send              机器人连接时须提供的访问令牌
  --self-id N         account of the bot (default 10000)               机器人账号（默认 10000）
  --profile NAME      napcat (default), llbot, lagrange or gocqhttp    所模拟的 OneBot 实现（默认 napcat）
  --reverse URL       also connect to a reverse-WebSocket server       同时连接反向 WebSocket 服务器
  --any-target        create groups and friends that do not exist      自动创建不存在的群和好友
  --no-shared-disk    find no file by its path, as in a container      按路径找不到文件，如同在另一个容器中
  --no-history        provide no message history                       不提供历史消息
  --string            write messages in events as CQ codes             事件中的消息使用 CQ 码字符串
  --quiet             do not print messages                            不输出消息
  --json              print the addresses as one line of JSON only     只输出一行 JSON，含各个地址
  --help              show this help                                   显示本帮助
`

class UsageError extends Error {}

interface Command { options: SimulatorOptions, output: 'messages' | 'quiet' | 'json' }

function parseCommand(): Command | null {
  const { values } = parseArgs({
    options: {
      'port': { type: 'string', default: '5700' },
      'token': { type: 'string' },
      'self-id': { type: 'string' },
      'profile': { type: 'string', default: 'napcat' },
      'reverse': { type: 'string' },
      'any-target': { type: 'boolean', default: false },
      'no-shared-disk': { type: 'boolean', default: false },
      'no-history': { type: 'boolean', default: false },
      'string': { type: 'boolean', default: false },
      'quiet': { type: 'boolean', default: false },
      'json': { type: 'boolean', default: false },
      'help': { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const { port, profile, token, reverse, 'self-id': selfId } = values
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65535) throw new UsageError(`--port must be from 0 to 65535, not "${port}"`)
  if (!isProfileName(profile)) throw new UsageError(`--profile must be napcat, llbot, lagrange or gocqhttp, not "${profile}"`)
  return {
    options: {
      port: Number(port),
      profile,
      anyTarget: values['any-target'],
      sharedDisk: !values['no-shared-disk'],
      history: !values['no-history'],
      messageFormat: values.string ? 'string' : 'array',
      ...(token === undefined ? {} : { token }),
      ...(selfId === undefined ? {} : { selfId }),
      ...(reverse === undefined ? {} : { reverse: { url: reverse, ...(token === undefined ? {} : { token }) } }),
    },
    output: values.json ? 'json' : values.quiet ? 'quiet' : 'messages',
  }
}

async function run(): Promise<void> {
  const command = parseCommand()
  if (command === null) {
    process.stdout.write(help)
    return
  }
  const { options, output } = command
  const simulator = await Simulator.start(options)
  const { endpoint, pageUrl, port } = simulator
  if (output === 'json') process.stdout.write(`${JSON.stringify({ endpoint, pageUrl, port })}\n`)
  else process.stdout.write(`OneBot 11 endpoint  机器人连接地址  ${endpoint}\nPage with the chats 聊天页面        ${pageUrl}\n`)
  if (output === 'messages') printMessages(simulator)
  const end = (): void => {
    void simulator.close()
  }
  process.once('SIGINT', end)
  process.once('SIGTERM', end)
}

function printMessages(simulator: Simulator): void {
  simulator.watch({
    onMessage({ target, sender, segments, isSwallowed }) {
      const note = isSwallowed ? ' (nobody sees it 被风控，没有人能看到)' : ''
      process.stdout.write(`[${target.type} ${target.id}] ${sender.name}${note}: ${printable(encodeCq(segments))}\n`)
    },
    onReaction({ target, segments, reactions }) {
      const list = [...reactions].map(([emoji, users]) => `${emoji} × ${users.size}`).join(', ') || '-'
      process.stdout.write(`[${target.type} ${target.id}] reactions 表情回应: ${list} ${printable(encodeCq(segments))}\n`)
    },
    onRecall({ target, segments }) {
      process.stdout.write(`[${target.type} ${target.id}] taken back 已撤回: ${printable(encodeCq(segments))}\n`)
    },
    onRefusal({ target, retcode, wording }) {
      const place = target === null ? '?' : `${target.type} ${target.id}`
      process.stdout.write(`[${place}] refused 已拒绝: ${retcode} ${printable(wording)}\n`)
    },
    onSwitches() {
      const names = simulator.switches.map(({ name, target }) => (target === null ? name : `${name} (${target.type} ${target.id})`))
      process.stdout.write(`switched on 已打开的开关: ${names.join(', ') || '-'}\n`)
    },
    onConnection() {
      process.stdout.write(`bots connected 已连接的机器人: ${simulator.connections}\n`)
    },
  })
}

/** A single line without control characters, so that a message cannot control the terminal. */
function printable(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').slice(0, 300)
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (!('code' in error && error.code === 'EADDRINUSE' && 'port' in error)) return error.message
  const port = String(error.port)
  return `port ${port} is taken: end the program that has it, or choose another with --port  端口 ${port} 已被占用：请结束占用它的程序，或用 --port 另选端口`
}

run().catch((error: unknown) => {
  process.stderr.write(`simulator: ${explain(error).split('\n')[0] ?? ''}\n`)
  process.exitCode = 1
})
