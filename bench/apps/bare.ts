// The rival: the same Koishi app with minimal routes for the same task.
import type {} from '@koishijs/plugin-server'
import { h, type Context } from 'koishi'
import { textOf } from '../lib/values'
import { serveBot } from './bot'

serveBot(app => app.plugin({ inject: ['server'], apply: addRoutes }))

function addRoutes(ctx: Context): void {
  // The body is parsed by the server's koa-body.
  ctx.server.post('/send', async koa => {
    const body: unknown = koa.request.body
    const [bot] = ctx.bots
    if (!bot) throw new Error('there is no bot')
    const ids = await bot.sendMessage(textOf(body, 'group_id'), h.text(textOf(body, 'msg')))
    koa.body = { message_ids: ids }
  })

  const refuse: Parameters<typeof ctx.server.post>[1] = koa => {
    koa.status = 401
    koa.body = { code: 401 }
  }
  // Without this, the server's parser would read the whole body first.
  ctx.server.post('/refuse', Object.assign(refuse, { [Symbol.for('noParseBody')]: true }))
}
