import * as proxyAgent from '@koishijs/plugin-proxy-agent'
import { Context, HTTP, Logger, Universal, type Bot, type ForkScope } from 'koishi'
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import * as simulatorPlugin from '../../simulator/plugin'
import { until } from '../support/until'
import { start } from './support'

// What Koishi prints would mix with the results.
for (const target of Logger.targets) if (target.print !== undefined) (target.levels ?? Logger.levels).base = Logger.SILENT

function createApp(t: TestContext): Context {
  const app = new Context()
  const forks: ForkScope[] = [app.plugin(HTTP), app.plugin(proxyAgent)]
  t.after(() => {
    for (const fork of forks.reverse()) fork.dispose()
  })
  return app
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
  const app = createApp(t)
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
  const app = createApp(t)
  const fork = app.plugin(simulatorPlugin, { port: 0, responseTimeout: 500 })
  const starting = app.start()
  fork.dispose()
  await starting
  // Were the simulator still listening, the test file would not end.
  assert.equal(app.bots.length, 0)
})
