import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { type Context, type ForkScope, h, Universal } from 'koishi'
import type { Simulator, SimulatorOptions } from '../../../simulator'
import { type CommandSettings, listenForCommands } from '../../../src/commands'
import { RelayError } from '../../../src/errors'
import { InFlight } from '../../../src/lib/async'
import { fieldsOf, isObject, type JsonObject } from '../../../src/lib/shape'
import { Incoming } from '../../../src/platform/incoming'
import { incomingOneBot } from '../../../src/platform/onebot/message'
import { createDelivery, end, type ItemResult } from '../../../src/relay/delivery'
import type { Submission } from '../../../src/relay/relay'
import { listen } from '../../support/listen'
import { OtherBot } from '../../support/other-bot'
import { startRelay, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

/** One exchange with the callback, as its server sees it. */
interface Exchange { body: JsonObject, response: ServerResponse }

type Delivered = Submission['request'] & Pick<Submission, 'id'>

/** The app of a relay that listens for no commands itself; commands are listened for in a plugin of its own. */
class Stage {
  /** Requests of the callback that were answered, or are being. */
  readonly exchanges: Exchange[] = []
  readonly delivered: Delivered[] = []
  /** Texts that reached the middlewares behind ours. */
  readonly passed: (string | undefined)[] = []
  /** Answers an exchange. */
  answer: (exchange: Exchange) => void = ({ response }) => response.end('{"reply":"pong"}')
  send: (request: Submission['request']) => Promise<ItemResult[]> = ({ items }) => Promise.resolve(items.map(() => ({ success: true, messageIds: ['1'] })))
  readonly inFlight = new InFlight()
  private readonly handled = new Set<string>()
  private readonly forks: ForkScope[] = []
  private readonly callback = createServer((request, response) => {
    void json(request).then(body => {
      const exchange = { body: fieldsOf(body), response }
      this.exchanges.push(exchange)
      this.answer(exchange)
    })
  })

  private constructor(private readonly relay: TestRelay, private readonly logStart: number) {}

  static async set(simulator: SimulatorOptions = {}): Promise<Stage> {
    const relay = await startRelay({ simulator })
    const stage = new Stage(relay, relay.logs.length)
    relay.app.middleware((session, next) => {
      stage.passed.push(session.content)
      return next()
    })
    relay.app.on('middleware', session => void stage.handled.add(session.messageId ?? ''))
    await listen(stage.callback)
    return stage
  }

  get app(): Context {
    return this.relay.app
  }

  get simulator(): Simulator {
    return this.relay.simulator
  }

  /** Lines of the log, with their level. */
  get lines(): string[] {
    const name = 'message-relay '
    return this.relay.logs.slice(this.logStart).filter(line => line.startsWith(name)).map(line => line.slice(name.length))
  }

  listen(settings: Partial<CommandSettings> = {}): ForkScope {
    const address = this.callback.address()
    assert(isObject(address))
    const callbackUrl = `http://user:secret@127.0.0.1:${String(address.port)}/hook?token=secret`
    const fork = this.app.plugin((ctx: Context) => {
      listenForCommands(ctx, { prefix: '#', length: 4, callbackUrl, secret: '', retry: false, timeout: 10_000, ...settings }, {
        relay: {
          active: () => Promise.resolve(),
          submit: async ({ id, request, door }) => {
            this.delivered.push({ id, ...request })
            const results = await this.send(request)
            const delivery = createDelivery({ id, caller: null, door, recordContent: 'none' }, 1, Date.now(), request)
            return { delivery: Object.assign(delivery, end(delivery, results)), isReplay: false }
          },
        },
        readIncoming: session => new Incoming(session, [incomingOneBot]),
        inFlight: this.inFlight,
        logger: ctx.logger('message-relay'),
      })
    })
    this.forks.push(fork)
    return fork
  }

  /** Resolves when Koishi is done with the message. */
  whenHandled(id: number | string): Promise<void> {
    return until('Koishi is done with it', () => this.handled.has(String(id)))
  }

  /** Has a member say something in a group, and waits until Koishi is done with it. */
  async say(text: string): Promise<void> {
    await this.whenHandled(this.simulator.say({ group: '123456', user: '10001', text }))
  }

  async clear(): Promise<void> {
    this.callback.close()
    this.callback.closeAllConnections()
    for (const fork of this.forks) fork.dispose()
    await this.relay.stop()
  }
}

let stage: Stage
const bodies = () => stage.exchanges.map(({ body }) => body)
const answering = (value: unknown) => ({ response }: Exchange) => {
  response.end(JSON.stringify(value))
}

/** The lines of the log about commands, without their ID, name, origin and duration. */
function outcomes(): string[] {
  const entry = /^(\w+) [0-9a-f-]{36} command "ping" from group "123456": (.*), \d+ ms$/
  return stage.lines.filter(line => line.includes(' command ')).map(line => line.replace(entry, '$1 $2'))
}

describe('a OneBot message', () => {
  for (const messageFormat of ['array', 'string'] as const) {
    describe(`as ${messageFormat}`, () => {
      beforeEach(async () => {
        stage = await Stage.set({ messageFormat })
        stage.listen()
      })
      afterEach(() => stage.clear())

      test('of a group is posted with what was typed, and the reply goes back', async () => {
        await stage.whenHandled(stage.simulator.say({ group: '123456', user: '10001', text: '#ping <b> [x] &amp;\n y ', messageId: -7 }))
        assert.deepEqual(bodies(), [{
          command: 'ping',
          content: '<b> [x] &amp;\n y ',
          raw_message: '#ping <b> [x] &amp;\n y ',
          user_id: '10001',
          group_id: '123456',
          message_id: '-7',
        }])
        const [{ id, ...rest } = { id: '' }, ...others] = stage.delivered
        assert.deepEqual(rest, {
          mode: 'batch',
          bot: { platform: 'onebot', selfId: '10000' },
          target: { kind: 'group', id: '123456' },
          items: [{ type: 'text', text: 'pong' }],
        })
        assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
        assert.deepEqual(others, [])
        assert.deepEqual(stage.passed, [])
      })

      test('of a private chat is posted without a group, also of a temporary one that names a group', async () => {
        await stage.whenHandled(stage.simulator.say({ user: '10001', text: '#ping x', messageId: 5 }))
        await stage.whenHandled(stage.simulator.say({ user: '10001', text: '#ping x', messageId: 6, subType: 'group', raw: { target_id: 123456 } }))
        assert.deepEqual(bodies(), ['5', '6'].map(id => ({ command: 'ping', content: 'x', raw_message: '#ping x', user_id: '10001', message_id: id })))
        assert.deepEqual(stage.delivered.map(({ target }) => target), Array(2).fill({ kind: 'private', id: '10001' }))
      })
    })
  }
})

describe('listening', () => {
  beforeEach(async () => {
    stage = await Stage.set()
  })
  afterEach(() => stage.clear())

  test('lets everything else pass, and logs nothing of it', async () => {
    stage.listen()
    const before = stage.lines.length
    for (const text of ['#pin', 'hello', '#ping', '#pings x']) await stage.say(text)
    assert.deepEqual(stage.passed, ['#pin', 'hello', '#ping', '#pings x'])
    assert.deepEqual(bodies(), [])
    assert.equal(stage.lines.length, before)
  })

  test('never matches the bot\'s own messages', async () => {
    stage.listen()
    stage.simulator.say({ group: '123456', user: '10001', text: '#ping own', selfMessage: true })
    // Koishi drops those whose sender is the bot. One that only says so by its type has to be told apart here.
    await stage.whenHandled(stage.simulator.say({ group: '123456', user: '10001', text: '#ping own', raw: { post_type: 'message_sent' } }))
    await stage.say('#ping x')
    assert.deepEqual(bodies().map(({ content }) => content), ['x'])
    assert.deepEqual(stage.passed, ['#ping own'])
  })

  test('comes before middlewares that were prepended earlier', async () => {
    const order: string[] = []
    stage.app.middleware((_, next) => {
      order.push('other')
      return next()
    }, true)
    stage.listen()
    stage.answer = ({ response }) => {
      order.push('callback')
      response.end('{}')
    }
    await stage.say('#ping x')
    assert.deepEqual(order, ['callback', 'other'])
  })

  test('holds up no other message while a callback is slow', async () => {
    stage.listen()
    stage.answer = exchange => {
      if (exchange.body.content !== 'slow') answering({ reply: 'pong' })(exchange)
    }
    const slow = stage.simulator.say({ group: '123456', user: '10001', text: '#ping slow' })
    await until('the callback is asked', () => stage.exchanges.length === 1)
    await stage.say('#ping fast')
    await stage.say('hello')
    assert.equal(stage.delivered.length, 1)
    assert.deepEqual(stage.passed, ['hello'])
    const [first] = stage.exchanges
    assert.ok(first)
    answering({ reply: 'late' })(first)
    await stage.whenHandled(slow)
    assert.equal(stage.delivered.length, 2)
  })

  test('is refused for an address that is no link, without showing it', async () => {
    stage.listen({ callbackUrl: 'ftp://user:secret@example.com/' })
    await stage.say('#ping x')
    assert.deepEqual(stage.lines, ['error commands are off: commandCallbackUrl is not an http(s) address'])
    assert.deepEqual(stage.passed, ['#ping x'])
  })
})

describe('an answer', () => {
  beforeEach(async () => {
    stage = await Stage.set()
    stage.listen()
  })
  afterEach(() => stage.clear())

  test('may name another target and hold several items, wrong ones among them', async () => {
    stage.answer = answering({ user_id: 10002, messages: [{ type: 'sound' }, { msg: 'a' }, { type: 'image', url: 'http://127.0.0.1/a' }] })
    await stage.say('#ping x')
    const [{ target, items, id } = assert.fail()] = stage.delivered
    assert.deepEqual(target, { kind: 'private', id: '10002' })
    assert.deepEqual(items.map(item => item instanceof RelayError ? item.message : item.type), ['text', 'image'])
    assert.deepEqual(stage.passed, [])
    assert.deepEqual(outcomes(), ['info replied'])
    assert(stage.lines.includes(`warn ${id} an item of the reply is left out: type must be text, image, file, video or audio; inside messages, at and reply are allowed as well`), stage.lines.join('\n'))
  })

  test('of which an item is not sent ends the message, and the log tells how the item failed', async () => {
    stage.send = () => Promise.resolve([
      { success: false, error: new RelayError('refused', 'secret', { logText: 'muted' }) }, { success: true, messageIds: ['1'] },
    ])
    stage.answer = answering({ messages: [{ msg: 'a' }, { type: 'image', url: 'http://127.0.0.1/a' }] })
    await stage.say('#ping x')
    assert.deepEqual(stage.passed, [])
    assert.deepEqual(outcomes(), ['info replied'])
    assert(stage.lines.includes(`warn ${stage.delivered[0]?.id} an item of the reply failed: 502 muted`), stage.lines.join('\n'))
    assert.doesNotMatch(stage.lines.join('\n'), /secret/)
  })

  test('counts as under way until its reply is sent, and is not sent once the relay stops', async () => {
    let answer: (results: []) => void = () => assert.fail('nothing is being sent')
    stage.send = () => new Promise(resolve => {
      answer = resolve
    })
    const first = stage.simulator.say({ group: '123456', user: '10001', text: '#ping x' })
    await until('it is being sent', () => stage.delivered.length === 1)
    let isDrained = false
    const drained = stage.inFlight.drain(10_000).then(() => {
      isDrained = true
    })
    await stage.say('#ping y')
    assert.equal(stage.delivered.length, 1)
    assert.deepEqual(outcomes(), [`warn the reply was not delivered: ${new RelayError('stopping').message} (stopping)`])
    await new Promise(resolve => setImmediate(resolve))
    assert(!isDrained)
    answer([])
    await drained
    await stage.whenHandled(first)
  })

  const silences: Record<string, [content: string, line: string]> = {
    'of nothing': ['', 'info no reply'],
    'with an empty reply': ['{"reply":"","messages":[]}', 'info no reply'],
    'with other fields only': ['{"msg":"secret"}', 'warn no reply: the answer has neither reply nor messages'],
    'with a malformed target': ['{"reply":"secret","group_id":{}}', 'warn no reply: group_id must be a string or a whole number, one of more than 15 digits a string (bad-request)'],
    'with wrong items only': ['{"messages":[{"type":"image"},{}]}', 'warn no reply: every item of messages is wrong, the first: url is required for type image'],
  }
  for (const [name, [content, line]] of Object.entries(silences)) {
    test(`${name} is no reply: the message goes on to the others`, async () => {
      stage.answer = ({ response }) => response.end(content)
      await stage.say('#ping x')
      assert.deepEqual(stage.delivered, [])
      assert.deepEqual(stage.passed, ['#ping x'])
      assert.deepEqual(outcomes(), [line])
    })
  }

  test('whose delivery fails ends the message all the same, and the log tells no content', async () => {
    stage.send = () => Promise.reject(new RelayError('unsent'))
    await stage.say('#ping x')
    stage.send = () => Promise.reject(new TypeError('secret\n    at secret'))
    await stage.say('#ping x')
    stage.send = () => {
      throw new Error('secret')
    }
    await stage.say('#ping x')
    stage.send = () => Promise.resolve([{ success: false, error: new RelayError('refused', 'secret', { logText: 'muted' }) }])
    await stage.say('#ping x')
    assert.deepEqual(stage.passed, [])
    const [first, ...others] = outcomes()
    assert.equal(first, 'warn the reply was not delivered: no bot is online: try again later (unsent)')
    assert.equal(others[2], 'warn the reply was not delivered: muted (refused)')
    assert.match(others[0] ?? '', /^warn the reply was not delivered: "TypeError" at ".*commands\.test.*"$/)
    assert.match(others[1] ?? '', /^warn the reply was not delivered: "Error" at ".*commands\.test.*"$/)
    assert.doesNotMatch(stage.lines.join('\n'), /secret/)
  })
})

describe('the log', () => {
  beforeEach(async () => {
    stage = await Stage.set()
    stage.listen()
  })
  afterEach(() => stage.clear())

  test('names the address without its secrets', () => {
    assert.match(stage.lines[0] ?? '', /^info listening for commands: "#" and 4 characters, posted to http:\/\/127\.0\.0\.1:\d+$/)
  })

  test('shows a hostile name harmlessly', async () => {
    await stage.say('#%s\n\u202e x')
    await stage.say('#\u001b%o% x')
    assert.match(stage.lines[1] ?? '', /command "%s\ufffd\ufffd" from/)
    assert.match(stage.lines[2] ?? '', /command "\ufffd%o%" from/)
  })
})

describe('disposing', () => {
  beforeEach(async () => {
    stage = await Stage.set()
  })
  afterEach(() => stage.clear())

  test('ends the exchanges under way and delivers nothing; the message goes on to the others', async () => {
    const fork = stage.listen()
    stage.answer = () => undefined
    const id = stage.simulator.say({ group: '123456', user: '10001', text: '#ping x' })
    await until('the callback is asked', () => stage.exchanges.length === 1)
    const [{ response } = assert.fail()] = stage.exchanges
    const closed = once(response, 'close')
    fork.dispose()
    await closed
    await stage.whenHandled(id)
    assert.deepEqual(stage.delivered, [])
    assert.deepEqual(stage.passed, ['#ping x'])
    assert.deepEqual(outcomes(), ['info given up: the relay is stopping'])
  })

  test('stops it for a message, too, that was on its way here', async () => {
    const fork = stage.listen()
    stage.app.middleware((_, next) => {
      fork.dispose()
      return next()
    }, true)
    await stage.say('#ping x')
    assert.deepEqual(bodies(), [])
    assert.deepEqual(outcomes(), [])
    assert.deepEqual(stage.passed, ['#ping x'])
  })
})

describe('on another platform', () => {
  beforeEach(async () => {
    stage = await Stage.set()
    stage.listen()
  })
  afterEach(() => stage.clear())

  let said = 0

  async function say(channel: Universal.Channel, markup: string): Promise<void> {
    const id = `m${++said}`
    const fork = stage.app.plugin((ctx: Context) => {
      const bot = new OtherBot(ctx, {})
      bot.dispatch(bot.session({
        type: 'message',
        user: { id: 'alice' },
        guild: { id: 'guild' },
        channel,
        message: { id, elements: h.parse(markup) },
      }))
    })
    await stage.whenHandled(id)
    fork.dispose()
  }

  test('a group is known by its channel, and a private chat by its user', async () => {
    await say({ id: 'channel', type: Universal.Channel.Type.TEXT }, '#ping <at id="bob"/> &lt;b&gt;')
    await say({ id: 'direct', type: Universal.Channel.Type.DIRECT }, '#ping x')
    const [inGroup, inPrivate] = bodies()
    assert.deepEqual(inGroup, {
      command: 'ping', content: '@bob <b>', raw_message: '#ping @bob <b>', user_id: 'alice', group_id: 'channel', message_id: 'm1',
    })
    assert.equal('group_id' in (inPrivate ?? {}), false)
    assert.deepEqual(stage.delivered.map(({ target, bot }) => [target, bot.selfId]), [
      [{ kind: 'group', id: 'channel' }, 'me'], [{ kind: 'private', id: 'alice' }, 'me'],
    ])
  })
})
