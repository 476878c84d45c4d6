// A relay in a process of its own, that can be killed. The test tells it where things are, and it says where it listens.
import { Context, HTTP } from 'koishi'
import * as proxyAgent from '@koishijs/plugin-proxy-agent'
import Server from '@koishijs/plugin-server'
import OneBotBot from '@koishijs/plugin-adapter-onebot'
import SQLiteDriver from 'koishi-plugin-database-sqlite'
import * as relay from '../../../src'

const [endpoint = '', selfId = '', folder = '', key = '', config = '{}'] = process.argv.slice(2)
async function main(): Promise<void> {
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(proxyAgent)
  app.plugin(Server, { host: '127.0.0.1', port: 0 })
  app.plugin<OneBotBot.Config>(OneBotBot, {
    protocol: 'ws', retryTimes: 6, retryInterval: 200, retryLazy: 200, responseTimeout: 2_000, proxyAgent: '', endpoint, selfId,
  })
  app.plugin(SQLiteDriver, { path: `${folder}/koishi.db` })
  const own: unknown = JSON.parse(config)
  app.plugin(relay, Object.assign({ apiKey: key, chatSettleTime: 0.001, uploadDir: `${folder}/uploads`, dataDir: `${folder}/data` }, own))
  await app.start()
  const { _http: server } = app.server
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    process.send?.(typeof address === 'object' ? address?.port : undefined)
  })
}

void main()
