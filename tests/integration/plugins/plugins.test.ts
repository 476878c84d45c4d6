import { h, type Context } from 'koishi'
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { fieldsOf } from '../../../src/lib/shape'
import type { RelayDelivery } from '../../../src'
import { read, useRelay } from '../../support/relay'
import { until } from '../../support/until'
import { relayWith } from '../deliveries/support'
import { post, texts } from '../hooks/support'

const group = 'group:123456'
const relay = useRelay({ config: { chatApiMaxRetries: 0, people: { 'li-lei': { onebot: 10001 } }, targets: { ops: group, both: [group, 'group:654321'] } } })

/** The plugins that a test has loaded. */
const forks: { dispose: () => void }[] = []

beforeEach(() => relay.reload())
afterEach(() => forks.splice(0).forEach(fork => fork.dispose()))

/** Loads a plugin that needs the relay. */
async function plugin(name: string, apply: (ctx: Context) => void): Promise<{ dispose: () => void }> {
  const fork = relay.app.plugin({ name, inject: ['messageRelay'], apply })
  forks.push(fork)
  await relay.app.lifecycle.flush()
  return fork
}

/** The context of a plugin that needs the relay. */
async function pluginContext(name = 'weather'): Promise<Context> {
  let context: Context | undefined
  await plugin(name, ctx => {
    context = ctx
  })
  assert(context)
  return context
}

function segments(): unknown[] {
  return relay.simulator.ledger.map(message => message.segments.map(({ type }) => type))
}

describe('a plugin that sends', () => {
  test('is told what became of its message, which its record shows', async () => {
    const { messageRelay } = await pluginContext()
    const [delivery, ...others] = await messageRelay.send('ops', 'rain <b')
    assert.deepEqual(others, [])
    const { id, messageIds, ...rest } = delivery
    assert.deepEqual(rest, {
      target: group, bot: `onebot:${relay.simulator.selfId}`, door: 'plugin', caller: 'plugin:weather', state: 'sent', outcome: 'sent',
    })
    assert.equal(messageIds.length, 1)
    assert.deepEqual(texts(relay), ['rain <b'])
    assert.deepEqual(await messageRelay.get(id), delivery)
    const { body: { data } } = await read(await relay.request(`/deliveries/${id}`))
    assert.equal(fieldsOf(data).key_name, 'plugin:weather')
    assert.equal(fieldsOf(data).door, 'plugin')
  })

  test('sends elements, text in lists letter for letter, and items', async () => {
    const { messageRelay } = await pluginContext()
    const pixel = 'data:image/png;base64,iVBORw0KGgo='
    await messageRelay.send(group, 'hi <at id="10001"/> <img src="https://example.com/a.png"/>')
    await messageRelay.send(group, ['<img/> ', h.at('10001'), ' ', h.image(pixel), { type: 'at', user_id: 'all' }, { msg: 'look' }])
    await messageRelay.send(group, h.text('<b>'))
    await messageRelay.send(group, ['line 1', '\n', h.text('line 2'), ' ', 'of 2'])
    assert.equal(relay.simulator.ledger.at(-1)?.text, 'line 1\nline 2 of 2')
    await messageRelay.send(group, [h('file', { src: 'data:text/plain;base64,aGk=', title: '../notes.txt' })])
    assert.deepEqual(segments(), [['text', 'at', 'image'], ['text', 'at', 'image', 'at', 'text'], ['text'], ['text'], []])
    assert.equal(relay.simulator.ledger[4]?.kind, 'file')
    assert.equal(relay.simulator.ledger[4].media[0]?.name, 'notes.txt')
    assert.deepEqual(texts(relay).slice(1, 3).map(text => text.slice(0, 6)), ['<img/>', '<b>'])
    const [answered] = await messageRelay.send(group, [h.at('10001'), 'first'])
    assert.equal(answered.messageIds.length, 1, 'one message has one ID')
    await messageRelay.send(group, [h.quote(answered.messageIds[0]), 'second'])
    assert.deepEqual(segments().at(-1), ['reply', 'text'])
  })

  test('calls people of the settings', async () => {
    const { messageRelay } = await pluginContext()
    await messageRelay.send(group, 'x', { severity: 'critical', mention: { critical: 'li-lei', info: 'all' } })
    assert.deepEqual(relay.simulator.ledger[0]?.segments[0], { type: 'at', data: { qq: '10001' } })
  })

  test('is refused as a whole what cannot be sent, with a reason', async () => {
    const { messageRelay } = await pluginContext()
    const refused: [Parameters<typeof messageRelay.send>, RegExp][] = [
      [[group, h('forward', { id: '1' })], /<forward> cannot be sent: use text/],
      [[group, ['one', h('p', 'two')]], /<p> cannot be sent/],
      [[group, ' '], /nothing to send/],
      [[group, h.image('file:///etc/passwd')], /url must be/],
      [[group, h.quote('7')], /reply cannot be sent alone/],
      [[group, 'x', { expiresIn: -1 }], /expires_in/],
      [[group, 'x', { wait: 601 }], /wait must be/],
      [[group, 'x', { key: 'a b' }], /key must be/],
      [[group, 'x', { mention: 'nobody' }], /mention: there is no person and no rota "nobody"/],
      [[group, 'x', { sendAt: new Date('2099-01-01') }], /30 days/],
      [[group, 'x', { sendAt: new Date(NaN) }], /sendAt must be/],
      [[[], 'x'], /to must not be empty/],
    ]
    for (const [args, message] of refused) await assert.rejects(messageRelay.send(...args), { name: 'RelayError', code: 'bad-request', message })
    await assert.rejects(messageRelay.send('nobody', 'x'), { code: 'no-such-target' })
    await assert.rejects(messageRelay.get('7'), { code: 'not-found' })
    assert.deepEqual(texts(relay), [])
  })

  test('reaches each chat of a name, and learns which of them failed', async () => {
    const { messageRelay } = await pluginContext()
    relay.simulator.fault({ fault: { kind: 'refuse' }, target: '654321', times: Infinity })
    const deliveries = await messageRelay.send('both', 'x', { key: 'k1' })
    assert.deepEqual(deliveries.map(({ target, state, outcome }) => [target, state, outcome]), [
      [group, 'sent', 'sent'], ['group:654321', 'failed', 'refused'],
    ])
    assert(deliveries[1]?.reason)
    relay.simulator.clearFaults()
    await messageRelay.send('both', 'x', { key: 'k1' })
    assert.deepEqual(relay.simulator.ledger.map(({ target }) => target.id), ['123456', '654321'])
  })

  test('learns which chats of a list have it, also where the key of another is used up', async () => {
    const { messageRelay } = await pluginContext()
    await messageRelay.send([group], 'x', { key: 'k2' })
    const [used, fresh] = await messageRelay.send([group, 'group:654321'], 'y', { key: 'k2' })
    assert.deepEqual([used.target, used.state, used.outcome], [group, 'failed', undefined])
    assert.match(used.reason ?? '', /used for a different request/)
    assert.deepEqual([fresh?.target, fresh?.outcome], ['group:654321', 'sent'])
  })

  test('may hand over the body of a request, for a target of its own or that of the plugin', async () => {
    const { messageRelay } = await pluginContext()
    const [sent] = await messageRelay.post({ to: 'ops', messages: [{ type: 'at', user_id: '10001' }, { msg: 'a' }] }, { key: 'p' })
    assert.deepEqual([await messageRelay.post({ to: 'ops', messages: [{ type: 'at', user_id: '10001' }, { msg: 'a' }] }, { key: 'p' })], [[sent]])
    await messageRelay.post({ msg: 'b', reply_to: sent.messageIds[0] }, { to: 'ops' })
    assert.deepEqual(segments(), [['at', 'text'], ['reply', 'text']])
    await assert.rejects(messageRelay.post({ to: group, msg: 'x' }, { to: 'ops' }), { code: 'bad-request' })
    await assert.rejects(messageRelay.post('x'), { code: 'bad-request' })
    assert.equal(messageRelay.language, 'en-US')
  })

  test('learns that no bot could send, and through which it asked', async () => {
    const { messageRelay } = await pluginContext()
    const [{ state, outcome, reason, refusal, id }] = await messageRelay.send(group, 'x', { platform: 'telegram' })
    assert.deepEqual([state, outcome, refusal], ['failed', 'unsent', 'unsent'])
    assert.match(reason ?? '', /no bot with this platform/)
    assert.equal((await messageRelay.get(id)).state, 'failed')
  })

  test('has keys and threads of its own, which another plugin does not share', async () => {
    const [weather, news] = [await pluginContext('weather'), await pluginContext('news')]
    const [first] = await weather.messageRelay.send(group, 'x', { key: 'k', thread: 't' })
    const [again] = await weather.messageRelay.send(group, 'x', { key: 'k', thread: 't' })
    assert.deepEqual(again, first)
    await assert.rejects(weather.messageRelay.send(group, 'y', { key: 'k' }), { code: 'key-reused' })
    const [foreign] = await news.messageRelay.send(group, 'x', { key: 'k', thread: 't' })
    assert.equal(foreign.caller, 'plugin:news')
    await weather.messageRelay.send(group, 'z', { thread: 't' })
    assert.deepEqual(segments(), [['text'], ['text'], ['reply', 'text']])
  })

  test('may go on without the result', async () => {
    const { messageRelay } = await pluginContext()
    relay.simulator.fault({ fault: { kind: 'late', ms: 500 } })
    const [{ id, state, outcome }] = await messageRelay.send(group, 'x', { wait: 0 })
    assert(state === 'queued' || state === 'sending')
    assert.equal(outcome, undefined)
    await until('it was sent', async () => (await messageRelay.get(id)).state === 'sent')
  })

  test('may order a message for later, and take it back; quiet hours hold what is not urgent', { timeout: 30_000 }, async t => {
    const now = new Date()
    const minutes = (hours: number): string => new Date(now.getTime() + hours * 3_600_000).toISOString().slice(11, 16)
    const quiet = { from: minutes(-1), to: minutes(1), zone: 'UTC' }
    const { app, simulator } = await relayWith(t, { config: { targets: { night: { to: group, quiet } } } })
    const { messageRelay } = app
    const [{ id, state }] = await messageRelay.send(group, 'tomorrow', { sendAt: new Date(now.getTime() + 86_400_000) })
    assert.equal(state, 'scheduled')
    assert.equal((await messageRelay.get(id)).state, 'scheduled')
    await messageRelay.withdraw(id)
    await assert.rejects(messageRelay.get(id), { code: 'not-found' })
    const [held] = await messageRelay.send('night', 'held')
    assert.deepEqual([held.state, held.outcome], ['queued', undefined])
    assert.match(held.reason ?? '', /quiet hours until/)
    const [urgent] = await messageRelay.send('night', 'urgent', { urgent: true })
    assert.equal(urgent.state, 'sent')
    await assert.rejects(messageRelay.withdraw(urgent.id), { code: 'conflict' })
    assert.deepEqual(simulator.ledger.map(({ text }) => text), ['urgent'])
  })

  test('finds no service once the relay is unloaded, and is loaded again with it', async () => {
    let loads = 0
    await plugin('weather', ctx => {
      loads++
      ctx.messageRelay.source('rain', { read: () => ({ skipped: 'no rain' }), template: 'x' })
    })
    assert.equal(loads, 1)
    relay.unload()
    assert.equal(relay.app.get('messageRelay'), undefined)
    await relay.reload()
    assert.equal(loads, 2)
    assert.equal((await post(relay, `rain/${group}`, {})).data.skipped, 'no rain')
  })
})

test('the events of deliveries tell plugins of each end, whoever ordered it, and survive a listener that fails', async () => {
  const heard: [string, RelayDelivery][] = []
  const ctx = await pluginContext()
  ctx.on('message-relay/sent', delivery => void heard.push(['sent', delivery]))
  ctx.on('message-relay/failed', delivery => {
    heard.push(['failed', delivery])
    throw new Error('a secret')
  })
  const [sent] = await ctx.messageRelay.send(group, 'x')
  relay.simulator.fault({ fault: { kind: 'refuse' }, times: Infinity })
  const { error } = await relay.send({ to: group, msg: 'y' })
  await until('both were told', () => heard.length === 2)
  assert.deepEqual(heard[0], ['sent', sent])
  const [name, failed] = heard[1] ?? []
  assert.deepEqual([name, failed?.id, failed?.outcome, failed?.caller, failed?.door], ['failed', error.delivery_id, 'refused', null, 'webhook'])
  await until('the log tells of the listener', () => relay.logs.some(line => line.includes('listens to message-relay/failed failed')))
  assert(!relay.logs.some(line => line.includes('a secret')))
})

describe('a source of a plugin', () => {
  const shop = (ctx: Context): void => {
    ctx.messageRelay.source('shop', {
      read: ({ order, customer }, headers) => {
        if (headers['x-event'] === 'ping') return { skipped: 'a ping' }
        return { name: 'order', status: 'paid', thread: String(order), view: { order, name: fieldsOf(customer).name } }
      },
      template: { 'en-US': 'Order {{ order }} of {{ name }}', 'zh-CN': '{{ name }} 的订单 {{ order }}' },
    })
  }
  const order = { order: 7, customer: { name: 'Li' } }

  test('makes messages of what is posted, with events, statuses, threads and keys as others have', async () => {
    await plugin('shop', shop)
    const options = { headers: { 'content-type': 'application/json', 'idempotency-key': 'o7' } }
    for (let count = 0; count < 2; count++) await post(relay, `shop/${group}?lang=en-US`, JSON.stringify(order), options)
    await post(relay, `shop/${group}`, order)
    assert.match(String((await post(relay, `shop/${group}?status=failed`, order)).data.skipped), /status/)
    assert.equal((await post(relay, `shop/${group}`, JSON.stringify(order), { headers: { 'content-type': 'application/json', 'x-event': 'ping' } })).data.skipped, 'a ping')
    await until('both have left', () => texts(relay).length === 2)
    assert.equal(texts(relay)[0], 'Order 7 of Li')
    assert.match(texts(relay)[1] ?? '', /Li 的订单 7$/)
    assert.deepEqual(segments()[1], ['reply', 'text'])
  })

  test('is shown with its template, which the operator may replace', async () => {
    await plugin('shop', shop)
    const template = await read(await relay.request('/templates/shop'))
    assert.deepEqual(template.body.data, { template: '{{ name }} 的订单 {{ order }}', source: 'built-in' })
    const preview = await read(await relay.request('/templates/shop/preview', { method: 'POST', body: JSON.stringify({ payload: order }) }))
    assert.equal(preview.data.text, 'Li 的订单 7')
    const folder = join(relay.uploadDir, '../data/templates')
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'shop.liquid'), 'own {{ order }}')
    await post(relay, `shop/${group}`, order)
    await until('it has left', () => texts(relay).length === 1)
    assert.deepEqual(texts(relay), ['own 7'])
    await relay.request('/templates/shop', { method: 'DELETE' })
  })

  test('that cannot read a payload refuses it, without telling why', async () => {
    await plugin('shop', ctx => {
      const read = (): never => {
        throw new TypeError('a secret')
      }
      ctx.messageRelay.source('shop', { read, template: 'x' })
    })
    const { status, text } = await post(relay, `shop/${group}`, {})
    assert.equal(status, 400)
    assert.match(text, /cannot read this payload/)
    assert(!text.includes('a secret') && !relay.logs.some(line => line.includes('a secret')))
    assert(relay.logs.some(line => line.includes('the plugin that reads shop failed: "TypeError"')))
  })

  test('goes with its plugin, and before where that asks for it, and its payloads are then read like any other', async () => {
    const preview = async (): Promise<string> => JSON.stringify((await post(relay, `shop/${group}?dry_run=1&lang=en-US`, order)).data.messages)
    const fork = await plugin('shop', shop)
    assert.match(await preview(), /Order 7 of Li/)
    fork.dispose()
    assert.match(await preview(), /customer.name: Li\\norder: 7/)
    const { messageRelay } = await pluginContext()
    const remove = messageRelay.source('shop', { read: () => ({ skipped: 'x' }), template: '' })
    assert.equal(await preview(), undefined)
    remove()
    assert.match(await preview(), /customer.name: Li/)
    shop(await pluginContext('other'))
    assert.match(await preview(), /Order 7 of Li/)
  })

  test('has a name of its own', async () => {
    const { messageRelay } = await pluginContext()
    const source = { read: () => ({ skipped: 'x' }), template: '' }
    messageRelay.source('mine', source)
    for (const name of ['github', 'digest', 'mine']) assert.throws(() => messageRelay.source(name, source), { code: 'conflict' }, name)
    for (const name of ['', 'a/b', '..', 'x'.repeat(65)]) assert.throws(() => messageRelay.source(name, source), { code: 'bad-request' }, name)
  })
})
