import { Universal, type ForkScope } from 'koishi'
import { resolve } from 'node:path'
import { v7 as uuid } from 'uuid'
import { serveConsole } from '../../bot/console'
import { Simulator } from '../../simulator'
import { RelayError } from '../../src/errors'
import { explain } from '../../src/message/causes'
import { readTarget } from '../../src/message/target'
import type { Delivery, State } from '../../src/relay/delivery/delivery'
import { columns, toRow } from '../../src/relay/delivery/row'
import { editFile } from './data-file'
import { freePort } from './process'
import { addForward } from './onebot'
import { startRelay } from './relay'
import { until } from './until'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const bot = 'onebot:10000'

/** The messages of the demo's callers, in both languages. */
const messages = {
  'en-US': {
    groups: ['Builds', 'Operations', 'Website', 'Night shift', 'Home'],
    texts: [
      ['hooks/github', 'github', 'group:123456', '[acme/web] push to main by alice: fix the colour of the login button'],
      ['hooks/github', 'github', 'group:123456', '[acme/web] pull request #482 opened: faster start of the worker'],
      ['hooks/alertmanager', 'alerts', 'group:654321', 'FIRING HighErrorRate on api-2: 7.2 % of requests fail'],
      ['hooks/alertmanager', 'alerts', 'group:654321', 'RESOLVED HighErrorRate on api-2'],
      ['send', 'ci', 'group:123456', 'Build 2291 passed in 4 min 12 s'],
      ['hooks/uptime-kuma', 'kuma', 'group:700100', 'shop.example.com is up again after 3 minutes'],
      ['webhook', 'backup', 'private:10002', 'The backup of db-1 is done: 42.7 GB in 18 minutes'],
      ['hooks/grafana', 'grafana', 'group:654321', 'Disk of db-1 is 91 % full'],
    ],
    held: 'The certificate of mail.example.com expires in 6 days',
    paused: 'The washing machine has finished',
    waiting: 'Deployment of web 4.18 has started',
  },
  'zh-CN': {
    groups: ['构建通知', '运维值班群', '网站监控', '夜班群', '家'],
    texts: [
      ['hooks/github', 'github', 'group:123456', '[acme/web] alice 推送到 main：修正登录按钮的颜色'],
      ['hooks/github', 'github', 'group:123456', '[acme/web] 新的合并请求 #482：加快 worker 启动'],
      ['hooks/alertmanager', 'alerts', 'group:654321', '告警 HighErrorRate（api-2）：7.2 % 的请求失败'],
      ['hooks/alertmanager', 'alerts', 'group:654321', '已恢复 HighErrorRate（api-2）'],
      ['send', 'ci', 'group:123456', '构建 2291 通过，用时 4 分 12 秒'],
      ['hooks/uptime-kuma', 'kuma', 'group:700100', 'shop.example.com 中断 3 分钟后恢复'],
      ['webhook', 'backup', 'private:10002', 'db-1 备份完成：42.7 GB，用时 18 分钟'],
      ['hooks/grafana', 'grafana', 'group:654321', 'db-1 磁盘已使用 91 %'],
    ],
    held: 'mail.example.com 的证书将在 6 天后过期',
    paused: '洗衣机已完成',
    waiting: '开始部署 web 4.18',
  },
} as const

/** The reasons of failed deliveries, in the words of the platform and the relay. */
const failures: readonly [state: State, error: RelayError][] = [
  ['failed', new RelayError('refused', explain('muted', 'EventChecker Failed: result 120'))],
  ['failed', new RelayError('refused', explain('media-failed', 'rich media transfer failed'))],
  ['unanswered', new RelayError('unanswered')],
  ['expired', new RelayError('expired')],
]

/** Starts a bot with the console, with the data of a month's work. Its `url` is that of the console. */
export async function startDemo(language: keyof typeof messages): Promise<{ url: string, stop: () => Promise<void> }> {
  const { groups, texts, held, paused, waiting } = messages[language]
  const port = await freePort()
  const second = await Simulator.start({ selfId: '20000' })
  let pageFork: ForkScope | undefined
  let secondBot: ForkScope | undefined
  const relay = await startRelay({
    config: {
      selfUrl: 'https://relay.example.com',
      targets: { ops: 'group:654321', builds: 'group:123456', home: 'group:700300', night: 'group:700200', oncall: ['group:654321', 'private:10002'] },
      keys: [
        { name: 'ci', key: 'the-secret-of-the-pipeline', targets: ['builds'], allow: ['send', 'upload'] },
        { name: 'github', key: 'the-secret-of-the-forge', targets: ['builds'], allow: ['hooks'] },
        { name: 'home', key: 'the-secret-of-the-home', targets: ['home', 'night', 'ops'], allow: ['send'] },
        { name: 'alerts', key: 'the-secret-of-the-alerts', targets: ['oncall'], allow: ['hooks', 'mention-all'], expires: '2030-01-31' },
      ],
    },
    simulator: {
      groups: ['123456', '654321', '700100', '700200', '700300'].map((id, at) => ({
        id, name: groups[at] ?? id, members: [{ id: '10001', name: '小明' }, { id: '10002', name: 'Alice' }],
      })),
      friends: [{ id: '10001', name: '小明' }, { id: '10002', name: 'Alice' }],
    },
    setup(app) {
      pageFork = app.plugin(ctx => serveConsole(ctx, { host: '127.0.0.1', port }, resolve(__dirname, '../../dist')))
      secondBot = addForward(app, second.endpoint, { selfId: '20000', retryTimes: 0, retryInterval: 5000, responseTimeout: 2000 })
    },
  })
  const { app, simulator } = relay
  await until('the second bot is online', () => app.bots.filter(({ status }) => status === Universal.Status.ONLINE).length === 2)
  relay.unload()
  await editFile(relay.dataDir, database => {
    const insert = `INSERT INTO deliveries (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
    for (const delivery of plausible(Date.now(), texts)) {
      const row = toRow(delivery)
      database.run(insert, columns.map(name => row[name]))
    }
  })
  await relay.reload()
  await second.close()
  await until('the second bot is offline', () => app.bots.some(({ status }) => status !== Universal.Status.ONLINE))

  const send = async (body: object, key: string, isPatient = false): Promise<void> => {
    await fetch(`${relay.url}/webhook`, {
      method: 'POST', body: JSON.stringify(body), headers: { 'x-api-key': key, ...isPatient && { prefer: 'respond-async' } },
    })
  }
  const gone = simulator.fault({ fault: { kind: 'not-member' }, target: '700300', times: Infinity })
  for (let count = 0; count < 5; count++) await send({ to: 'home', msg: paused }, 'the-secret-of-the-home')
  gone.remove()
  simulator.mute('700200', true)
  await send({ to: 'night', msg: held }, 'the-secret-of-the-home')
  for (let count = 0; count < 3; count++) await send({ to: 'home', msg: paused }, 'the-secret-of-the-home', true)
  await send({ to: 'night', msg: held }, 'the-secret-of-the-home', true)
  await send({ to: 'builds', msg: waiting }, 'the-secret-of-the-pipeline')
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      await until('nobody is connected', () => Object.keys(app.console.clients).length === 0)
      pageFork?.dispose()
      secondBot?.dispose()
      await relay.stop()
    },
  }
}

/**
 * Plausible deliveries of a month: fewer at night and at weekends, and few failures. Apart from the present time, they are the same in each
 * run.
 */
function plausible(now: number, texts: readonly (readonly [string, string, string, string])[]): Delivery[] {
  let seed = 20
  const random = (): number => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed / 2_147_483_647
  }
  const deliveries: Delivery[] = []
  for (let time = now - 30 * day; time < now - 5 * minute; time += hour) {
    const date = new Date(time)
    const isWeekend = date.getUTCDay() % 6 === 0
    const share = (0.35 + Math.sin((date.getUTCHours() + 1) / 24 * 2 * Math.PI)) / 9 * (isWeekend ? 0.4 : 1)
    const count = Math.round(Math.max(0.01, share) * 400 * (0.7 + 0.6 * random()))
    for (let index = 0; index < count; index++) {
      const createdAt = time + random() * hour
      // The newest deliveries are those that were really sent.
      if (createdAt > now - 15 * minute) continue
      const [door, caller, target, msg] = texts[Math.floor(random() * texts.length)] ?? ['webhook', 'ci', 'group:123456', '']
      const failure = random() < 0.025 ? failures[Math.floor(random() * failures.length)] : undefined
      deliveries.push(record({ createdAt, door, caller, target, msg, took: 80 + Math.round(random() * 400), failure }))
    }
  }
  return deliveries
}

interface Past {
  createdAt: number
  door: string
  caller: string
  target: string
  msg: string
  took: number
  failure: readonly [State, RelayError] | undefined
}

function record({ createdAt, door, caller, target, msg, took, failure }: Past): Delivery {
  const address = readTarget(target)
  if (!address) throw new Error(target)
  const [state, error] = failure ?? ['sent' as const, undefined]
  const waited = Math.round(took / 7)
  return {
    id: uuid({ msecs: createdAt }), seq: Math.round(createdAt), state, mode: 'single', deferred: false, target: address, caller, door, bot, createdAt,
    updatedAt: createdAt + waited + took, expiresAt: null, attempts: state === 'expired' ? 0 : 1,
    results: [error ? { success: false, error } : { success: true, messageIds: [String(Math.round(createdAt / 1000) % 1e9)] }],
    open: [], key: null, fingerprint: null, flow: {},
    summary: {
      items: [{ type: 'text', msg }], waited, platformTime: took,
      calls: state === 'expired'
        ? []
        : [{
            at: createdAt + waited, took, outcome: state === 'sent' ? 'sent' : state === 'unanswered' ? 'unanswered' : 'refused',
            ...error && { reason: error.said },
          }],
    },
  }
}
