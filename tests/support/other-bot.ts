import { Bot, MessageEncoder, type Context, type h } from 'koishi'

/** A bot of a platform beside OneBot, always online, which says of each message that it was sent. */
export class OtherBot extends Bot {
  /** The elements of each message that it was given: what they say, or their type and what that is about. */
  static readonly written: string[][] = []

  static override MessageEncoder = class extends MessageEncoder {
    private readonly elements: string[] = []

    override flush(): Promise<void> {
      OtherBot.written.push(this.elements)
      this.results.push({ id: '77' })
      return Promise.resolve()
    }

    override visit({ type, attrs }: h): Promise<void> {
      this.elements.push(type === 'text' ? String(attrs.content) : `${type} ${String(attrs.id ?? attrs.type ?? attrs.src)}`)
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
