import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { group, other, relayWith } from '../deliveries/support'
import { until } from '../../support/until'
import { sends } from '../webhook/support'
import { edit, gaps, pause, place } from './support'

const path = null

for (const [name, reload] of [edit, pause]) {
  describe(`${name}: the queue of a target`, { concurrency: true }, () => {
    test('goes on one at a time and in order, those that came before with those that come after', async t => {
      const relay = await relayWith(t, { path })
      const [first, rest] = [300, 200]
      relay.simulator.fault({ fault: { kind: 'late', ms: first, delivered: 'then' } })
      relay.simulator.fault({ fault: { kind: 'late', ms: rest, delivered: 'then' }, times: Infinity })
      const answers = []
      for (const text of ['0', '1', '2', '3']) answers.push((await place(relay, text)).answer)
      await reload(relay, { chatApiTimeout: 20 })
      for (const text of ['4', '5', '6']) answers.push((await place(relay, text)).answer)
      await reload(relay, { chatApiTimeout: 30 })
      answers.push((await place(relay, '7')).answer)
      assert.equal((await relay.post({ group_id: other, msg: 'other' })).status, 200, 'others do not wait')
      assert.deepEqual((await Promise.all(answers)).map(({ status }) => status), Array(8).fill(200))
      assert.deepEqual(relay.texts().filter(text => text !== 'other'), ['0', '1', '2', '3', '4', '5', '6', '7'])
      const times = relay.simulator.calls.filter(({ params }) => String(params.group_id) === group).map(({ time }) => time)
      for (const [index, time] of times.entries()) {
        if (index > 0) assert(time - (times[index - 1] ?? 0) >= rest - 1, 'none is sent before the one before it is answered')
      }
    })

    test('keeps its distance', async t => {
      const config = { chatSendInterval: 0.5 }
      const relay = await relayWith(t, { path, config })
      const answers = [relay.post({ group_id: group, msg: 'a' })]
      await until('it is under way', () => sends(relay).length === 1)
      assert.equal((await answers[0])?.status, 200)
      await reload(relay, { ...config, chatApiTimeout: 20 })
      answers.push((await place(relay, 'b')).answer, (await place(relay, 'c')).answer)
      await reload(relay, { ...config, chatApiTimeout: 30 })
      answers.push((await place(relay, 'd')).answer)
      await Promise.all(answers)
      assert.deepEqual(relay.texts(), ['a', 'b', 'c', 'd'])
      for (const gap of gaps(relay)) assert(gap >= 499, `${gap} ms`)
    })

    test('stays paused, and the failures before count', async t => {
      const config = { chatPauseAfter: 2, chatPauseTime: 60, chatApiMaxRetries: 0 }
      const relay = await relayWith(t, { path, config })
      relay.simulator.removeBot(group)
      const send = () => relay.post({ group_id: group, msg: 'hello' })
      assert.equal((await send()).status, 502)
      await reload(relay, { ...config, chatApiTimeout: 20 })
      assert.equal((await send()).status, 502)
      await reload(relay, { ...config, chatApiTimeout: 30 })
      const { status, headers } = await send()
      assert.equal(status, 503)
      assert(Number(headers.get('retry-after')) > 50)
      assert.equal(sends(relay).length, 2)
      assert.match(JSON.stringify((await relay.ask('/statusz')).data.queues), /paused_until/)
    })
  })

  describe(`${name}: a new setting`, { concurrency: true }, () => {
    test('of the distance holds from then on', async t => {
      const relay = await relayWith(t, { path, config: { chatSendInterval: 60 } })
      assert.equal((await relay.post({ group_id: group, msg: 'a' })).status, 200)
      await reload(relay, { chatSendInterval: 0.4 })
      for (const msg of ['b', 'c']) assert.equal((await relay.post({ group_id: group, msg })).status, 200)
      const [first = 0, second = 0] = gaps(relay)
      assert(first < 10_000, `${first} ms`)
      assert(second >= 399 && second < 5_000, `${second} ms`)
    })

    test('of the time-out holds for what waits and what comes', async t => {
      const relay = await relayWith(t, { path, config: { chatApiTimeout: 60, chatApiMaxRetries: 0 } })
      relay.simulator.fault({ fault: { kind: 'late', ms: 500 } })
      relay.simulator.fault({ fault: { kind: 'silent' }, times: 2 })
      const { answer: first } = await place(relay, 'first')
      const { answer: before } = await place(relay, 'before')
      await reload(relay, { chatApiTimeout: 1, chatApiMaxRetries: 0 })
      const { answer: after } = await place(relay, 'after')
      assert.deepEqual([(await first).status, (await before).status, (await after).status], [200, 504, 504])
      assert(gaps(relay).every(gap => gap < 5_000))
    })
  })
}
