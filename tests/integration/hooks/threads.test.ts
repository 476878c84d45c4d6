import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fieldsOf } from '../../../src/lib/shape'
import { useRelay, type Reply } from '../../support/relay'
import { group, post, type HookReply } from './support'

const relay = useRelay({
  config: {
    chatApiMaxRetries: 0, targets: { ops: `group:${group}`, all: [`group:${group}`, 'group:654321'] },
    keys: [{ name: 'ci', key: 'k'.repeat(32), allow: ['send', 'hooks'] }],
  },
})

/** What has arrived, the oldest first: its text, and in front of it the place of the message that it answers. */
function arrived(): string[] {
  const { ledger } = relay.simulator
  return ledger.map(({ segments, text }) => {
    const [reply] = segments.filter(({ type }) => type === 'reply')
    const line = text.split('\n')[0] ?? ''
    return reply ? `→ ${ledger.findIndex(({ messageId }) => String(messageId) === reply.data.id)} ${line}` : line
  })
}

/** The places of the messages that were taken back. */
function recalled(): number[] {
  const { calls, ledger } = relay.simulator
  return calls.filter(({ action }) => action === 'delete_msg').map(({ params }) => ledger.findIndex(({ messageId }) => messageId === params.message_id))
}

let threads = 0
const newThread = (): string => `thread-${++threads}`

describe('a thread of /webhook', () => {
  const send = (thread: string, msg: string, more: object = {}, headers?: Record<string, string>): Promise<Reply> => (
    relay.send({ to: 'ops', msg, thread, ...more }, headers)
  )
  const deedOf = ({ data: { thread } }: Reply): unknown => thread

  test('is answered, and its record says so', async () => {
    const thread = newThread()
    const replies = [await send(thread, 'a'), await send(thread, 'b'), await send(thread, 'c', { thread_mode: 'update' })]
    assert.deepEqual([replies.map(deedOf), arrived()], [['new', 'replied', 'replied'], ['a', '→ 0 b', '→ 0 c']])
    const { delivery_id: id } = fieldsOf(replies[1]?.body.data)
    const record: unknown = await (await relay.request(`/deliveries/${String(id)}`)).json()
    assert.match(JSON.stringify(record), /"thread":"replied"/)
  })

  test('has its last message replaced', async () => {
    const thread = newThread()
    const replies = []
    for (const msg of ['a', 'b', 'c']) replies.push(deedOf(await send(thread, msg, { thread_mode: 'replace' })))
    assert.deepEqual([replies, arrived(), recalled()], [['new', 'replaced', 'replaced'], ['a', 'b', 'c'], [0, 1]])
  })

  test('is no other caller\'s, and goes on in each target', async () => {
    const thread = newThread()
    await send(thread, 'a', { to: 'all' })
    const { body } = await send(thread, 'b', { to: 'all' })
    assert.equal(JSON.stringify(body.data).match(/"thread":"replied"/g)?.length, 2)
    assert.equal(deedOf(await send(thread, 'c', {}, { authorization: `Bearer ${'k'.repeat(32)}` })), 'new')
  })
})

describe('a thread of /hooks', () => {
  const run = (id: number, action: string, query = '?status=*&lang=en-US'): Promise<HookReply> => post(relay, `github/ops${query}`, {
    action, workflow_run: { id, name: 'CI', run_number: 3, head_branch: 'main', conclusion: action === 'completed' ? 'failure' : null },
    repository: { full_name: 'acme/shop' }, sender: { login: 'alice' },
  }, { headers: { 'content-type': 'application/json', 'x-github-event': 'workflow_run' } })

  test('quotes the start of a run, which is told where the address asks for it', async () => {
    assert.match(String((await run(1, 'requested', '')).data.skipped), /status=started/)
    for (const action of ['requested', 'in_progress', 'completed']) assert.equal((await run(2, action)).status, 200)
    await run(3, 'completed')
    const lines = ['⏳ [acme/shop] CI is queued on main', '→ 0 ⏳ [acme/shop] CI is running on main', '→ 0 ❌ [acme/shop] CI failed on main']
    assert.deepEqual(arrived(), [...lines, '❌ [acme/shop] CI failed on main'])
  })

  test('is turned off, named or replaced by the address', async () => {
    await run(4, 'requested')
    await run(4, 'in_progress', '?status=*&thread=0')
    await run(4, 'completed', '?status=*&thread_mode=replace')
    const { data } = await run(4, 'completed', '?status=*&thread=mine')
    assert.deepEqual([arrived().filter(each => each.startsWith('→')), recalled()], [[], [0]])
    assert.match(await (await relay.request(`/deliveries/${String(data.delivery_id)}`)).text(), /"thread":"new"/)
  })

  test('quotes the alarm with its end', async () => {
    for (const status of ['firing', 'resolved']) {
      await post(relay, 'alertmanager/ops', { status, groupKey: '{}:{alertname="disk"}', alerts: [{ status, labels: { alertname: 'disk' }, startsAt: '2026-03-02T09:51:03Z' }] })
      await post(relay, 'uptime-kuma/ops', { heartbeat: { status: status === 'firing' ? 0 : 1, msg: status }, monitor: { id: 7, name: 'web' }, msg: status })
    }
    assert.deepEqual(arrived().map(each => each.slice(0, 3)).map(each => each.startsWith('→') ? each : ''), ['', '', '→ 0', '→ 1'])
  })

  const quoted = (): string[] => arrived().map(each => each.startsWith('→') ? each.slice(0, 3) : '')
  // As louislam/uptime-kuma `server/notification-providers/webhook.js`, prometheus/alertmanager `notify/webhook/webhook.go`, and GitHub's
  // `workflow_run`, of a run that is started again, tell it.
  const outages: Readonly<Record<string, (isOver: boolean, nth: number) => Promise<HookReply>>> = {
    'Uptime Kuma': (isOver, nth) => post(relay, 'uptime-kuma/ops', {
      heartbeat: { status: isOver ? 1 : 0, msg: `${nth}` }, monitor: { id: 8, name: 'web' }, msg: `${nth}`,
    }),
    'Alertmanager': (isOver, nth) => post(relay, 'alertmanager/ops', {
      status: isOver ? 'resolved' : 'firing', groupKey: '{}:{alertname="cpu"}',
      alerts: [{ status: isOver ? 'resolved' : 'firing', labels: { alertname: 'cpu' }, startsAt: `2026-03-0${nth + 1}T09:51:03Z` }],
    }),
    'GitHub': (isOver, nth) => post(relay, 'github/ops', {
      action: 'completed', workflow_run: { id: 9, run_attempt: nth, name: 'CI', head_branch: 'main', conclusion: isOver ? 'success' : 'failure' },
      repository: { full_name: 'acme/shop' }, sender: { login: 'alice' },
    }, { headers: { 'content-type': 'application/json', 'x-github-event': 'workflow_run' } }),
  }
  for (const [source, tell] of Object.entries(outages)) {
    test(`of ${source} starts anew with the next outage`, async () => {
      for (const [nth, isOver] of [false, false, true, false, true].entries()) assert.equal((await tell(isOver, nth)).status, 200)
      assert.deepEqual(quoted(), ['', '→ 0', '→ 0', '', '→ 3'])
    })
  }
})
