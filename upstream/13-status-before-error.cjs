// Whoever hears that a bot has gone offline cannot read why: `Bot.offline(error)` announces the status before it sets the error.
const { Bot, Context, Universal } = require('koishi')

const app = new Context()
app.plugin(class extends Bot {
  constructor(ctx, config) {
    super(ctx, config, 'example')
    this.selfId = config.selfId
  }
}, { selfId: '1' })
app.on('bot-status-updated', ({ status, error }) => {
  if (status !== Universal.Status.OFFLINE) return
  if (error) end(1, `mended: the listener reads "${error.message}"`)
  end(0, `reproduced: at the announcement of the status, bot.error is ${error}`)
})
app.bots[0].online()
app.bots[0].offline(new Error('the token was refused'))

function end(code, line) {
  console.log(line)
  process.exit(code)
}
