import { Bot, MessageEncoder, Universal, type Context, type h } from 'koishi'
import assert from 'node:assert/strict'

class OtherEncoder extends MessageEncoder {
  private elements: h[] = []

  override async flush(): Promise<void> {
    const { bot, channelId, elements } = this
    assert(bot instanceof OtherBot)
    if (elements.length === 0) return
    this.elements = []
    this.results.push({ id: await bot.deliver({ channelId, elements }) })
  }

  override async visit(element: h): Promise<void> {
    const { bot } = this
    assert(bot instanceof OtherBot)
    if (bot.divides) await this.flush()
    this.elements.push(element)
  }
}

/** A bot of a platform other than OneBot, as adapters create them. It is always online, and by default it delivers each message. */
export class OtherBot extends Bot {
  static override MessageEncoder = OtherEncoder

  readonly sent: { channelId: string, elements: h[] }[] = []
  /** What the next sends do instead of delivering their message. */
  failures: (() => Promise<void>)[] = []
  calls = 0
  /** Whether each element becomes its own message, as on platforms that cannot mix text and pictures. */
  divides = false

  constructor(ctx: Context, config: { platform?: string, selfId?: string }) {
    super(ctx, config, config.platform ?? 'other')
    this.selfId = config.selfId ?? 'me'
  }

  override start(): Promise<void> {
    this.online()
    return Promise.resolve()
  }

  override createDirectChannel(userId: string): Promise<Universal.Channel> {
    return Promise.resolve({ id: `dm-${userId}`, type: Universal.Channel.Type.DIRECT })
  }

  async deliver(sent: OtherBot['sent'][number]): Promise<string> {
    this.calls++
    await this.failures.shift()?.()
    return `${this.selfId}-${this.sent.push(sent)}`
  }

  /** Restores the initial state. */
  reset(): void {
    this.sent.length = 0
    Object.assign(this, { failures: [], calls: 0, divides: false, hidden: false })
    this.online()
  }
}

/** The bot of an app with this ID. */
export function otherBot({ app }: { app: Context }, selfId = 'me'): OtherBot {
  const bot = app.bots.find(each => each.selfId === selfId)
  assert(bot instanceof OtherBot)
  return bot
}
