// A bot is announced before it has a platform: the constructor of `Bot` emits `bot-added` first, and sets `platform` after that.
const { Bot, Context } = require('koishi')

const app = new Context()
app.on('bot-added', ({ platform }) => {
  if (platform) end(1, `mended: the platform is ${platform}`)
  end(0, `reproduced: at its announcement, the platform of the bot is ${platform}`)
})
app.plugin(class extends Bot {
  constructor(ctx, config) {
    super(ctx, config, 'example')
  }
}, { selfId: '1' })

function end(code, line) {
  console.log(line)
  process.exit(code)
}
