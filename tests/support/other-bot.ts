import { Bot, MessageEncoder, type Context } from 'koishi'

/** A bot of a platform beside OneBot, always online, which says of each message that it was sent. */
export class OtherBot extends Bot {
  /** The ID of each message. */
  static readonly messageId = '77'

  static override MessageEncoder = class extends MessageEncoder {
    override flush(): Promise<void> {
      this.results.push({ id: OtherBot.messageId })
      return Promise.resolve()
    }

    override visit(): Promise<void> {
      return Promise.resolve()
    }
  }

  constructor(ctx: Context, config: object) {
    super(ctx, config, 'other')
    this.selfId = 'me'
  }

  override start(): Promise<void> {
    this.online()
    return Promise.resolve()
  }
}
