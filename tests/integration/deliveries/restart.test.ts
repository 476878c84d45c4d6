import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Simulator } from '../../../simulator'
import { RelayProcess } from '../../faults/process'
import { callerOf } from '../../support/caller'
import { temporaryFolder } from '../../support/folder'
import { apiKey, type Reply } from '../../support/relay'
import { until } from '../../support/until'
import { upload } from '../webhook/support'

test('after kill -9', async t => {
  const simulator = await Simulator.start({ anyTarget: true })
  t.after(() => simulator.close())
  const folder = temporaryFolder()
  const launch = async (): Promise<RelayProcess> => {
    const { endpoint, selfId } = simulator
    const launched = await RelayProcess.start({ apiKey, platform: { endpoint, selfId }, folder, config: { chatSettleTime: 0.001 } })
    t.after(() => launched.end('SIGKILL'))
    await until('the bot is online', async () => (await launched.request('/readyz')).status === 200, 20_000)
    return launched
  }
  let relay = await launch()
  const request: RelayProcess['request'] = (...args) => relay.request(...args)
  const { accept, list, post } = callerOf(request)

  /** What has arrived in a group. */
  const texts = (group: string): string[] => simulator.ledger.filter(({ target: { id } }) => id === group)
    .map(({ text, media: [medium] }) => medium ? `${text}[${medium.type} ${medium.size}]` : text)
  /** The states of the deliveries to a group, the oldest first. */
  const states = async (group: string): Promise<string[]> => (await list(`?target=group:${group}`)).map(({ state }) => state).reverse()
  const calls = (group: string): number => (
    simulator.calls.filter(({ action, params }) => action === 'send_group_msg' && String(params.group_id) === group).length
  )
  const [ordered, batch, keyed] = ['1001', '1002', '1003']

  simulator.fault({ fault: { kind: 'lost-answer' }, target: ordered })
  for (let index = 0; index < 5; index++) await accept({ group_id: ordered, msg: String(index) })
  await until('the first has arrived, unanswered', () => texts(ordered).length === 1)

  const url = await upload({ request }, 'report.txt', 'report')
  simulator.fault({ fault: { kind: 'lost-answer' }, action: 'upload_group_file', target: batch })
  const files = [{ type: 'file', url }, { type: 'file', url: 'base64://YWI=' }]
  await accept({ group_id: batch, messages: [{ msg: 'text' }, ...files, { type: 'nonsense' }] })
  await until('two have arrived', () => texts(batch).length === 2)

  const ask = (): Promise<Reply> => post({ group_id: keyed, msg: 'second' }, { 'idempotency-key': 'key' })
  simulator.fault({ fault: { kind: 'silent' }, target: keyed })
  const interrupted = [assert.rejects(post({ group_id: keyed, msg: 'first' }))]
  await until('the first has left', () => calls(keyed) === 1)
  interrupted.push(assert.rejects(ask()))
  await until('the second waits', async () => (await states(keyed)).includes('queued'))

  await relay.end('SIGKILL')
  simulator.clearFaults()
  relay = await launch()

  await t.test('what was answered with 202 is delivered, in its order, and nothing twice', async () => {
    assert.equal((await post({ group_id: ordered, msg: 'after' })).status, 200)
    assert.deepEqual(texts(ordered), ['0', '1', '2', '3', '4', 'after'])
    assert.deepEqual(await states(ordered), Array(6).fill('sent'))
  })
  await t.test('a batch goes on where it was, with its files', async () => {
    await until('it has ended', async () => (await states(batch)).join() === 'failed', 20_000)
    assert.deepEqual(texts(batch), ['text', '[file 6]', '[file 2]'])
  })
  await t.test('a request with a key that only waited in its queue is sent when it comes again', async () => {
    await Promise.all(interrupted)
    const again = await ask()
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, null])
    assert.deepEqual(texts(keyed), ['second'])
  })
})
