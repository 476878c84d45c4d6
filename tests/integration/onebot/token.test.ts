import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Simulator } from '../../../simulator'
import { addForward } from '../../support/onebot'
import { relayFor } from '../../support/relay'
import { until } from '../../support/until'
import { addReverse } from './support'

for (const profile of ['napcat', 'llbot'] as const) {
  test(`a token that ${profile} refuses is told as the cause`, async t => {
    const relay = await relayFor(t)
    const other = await Simulator.start({ selfId: '20000', token: 'the-right-token', profile })
    t.after(() => other.close())
    const fork = addForward(relay.app, other.endpoint, { selfId: '20000', token: 'another-token' })
    t.after(() => fork.dispose())
    // The adapter may give up before it dials again.
    const cause = /OneBot refused the access token: give .* the same one/
    await until('the cause is told', async () => cause.test(await (await relay.request('/statusz')).text()))
    assert(relay.logs.some(line => line.includes('bot onebot:20000 ') && cause.test(line)), relay.logs.join('\n'))
    assert(!relay.logs.join().includes('another-token'))
  })
}

test('a OneBot that dials with another account is told as the cause', async t => {
  const relay = await relayFor(t)
  const fork = addReverse(relay.app, '20000')
  t.after(() => fork.dispose())
  const other = await Simulator.start({ selfId: '30000', reverse: { url: `${relay.url.replace('http', 'ws')}/onebot`, redialInterval: 50 } })
  t.after(() => other.close())
  const cause = 'OneBot is logged in to another account (30000)'
  await until('the cause is told', async () => (await (await relay.request('/statusz')).text()).includes(`"cause":"${cause}"`))
})
