// When an adapter is reloaded, changes of the removed bot's status are announced: `Bot` looks in `ctx.bots` for its `sid`, not for itself.
const { Bot, Context } = require('koishi')

async function main() {
  const app = new Context()
  const fork = app.plugin(class extends Bot {
    constructor(ctx, config) {
      super(ctx, config, 'example')
      this.selfId = config.selfId
    }

    async start() {
      this.online()
    }
  }, { selfId: '1', version: 1 })
  await app.start()
  await new Promise(setImmediate)
  app.on('bot-status-updated', ({ sn, sid }) => {
    if (app.bots.some(bot => bot.sn === sn)) return
    end(0, `reproduced: a status of ${sid} is announced, of the login ${sn}, which is no longer in ctx.bots`)
  })
  fork.update({ selfId: '1', version: 2 })
  await new Promise(resolve => setTimeout(resolve, 500))
  end(1, 'mended: only bots in ctx.bots were announced')
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
