import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { isObject } from '../../../../src/lib/shape'
import { redialDelay } from '../../../../src/platform/keeper/connection'
import { LostCall, Wire } from '../../../../src/platform/keeper/wire'

function unused(): void {
  assert.fail('a wire sends only')
}

/** A WebSocket whose other side is the test. */
class Socket extends EventEmitter {
  readyState = 1
  readonly bufferedAmount = 0
  readonly ping = unused
  readonly close = unused
  readonly terminate = unused
  readonly echoes: string[] = []
  /** What gets past the wire. */
  readonly passed: string[] = []

  constructor() {
    super()
    this.on('message', (data: Buffer) => this.passed.push(data.toString()))
  }

  send(data: string): void {
    const frame: unknown = JSON.parse(data)
    assert(isObject(frame) && typeof frame.echo === 'string')
    this.echoes.push(frame.echo)
  }

  receive(frame: string): void {
    this.emit('message', Buffer.from(frame), false)
  }
}

function wireOf(socket = new Socket()): Wire {
  const wire = Wire.of(socket, 'onebot:1')
  assert(wire)
  return wire
}

const minute = 60_000
/** About 30 MiB. */
const large = { message: 'x'.repeat(30 * 1024 * 1024) }

describe('a wire', () => {
  test('is one for each socket', () => {
    const socket = new Socket()
    assert.equal(wireOf(socket), wireOf(socket))
    assert.notEqual(wireOf(socket), wireOf())
    for (const other of [undefined, null, 'x', {}, new EventEmitter()]) assert.equal(Wire.of(other, 'onebot:1'), undefined)
  })

  test('hands events and the answers to others on, and keeps its own', async () => {
    const socket = new Socket()
    const wire = wireOf(socket)
    const answer = wire.call('get_status', {})
    const others = [
      '{"post_type":"meta_event"}', '{"retcode":0,"echo":2}', '{"retcode":0,"echo":"2"}',
      '{"post_type":"message","message_id":-1,"message":"a","sender":{"user_id":"1"}}',
      '{"post_type":"message","message_id":1,"message":[{"type":"text","data":{"text":"a"}},{"type":"face"}],"sender":{"tiny_id":"1"}}',
    ]
    for (const frame of others) socket.receive(frame)
    socket.receive(JSON.stringify({ retcode: 0, echo: socket.echoes[0] }))
    assert.deepEqual(await answer, { retcode: 0, echo: socket.echoes[0] })
    assert.deepEqual(socket.passed, others)
    assert.equal(wire.received, others.length + 1)
    socket.readyState = 2
    await assert.rejects(wire.call('get_status', {}), (error: unknown) => error instanceof LostCall && !error.hasLeft)
    assert.equal(socket.echoes.length, 1, 'no call is made over a connection that is not open')
  })

  test('gives up its calls when it closes', async () => {
    const socket = new Socket()
    const answer = wireOf(socket).call('get_status', {})
    socket.emit('close')
    await assert.rejects(answer, (error: unknown) => error instanceof LostCall && error.hasLeft)
  })

  test('gives up calls that are older than ten minutes when all together keep more than 64 MiB', async t => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const pass = (time: number): number => now += time
    const wire = wireOf()
    const lost: number[] = []
    const call = async (number: number, params: object): Promise<void> => {
      void wire.call('send_group_msg', { ...params }).catch((error: unknown) => {
        assert(error instanceof LostCall && error.hasLeft)
        lost.push(number)
      })
      await setImmediate()
    }
    await call(1, large)
    pass(minute)
    await call(2, large)
    pass(9 * minute)
    await call(3, large)
    for (let number = 0; number < 1_000; number++) await call(100 + number, {})
    assert.deepEqual(lost, [], 'none of them is old enough')
    pass(1)
    await call(4, {})
    assert.deepEqual(lost, [1])
    pass(60 * minute)
    await call(5, {})
    assert.deepEqual(lost, [1], 'the rest is little enough')
  })
})

test('the wait before a bot is started again begins below a second, grows, and ends at five', () => {
  assert.deepEqual([0, 1, 2, 3, 4, 1000].map(tries => redialDelay(tries, 0)), [500, 1000, 2000, 4000, 5000, 5000])
  assert.equal(redialDelay(1000, 0.5), 3750)
  assert(redialDelay(0, 0.999_999) > 249)
})
