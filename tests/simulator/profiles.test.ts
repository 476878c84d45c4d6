import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { ProfileName } from '../../simulator'
import { temporaryFolder } from '../support/folder'
import { record, startWithClient, text, type Client, type Frame } from './support'

// As the sources of the implementations have it.
type Case = 'parameter' | 'execution' | 'unknown' | 'muted' | 'notMember' | 'tooFast' | 'loggedOut' | 'swallowed' | 'timeout'

const retcodes: Record<ProfileName, Record<Case, number>> = {
  napcat: {
    parameter: 1400, execution: 1200, unknown: 1404, muted: 1200, notMember: 1200,
    tooFast: 1200, loggedOut: 1200, swallowed: 1200, timeout: 1200,
  },
  llbot: {
    parameter: 1400, execution: 1200, unknown: 1404, muted: 1200, notMember: 1200,
    tooFast: 1200, loggedOut: 1200, swallowed: 1200, timeout: 1200,
  },
  lagrange: {
    parameter: 200, execution: 200, unknown: 404, muted: 120, notMember: 110,
    tooFast: 299, loggedOut: 9057, swallowed: 9000, timeout: 9057,
  },
  gocqhttp: {
    parameter: 100, execution: 100, unknown: 404, muted: 100, notMember: 100,
    tooFast: 100, loggedOut: 100, swallowed: 100, timeout: 100,
  },
}
const names: ProfileName[] = ['napcat', 'llbot', 'lagrange', 'gocqhttp']

const send = (client: Client): Promise<Frame> => client.call('send_group_msg', { group_id: 123456, message: 'a' })

for (const profile of names) {
  const expected = retcodes[profile]

  test(`${profile} answers with its codes`, async t => {
    const { simulator, client } = await startWithClient(t, { profile })
    assert.equal((await client.call('send_group_msg', { message: 'a' })).retcode, expected.parameter)
    assert.equal((await client.call('get_guild_service_profile')).retcode, expected.unknown)
    client.socket.send('{')
    assert.equal((await client.frame(frame => frame.status === 'failed' && !('echo' in frame))).retcode, expected.parameter)
    simulator.fault({ fault: { kind: 'refuse' } })
    assert.equal((await send(client)).retcode, expected.execution)
    simulator.fault({ fault: { kind: 'timeout' } })
    assert.equal((await send(client)).retcode, expected.timeout)
    for (const [kind, retcode] of [['too-fast', expected.tooFast], ['logged-out', expected.loggedOut]] as const) {
      simulator.fault({ fault: { kind } })
      assert.equal((await send(client)).retcode, retcode)
    }
    simulator.fault({ fault: { kind: 'swallowed' } })
    assert.equal((await send(client)).retcode, expected.swallowed)
    simulator.mute('123456', true)
    assert.equal((await send(client)).retcode, expected.muted)
    simulator.removeBot('123456')
    assert.equal((await send(client)).retcode, expected.notMember)
    assert.equal(simulator.ledger.length, 0)
  })

  test(`${profile} gives its reason where it gives it`, async t => {
    const { simulator, client } = await startWithClient(t, { profile })
    simulator.fault({ fault: { kind: 'refuse', retcode: 7, wording: 'because' } })
    const { echo, ...answer } = await send(client)
    assert.notEqual(echo, undefined)
    const common = { status: 'failed', retcode: 7, data: null }
    assert.deepEqual(answer, {
      napcat: { ...common, message: 'because', wording: 'because' },
      llbot: { ...common, message: 'because', wording: 'because' },
      lagrange: common,
      gocqhttp: { ...common, msg: 'because', wording: 'because', message: 'because' },
    }[profile])
  })

  test(`${profile} tells what its source tells`, async t => {
    const { simulator, client } = await startWithClient(t, { profile })
    simulator.say({ group: '123456', user: '10001', text: 'hi' })
    const said = await client.frame(frame => frame.post_type === 'message')
    simulator.turn('loggedOut', true)
    const { online } = record((await client.call('get_status')).data)
    const group = record((await client.call('get_group_info', { group_id: 123456 })).data)
    const member = record((await client.call('get_group_member_info', { group_id: 123456, user_id: 10000 })).data)
    assert.deepEqual({
      kick: client.frames.some(frame => frame.notice_type === 'bot_offline'),
      status: online === false,
      mute: 'shut_up_timestamp' in member,
      allMuted: 'group_all_shut' in group,
      realSeq: 'real_seq' in said,
      messageSeq: said.message_seq === 1,
    }, {
      napcat: { kick: true, status: true, mute: true, allMuted: true, realSeq: true, messageSeq: false },
      llbot: { kick: false, status: true, mute: true, allMuted: false, realSeq: false, messageSeq: false },
      lagrange: { kick: true, status: false, mute: false, allMuted: false, realSeq: false, messageSeq: true },
      gocqhttp: { kick: false, status: true, mute: true, allMuted: false, realSeq: false, messageSeq: true },
    }[profile])
  })
}

test('words what really happened as the implementations do', async t => {
  const wordings: unknown[] = []
  for (const profile of ['napcat', 'llbot', 'gocqhttp'] as const) {
    const { simulator, client } = await startWithClient(t, { profile })
    simulator.fault({ fault: { kind: 'timeout' } })
    wordings.push((await send(client)).wording)
    simulator.fault({ fault: { kind: 'not-member' } })
    wordings.push((await send(client)).wording)
    simulator.fault({ fault: { kind: 'muted' } })
    wordings.push((await send(client)).wording)
  }
  const patterns = [
    /^Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService\/sendMsg /, /^EventChecker Failed: NTEvent .*"result": 110/s,
    /^EventChecker Failed: NTEvent .*"result": 120/s,
    /^waitForSelfEcho timeout$/, /移出该群/, /禁言/,
    /go-cqhttp/, /群聊不存在/, /go-cqhttp/,
  ]
  for (const [index, pattern] of patterns.entries()) assert.match(String(wordings[index]), pattern)
})

test('of a mixed message only the part that stands alone arrives', async t => {
  const path = join(temporaryFolder(), 'a.mp4')
  await writeFile(path, 'film')
  for (const type of ['video', 'record', 'file']) {
    const { simulator, client } = await startWithClient(t)
    const answer = await client.call('send_group_msg', {
      group_id: 123456, message: [text('caption'), { type, data: { file: path } }, text('more')],
    })
    assert.equal(answer.status, 'ok')
    const [entry] = simulator.ledger
    assert.deepEqual([entry?.text, entry?.segments.map(segment => segment.type), entry?.media.map(medium => medium.type)], ['', [type], [type]])
  }
  const { simulator, client } = await startWithClient(t)
  const message = [{ type: 'reply', data: { id: '1' } }, text('a'), { type: 'image', data: { file: path } }, { type: 'at', data: { qq: 'all' } }]
  await client.call('send_group_msg', { group_id: 123456, message })
  assert.deepEqual(simulator.ledger[0]?.segments, message)
})
