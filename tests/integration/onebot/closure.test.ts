import type { Context } from 'koishi'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ProfileName, Simulator } from '../../../simulator'
import { Presence } from '../../../src/platform/presence'
import { Bots } from '../../../src/platform/bots'
import { oneBot } from '../../../src/platform/onebot/account'
import { SendError, type Closure } from '../../../src/platform/port'
import { friend, group } from '../../support/items'
import { until } from '../../support/until'
import { stage } from './stage'
import { startPair } from './support'

const place = { type: 'group', id: group.id } as const
const muteBot = (simulator: Simulator): void => simulator.mute(group.id, true, 60)
const unmuteBot = (simulator: Simulator): void => simulator.mute(group.id, false)
const unmuteAll = (simulator: Simulator): void => simulator.turn('allMuted', false, place)
const muteAll = (simulator: Simulator): void => simulator.turn('allMuted', true, place)
const promote = (simulator: Simulator): void => simulator.setRole(group.id, 'admin')

/** What is said of a chat in short, after a check that a time is right. */
function inShort(state: Closure | 'open' | undefined): string {
  if (typeof state !== 'object') return String(state)
  const { cause, until } = state
  if (until !== null) assert(Math.abs(until - Date.now() - 60_000) < 5_000)
  return `${cause}${until === null ? '' : ' for a minute'}`
}

describe('whether a group takes messages', () => {
  const cases: [ProfileName, how: string, expected: string, ...before: ((simulator: Simulator) => void)[]][] = [
    ['napcat', 'nobody muted', 'open'],
    ['napcat', 'the bot muted', 'muted for a minute', muteBot],
    ['napcat', 'everybody muted', 'all-muted', muteAll],
    ['napcat', 'everybody muted but the bot, which is an admin,', 'open', muteAll, promote],
    ['napcat', 'everybody muted, and the bot, although it is an admin,', 'muted for a minute', muteAll, muteBot, promote],
    ['llbot', 'the bot muted', 'muted for a minute', muteBot],
    ['llbot', 'nobody muted', 'open'],
    ['llbot', 'everybody muted', 'all-muted', muteAll],
    ['llbot', 'everybody muted but the bot, which is an admin,', 'open', muteAll, promote],
    ['gocqhttp', 'the bot muted', 'muted for a minute', muteBot],
    ['gocqhttp', 'perhaps everybody muted', 'undefined', muteAll],
    ['lagrange', 'the bot muted', 'undefined', muteBot],
  ]
  for (const [profile, how, expected, ...before] of cases) {
    test(`is told by ${profile} with ${how} as ${expected}`, async t => {
      const { account, simulator } = await stage(t, { profile, groups: [{ id: group.id, name: 'a group', members: [] }] })
      for (const each of before) each(simulator)
      assert.equal(inShort(await account.closure?.(group)), expected)
    })
  }

  test('is not known of a private chat, nor where the platform does not know the action; a failure says nothing', async t => {
    const { account, simulator } = await stage(t)
    const calls = simulator.calls.length
    assert.equal(await account.closure?.(friend), undefined)
    assert.equal(simulator.calls.length, calls)
    simulator.fault({ action: 'get_group_member_info', fault: { kind: 'refuse', retcode: 1404, wording: '不支持的API get_group_member_info' } })
    assert.equal(await account.closure?.(group), undefined)
    simulator.fault({ action: 'get_group_member_info', fault: { kind: 'refuse' } })
    await assert.rejects(async () => account.closure?.(group), SendError)
  })
})

describe('a notice', () => {
  /** What is told from now on. */
  const listen = (app: Context): string[] => {
    const told: string[] = []
    const port = new Bots(app, Presence.of(app), [oneBot])
    port.onChat((sid, { kind, id }, state) => told.push(`${sid} ${kind}:${id} ${inShort(state)}`))
    return told
  }
  const chat = `onebot:10000 group:${group.id}`

  for (const mode of ['forward', 'reverse'] as const) {
    test(`over a ${mode} connection tells that the bot, or everybody, is muted, and that this is over`, async t => {
      const { app, simulator } = await startPair(t, mode)
      const told = listen(app)
      const steps: [change: (simulator: Simulator) => void, told: string][] = [
        [muteBot, 'muted for a minute'], [unmuteBot, 'open'], [muteAll, 'all-muted'], [unmuteAll, 'open'],
        // The other one goes on.
        [muteBot, 'muted for a minute'], [muteAll, 'all-muted'], [unmuteAll, 'muted for a minute'],
        [muteAll, 'all-muted'], [unmuteBot, 'all-muted'], [unmuteAll, 'open'],
      ]
      for (const [index, [change]] of steps.entries()) {
        change(simulator)
        await until('it is told', () => told.length > index)
      }
      assert.deepEqual(told, steps.map(([, what]) => `${chat} ${what}`))
    })
  }

  test('of others, or of everybody where the bot may speak all the same, closes nothing', async t => {
    const { app, simulator } = await startPair(t, 'forward')
    const told = listen(app)
    promote(simulator)
    const notice = { post_type: 'notice', notice_type: 'group_ban', self_id: 10000, time: 1, group_id: Number(group.id), operator_id: 10002 }
    simulator.transmit(JSON.stringify({ ...notice, sub_type: 'ban', user_id: 10001, duration: 60 }))
    muteAll(simulator)
    await simulator.until(({ calls }) => calls.some(({ action }) => action === 'get_group_member_info'))
    simulator.mute('654321', true, 60)
    await until('something is told', () => told.length > 0)
    assert.deepEqual(told, ['onebot:10000 group:654321 muted for a minute'])
  })

  test('that comes while the platform is asked for the role of the bot counts for more than the one before', async t => {
    const { app, simulator } = await startPair(t, 'forward')
    const told = listen(app)
    simulator.fault({ action: 'get_group_member_info', fault: { kind: 'late', ms: 200 } })
    muteAll(simulator)
    await simulator.until(({ calls }) => calls.some(({ action }) => action === 'get_group_member_info'))
    unmuteAll(simulator)
    await until('the end is told', () => told.length > 0)
    await until('the role is told', () => simulator.pending.length === 0)
    muteBot(simulator)
    await until('the next is told', () => told.length > 1)
    assert.deepEqual(told, [`${chat} open`, `${chat} muted for a minute`])
  })
})
