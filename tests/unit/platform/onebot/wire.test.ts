import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, mock, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { isObject } from '../../../../src/message/parse'
import { Wire } from '../../../../src/platform/onebot/wire'
import { SendError } from '../../../../src/platform/port'

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

/** Sets the clock that counts how long a call is under way; gives a function that moves it on, in milliseconds. */
function stopClock(t: TestContext): (time: number) => void {
  let now = 0
  const clock = mock.method(performance, 'now', () => now)
  t.after(() => clock.mock.restore())
  return time => {
    now += time
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
  })

  test('makes no call over a connection that is not open', async () => {
    const socket = new Socket()
    socket.readyState = 2
    await assert.rejects(wireOf(socket).call('get_status', {}), (error: unknown) => error instanceof SendError && error.outcome === 'unsent')
    assert.deepEqual(socket.echoes, [])
  })

  test('waits for an answer without end while its calls keep little in memory', async t => {
    const pass = stopClock(t)
    const wire = wireOf()
    const lost: unknown[] = []
    for (let index = 0; index < 1_000; index++) {
      wire.call('send_group_msg', {}).catch((error: unknown) => lost.push(error))
      pass(minute)
    }
    await setImmediate()
    assert.deepEqual(lost, [])
  })

  test('gives up calls that are older than ten minutes when all together keep more than 64 MiB', async t => {
    const pass = stopClock(t)
    const wire = wireOf()
    const lost: number[] = []
    const call = async (number: number, params: object): Promise<void> => {
      void wire.call('send_group_msg', { ...params }).catch((error: unknown) => {
        assert(error instanceof SendError && error.outcome === 'unanswered')
        lost.push(number)
      })
      await setImmediate()
    }
    await call(1, large)
    pass(minute)
    await call(2, large)
    pass(9 * minute)
    await call(3, large)
    assert.deepEqual(lost, [], 'none of them is old enough')
    pass(1)
    await call(4, {})
    assert.deepEqual(lost, [1])
    pass(60 * minute)
    await call(5, {})
    assert.deepEqual(lost, [1], 'the rest is little enough')
  })
})
