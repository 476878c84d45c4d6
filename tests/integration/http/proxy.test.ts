import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import { connect } from 'node:net'
import { after, afterEach, before, describe, test } from 'node:test'
import { callerOf } from '../../platforms/caller'
import { PlatformServer } from '../../platforms/server'
import { listen } from '../../support/listen'
import { startRelay, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

const { host: refused } = new URL('https://secure.invalid/')

/** Of Koishi's plugin: its undici 6 cannot serve the `fetch` of Node.js 26. */
const lacksProxy = Number(process.versions.node.split('.')[0]) >= 26

describe('what is posted goes through the proxy of the bot', () => {
  let relay: TestRelay
  let receiver: PlatformServer
  /** The addresses that the proxy was asked for. Nobody else can resolve their names. */
  const asked: string[] = []
  const { ask, queue, send, fail } = callerOf(() => relay, 'pager')
  /** A client either tunnels, or asks for whole addresses. */
  const proxy = createServer((incoming, outgoing) => {
    const { method, url = '', headers } = incoming
    asked.push(new URL(url).host)
    const forward = request(receiver.url, { method, headers, path: new URL(url).pathname }, answer => {
      answer.pipe(outgoing.writeHead(answer.statusCode ?? 502, answer.headers))
    })
    incoming.pipe(forward)
  }).on('connect', (incoming, socket) => {
    const { url = '' } = incoming
    asked.push(url)
    if (url.startsWith(refused)) {
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      return
    }
    const tunnel = connect(Number(new URL(receiver.url).port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      tunnel.pipe(socket).pipe(tunnel)
    })
    for (const end of [socket, tunnel]) end.on('error', () => [socket, tunnel].forEach(each => each.destroy()))
  })

  before(async () => {
    receiver = await PlatformServer.start(({ path }) => path === '/command' ? { body: { reply: 'pong' } } : { status: path === '/away' ? 302 : 204 })
    relay = await startRelay({
      proxy: `http://127.0.0.1:${await listen(proxy)}`,
      config: {
        chatApiTimeout: 1, chatApiMaxRetries: 0, commandCallbackUrl: 'http://callback.invalid/command?token=confidential',
        alertTo: 'http://alerts.invalid:8080/alert?token=confidential',
        targets: {
          pager: { first: [{ url: 'http://pager.invalid/page?token=confidential' }] }, away: { first: [{ url: 'http://pager.invalid/away' }] },
          secure: { first: [{ url: 'https://secure.invalid/page?token=confidential' }] },
        },
      },
    })
  })
  after(async () => {
    await relay.stop()
    proxy.closeAllConnections()
    proxy.close()
    await receiver.stop()
  })
  afterEach(() => {
    receiver.clear()
    asked.length = 0
    assert(!relay.logs.some(line => line.startsWith('message-relay ') && line.includes('confidential')))
  })

  test('a message to an HTTP address', { skip: lacksProxy }, async () => {
    assert.equal((await send({ msg: 'disk full' })).status, 200)
    assert.deepEqual([asked, receiver.calls.map(({ fields }) => fields.text)], [['pager.invalid:80'], ['disk full']])
    assert.match(await fail({ to: 'away', msg: 'x' }), /refused: .*302, a redirect, which is not followed/)
  })

  test('a command', { skip: lacksProxy }, async () => {
    relay.simulator.say({ group: '123456', user: '10001', text: '#ping x' })
    await relay.simulator.until(({ ledger }) => ledger.some(({ text }) => text === 'pong'))
    assert.deepEqual([asked, receiver.calls.map(({ fields }) => fields.command)], [['callback.invalid:80'], ['ping']])
  })

  test('an alert', { skip: lacksProxy }, async () => {
    relay.simulator.fault({ fault: { kind: 'not-member' } })
    await fail({ to: 'group:5', msg: 'x' })
    await until('it is posted', () => receiver.calls.length > 0)
    assert.deepEqual([asked, receiver.calls.map(({ fields }) => fields.alert)], [['alerts.invalid:8080'], ['gone']])
  })

  test('but not what the proxy refuses, or cannot take on this line of Node.js', async () => {
    const reason = lacksProxy ? '@koishijs/plugin-proxy-agent does not work on this line of Node.js: use Node.js 24' : 'the proxy makes no connection'
    const id = await queue({ to: 'secure', msg: 'x' })
    await until('its record says why', async () => (
      JSON.stringify((await ask(`/deliveries/${id}`)).data).includes(`https://secure.invalid: ${reason}`)
    ))
    assert.deepEqual([asked, receiver.calls.length], [lacksProxy ? [] : ['secure.invalid:443'], 0])
  })
})
