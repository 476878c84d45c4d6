import OneBotBot from '@koishijs/plugin-adapter-onebot'
import * as proxyAgent from '@koishijs/plugin-proxy-agent'
import Server from '@koishijs/plugin-server'
import { Context, h, HTTP, Logger, Universal, type Bot, type ForkScope, type Session } from 'koishi'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { Simulator } from '../../simulator'
import * as simulatorPlugin from '../../simulator/plugin'
import { folder, record, start } from './support'

// What Koishi prints would mix with the results.
for (const target of Logger.targets) if (target.print !== undefined) (target.levels ?? Logger.levels).base = Logger.SILENT

const adapter = {
  // The adapter never clears its timers: a test file would not end before the last of them.
  responseTimeout: 1_000,
  proxyAgent: '',
  retryTimes: 6,
  retryInterval: 5_000,
  retryLazy: 60_000,
}

interface App { app: Context, forks: ForkScope[] }

function createApp(t: TestContext): App {
  const app = new Context()
  const forks: ForkScope[] = [app.plugin(HTTP), app.plugin(proxyAgent)]
  t.after(() => {
    for (const fork of forks.reverse()) fork.dispose()
  })
  return { app, forks }
}

/** Resolves to the bot once it has this status. */
function botOf(app: Context, status: Universal.Status): Promise<Bot> {
  return new Promise(resolve => {
    const look = (): void => {
      const bot = app.bots.find(candidate => candidate.status === status)
      if (bot === undefined) return
      stop()
      resolve(bot)
    }
    const stop = app.on('login-updated', look)
    look()
  })
}

async function forward(t: TestContext, simulator: Simulator): Promise<{ app: Context, bot: Bot }> {
  const { app, forks } = createApp(t)
  forks.push(app.plugin<OneBotBot.Config>(OneBotBot, {
    ...adapter, protocol: 'ws', endpoint: simulator.endpoint, selfId: simulator.selfId, token: 'secret',
  }))
  await app.start()
  return { app, bot: await botOf(app, Universal.Status.ONLINE) }
}

/** The next message that middleware would see. */
function heard(app: Context): Promise<Session> {
  return new Promise(resolve => {
    const stop = app.on('message', session => {
      stop()
      resolve(session)
    })
  })
}

test('the real adapter logs in, sends and hears over a forward connection', async t => {
  const simulator = await start(t, { token: 'secret' })
  const { app, bot } = await forward(t, simulator)
  assert.equal(bot.user?.name, '模拟机器人')
  const path = join(await folder(t), 'a.png')
  await writeFile(path, 'bytes')
  const [id] = await bot.sendMessage('123456', ['构建 passed', h.image(pathToFileURL(path).href)])
  await bot.sendPrivateMessage('10001', 'privately')
  const [first, second] = simulator.ledger
  assert.deepEqual([first?.target, first?.text, String(first?.messageId)], [{ type: 'group', id: '123456' }, '构建 passed', id])
  assert.deepEqual(first?.media.map(({ type, size }) => [type, size]), [['image', 5]])
  assert.deepEqual([second?.target, second?.text], [{ type: 'private', id: '10001' }, 'privately'])

  const said = heard(app)
  simulator.say({ group: '123456', user: '10002', text: '#ping' })
  const session = await said
  assert.deepEqual([session.content, session.userId, session.channelId, session.isDirect], ['#ping', '10002', '123456', false])
})

test('the real adapter resolves replies, uploads files and reads history', async t => {
  const simulator = await start(t, { token: 'secret' })
  const { app, bot } = await forward(t, simulator)
  const path = join(await folder(t), 'a.log')
  await writeFile(path, 'bytes')
  await bot.sendMessage('123456', h('file', { src: pathToFileURL(path).href, title: '日志.log' }))
  assert.deepEqual(simulator.ledger.map(({ kind, action, media }) => [kind, action, media[0]?.name]), [['file', 'upload_group_file', '日志.log']])

  const asked = heard(app)
  const question = simulator.say({ user: '10001', text: 'question' })
  await asked
  const reply = heard(app)
  simulator.say({ user: '10001', text: 'answer', replyTo: question })
  const session = await reply
  assert.deepEqual([session.content, session.isDirect, session.quote?.content], ['answer', true, 'question'])

  const { data } = await bot.getMessageList('private:10001')
  assert.deepEqual(data.map(message => message.content)[0], 'question')
  assert.equal((await bot.getGuildList()).data.length, 2)
})

test('the real adapter meets each fault', async t => {
  const simulator = await start(t, { token: 'secret' })
  const { app, bot } = await forward(t, simulator)
  simulator.fault({ fault: { kind: 'refuse' } })
  await assert.rejects(bot.sendMessage('123456', 'a'), { code: 1200 })
  simulator.fault({ fault: { kind: 'null-data' } })
  await assert.rejects(bot.sendMessage('123456', 'b'), TypeError)
  simulator.fault({ fault: { kind: 'lost-answer' } })
  await assert.rejects(bot.sendMessage('123456', 'c'), /Timeout with request send_group_msg/)
  assert.deepEqual(simulator.ledger.map(entry => entry.text), ['b', 'c'])

  const offline = botOf(app, Universal.Status.OFFLINE)
  await simulator.goOffline()
  await offline
  await simulator.goOnline()
  await bot.start()
  await botOf(app, Universal.Status.ONLINE)
  await bot.sendMessage('123456', 'd')
  assert.equal(simulator.ledger.at(-1)?.text, 'd')
})

test('the real adapter is reached over a reverse connection, and again after a loss', async t => {
  const { app, forks } = createApp(t)
  forks.push(app.plugin(Server, { host: '127.0.0.1', port: 0 }))
  forks.push(app.plugin<OneBotBot.Config>(OneBotBot, { responseTimeout: 1_000, protocol: 'ws-reverse', selfId: '10000', path: '/onebot' }))
  await app.start()
  const { _http: http } = app.server
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  t.after(() => {
    http.closeAllConnections()
  })
  const { port } = record(http.address())
  const simulator = await start(t, { reverse: { url: `ws://127.0.0.1:${String(port)}/onebot`, redialInterval: 10 } })
  const bot = await botOf(app, Universal.Status.ONLINE)
  await bot.sendMessage('123456', 'one')
  const offline = botOf(app, Universal.Status.OFFLINE)
  simulator.disconnectAll()
  await offline
  await botOf(app, Universal.Status.ONLINE)
  await bot.sendMessage('123456', 'two')
  assert.deepEqual(simulator.ledger.map(entry => entry.text), ['one', 'two'])
})

test('the plugin starts a simulator, connects to it, says so loudly and ends it', async t => {
  const lines: string[] = []
  const target: Logger.Target = {
    levels: { base: Logger.DEBUG },
    record: ({ name, type, content }) => {
      if (name === simulatorPlugin.name) lines.push(`${type} ${content}`)
    },
  }
  Logger.targets.push(target)
  t.after(() => {
    Logger.targets.splice(Logger.targets.indexOf(target), 1)
  })
  // Its port is taken: the plugin has to find another.
  const other = await start(t)
  const { app } = createApp(t)
  const fork = app.plugin(simulatorPlugin, { port: other.port, selfId: '4242', responseTimeout: 500 })
  await app.start()
  const bot = await botOf(app, Universal.Status.ONLINE)
  assert.equal(bot.selfId, '4242')
  const [line = ''] = lines
  assert.match(line, /^warn .*SIMULATOR.*模拟平台.*ONEBOT_ENDPOINT/s)
  const pageUrl = /http:\/\/127\.0\.0\.1:\d+\/simulator\//.exec(line)?.[0] ?? ''
  assert.notEqual(new URL(pageUrl).port, String(other.port))
  await bot.sendMessage('123456', 'hello')
  const state = await (await fetch(`${pageUrl}api/state`)).text()
  assert.match(state, /"hello"/)
  fork.dispose()
  assert.equal(app.bots.length, 0)
  await new Promise<void>(resolve => {
    const probe = (): void => {
      fetch(pageUrl).then(response => response.text()).then(() => setImmediate(probe), () => {
        resolve()
      })
    }
    probe()
  })
})

test('the plugin that is unloaded while it starts leaves nothing behind', async t => {
  const { app } = createApp(t)
  const fork = app.plugin(simulatorPlugin, { port: 0, responseTimeout: 500 })
  const starting = app.start()
  fork.dispose()
  await starting
  // Were the simulator still listening, the test file would not end.
  assert.equal(app.bots.length, 0)
})
