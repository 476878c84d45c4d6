// Whatever comes through a context is wrapped in proxies that trace the caller, and each read of a property makes new ones.
const { Bot, Context } = require('koishi')

const app = new Context()
app.plugin(class extends Bot {
  constructor(ctx, config) {
    super(ctx, config, 'example')
    this.selfId = config.selfId
  }
}, { selfId: '1' })
const [traced] = app.bots
let plain = traced
for (let inner = traced; inner; inner = inner[Symbol.for('cordis.original')]) plain = inner

/** The least time of a few tries, because other programs run, too. */
function time(bot) {
  const tries = Array.from({ length: 5 }, () => {
    const start = process.hrtime.bigint()
    for (let n = 0; n < 2_000; n++) if (bot.user.id !== '1') throw new Error('another bot')
    return Number(process.hrtime.bigint() - start) / 2_000
  })
  return Math.round(Math.min(...tries))
}

const times = [time(traced), time(plain)]
if (times[0] < 10 * times[1]) end(1, `mended: ${times[0]} ns through the context, ${times[1]} ns without it`)
end(0, `reproduced: reading bot.user.id takes ${times[0]} ns through the context, ${times[1]} ns without it`)

function end(code, line) {
  console.log(line)
  process.exit(code)
}
