import OneBotBot from '@koishijs/plugin-adapter-onebot'
import * as proxyAgent from '@koishijs/plugin-proxy-agent'
import { Context, h, HTTP, Logger, Universal, type Bot, type ForkScope, type Session } from 'koishi'
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import * as simulatorPlugin from '../../simulator/plugin'
import { holdAdapterTimers, shortResponseTimeout } from '../support/adapter-timers'
import { until } from '../support/until'
import { folder, start } from './support'

// What Koishi prints would mix with the results.
for (const target of Logger.targets) if (target.print !== undefined) (target.levels ?? Logger.levels).base = Logger.SILENT

interface App { app: Context, forks: ForkScope[] }

function createApp(t: TestContext): App {
  const releaseTimers = holdAdapterTimers()
  const app = new Context()
  const forks: ForkScope[] = [app.plugin(HTTP), app.plugin(proxyAgent)]
  t.after(() => {
    for (const fork of forks.reverse()) fork.dispose()
    releaseTimers()
  })
  return { app, forks }
}

/** Resolves to the bot once it is online. */
function onlineBot(app: Context): Promise<Bot> {
  return new Promise(resolve => {
    const look = (): void => {
      const bot = app.bots.find(({ status }) => status === Universal.Status.ONLINE)
      if (bot === undefined) return
      stop()
      resolve(bot)
    }
    const stop = app.on('login-updated', look)
    look()
  })
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

test('the real adapter resolves replies, uploads files and reads history', async t => {
  const simulator = await start(t, { token: 'secret' })
  const { app, forks } = createApp(t)
  forks.push(app.plugin<OneBotBot.Config>(OneBotBot, {
    responseTimeout: shortResponseTimeout, proxyAgent: '', retryTimes: 6, retryInterval: 500, retryLazy: 60_000,
    protocol: 'ws', endpoint: simulator.endpoint, selfId: simulator.selfId, token: 'secret',
  }))
  await app.start()
  const bot = await onlineBot(app)
  assert.equal(bot.user?.name, '模拟机器人')
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
  const bot = await onlineBot(app)
  assert.equal(bot.selfId, '4242')
  const [taken = '', line = ''] = lines
  assert.match(taken, new RegExp(`^warn port ${other.port} is taken: the simulator takes \\d+; set SIMULATOR_PORT to choose$`))
  assert.match(line, /^warn .*SIMULATOR.*模拟平台.*ONEBOT_ENDPOINT/s)
  const pageUrl = /http:\/\/127\.0\.0\.1:\d+\/simulator\//.exec(line)?.[0] ?? ''
  assert.notEqual(new URL(pageUrl).port, String(other.port))
  await bot.sendMessage('123456', 'hello')
  const state = await (await fetch(`${pageUrl}api/state`)).text()
  assert.match(state, /"hello"/)
  fork.dispose()
  assert.equal(app.bots.length, 0)
  await until('the page is gone', () => fetch(pageUrl).then(response => response.text()).then(() => false, () => true))
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
