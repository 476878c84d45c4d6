import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { json } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { isObject } from '../../../src/lib/shape'
import { until } from '../../support/until'
import { addForward } from '../../support/onebot'
import { startSimulator } from '../onebot/support'
import { group, say, serveCallback, startWith, user, type Endpoint } from './support'

/** A callback that echoes, and the commands that it was sent. */
async function echo(t: TestContext): Promise<Endpoint & { posted: string[] }> {
  const posted: string[] = []
  const endpoint = await serveCallback(t, (request, response) => {
    void json(request).then(body => {
      assert(isObject(body))
      posted.push(`${String(body.command)}|${String(body.content)}`)
      response.end(JSON.stringify({ reply: `done: ${String(body.command)}` }))
    })
  })
  return { ...endpoint, posted }
}

const deploy = { name: 'deploy', groups: group, users: [user, 10002], help: 'deploys a <branch>' }

describe('a list of commands', () => {
  test('has names of any length, and nothing else is a command', async t => {
    const callback = await echo(t)
    const other = await echo(t)
    const { relay, passed } = await startWith(t, callback, { commands: [{ name: '状态' }, { name: 'restart-all', callback: other.url }] })
    assert.equal(await say(relay, passed, '#状态 all of it'), 'done: 状态')
    assert.equal(await say(relay, passed, '#状态'), 'done: 状态')
    assert.equal(await say(relay, passed, '#restart-all\nnow'), 'done: restart-all')
    for (const text of ['#ping hello', '#restart', '#restart-alls x', '# 状态', '状态']) assert.equal(await say(relay, passed, text), undefined, text)
    assert.deepEqual([callback.posted, other.posted], [['状态|all of it', '状态|'], ['restart-all|now']])
  })

  test('is open to its groups and users only, and says nothing to others', async t => {
    const callback = await echo(t)
    const { relay, passed } = await startWith(t, callback, { commands: [deploy, { name: 'ops', users: `10009，${user}` }] })
    assert.equal(await say(relay, passed, '#deploy main'), 'done: deploy')
    assert.equal(await say(relay, passed, '#deploy main', { user: '10002' }), 'done: deploy')
    assert.equal(await say(relay, passed, '#deploy main', { user: '10003' }), undefined)
    assert.equal(await say(relay, passed, '#deploy main', { group: '654321' }), undefined)
    relay.simulator.say({ user, text: '#ops x' })
    await relay.simulator.until(({ ledger }) => ledger.length === 3)
    assert.deepEqual(callback.posted, ['deploy|main', 'deploy|main', 'ops|x'])
    assert.match(relay.logs.join('\n'), /command "deploy" from group "654321": ignored: this member may not use it there/)
  })

  test('is told by help, as far as the asker may use it', async t => {
    const callback = await echo(t)
    const { relay, passed } = await startWith(t, callback, { commands: [deploy, { name: 'ping' }, { name: 'ops', users: '10009', help: 'for one' }] })
    assert.equal(await say(relay, passed, '#help'), '#deploy: deploys a <branch>\n#ping')
    assert.equal(await say(relay, passed, '#help me', { user: '10003' }), '#ping')
    assert.deepEqual(callback.posted, [])
  })

  test('gives nobody help who may use nothing, and leaves help to a command of that name', async t => {
    const callback = await echo(t)
    const closed = await startWith(t, callback, { commands: [deploy] })
    assert.equal(await say(closed.relay, closed.passed, '#help', { group: '654321' }), undefined)
    const own = await startWith(t, callback, { commands: [{ name: 'help' }] })
    assert.equal(await say(own.relay, own.passed, '#help me'), 'done: help')
  })

  test('names each malformed entry in a warning, and leaves it out', async t => {
    const callback = await echo(t)
    const { relay, passed } = await startWith(t, callback, {
      commands: [
        7, {}, { name: 'a b' }, { name: 'one', grups: '1' }, { name: 'two', groups: { a: 1 } }, { name: 'three', callback: 'ftp://h' },
        { name: 'four', help: 'a\nb' }, { name: 'ping', users: 10001 }, { name: 'ping', users: '1' }, { name: 'five', users: ',' },
        { name: 'six', groups: '123456,group:654321' }, { name: '#seven' },
      ],
    })
    const warnings = relay.logs.filter(line => line.includes('commands: entry')).map(line => line.replace(/^.*commands: entry /, ''))
    assert.deepEqual(warnings, [
      '1 is left out: it is no object', '2 is left out: name must be text without blanks', '3 is left out: name must be text without blanks',
      '4 ("one") is left out: commands have no field "grups"', '5 ("two") is left out: groups must be a list of IDs',
      '6 ("three") is left out: callback must be an http(s) address', '7 ("four") is left out: help must be one line of at most 200 characters',
      '9 ("ping") is left out: an earlier entry has its name', '10 ("five") is left out: users must be a list of IDs',
      '11 ("six") is left out: groups must be bare IDs: 123456, not group:123456',
      '12 ("#seven") is left out: name must be without the prefix "#"',
    ])
    assert.equal(await say(relay, passed, '#one x'), undefined)
    assert.equal(await say(relay, passed, '#ping x'), 'done: ping')
  })

  test('opens nothing where it is malformed as a whole, or all of it is', async t => {
    const callback = await echo(t)
    for (const commands of ['{', [{ name: 'a b' }]]) {
      const { relay, passed } = await startWith(t, callback, { commands })
      assert.equal(await say(relay, passed, '#ping x'), undefined)
    }
    assert.deepEqual(callback.posted, [])
  })

  test('can do without an address for all', async t => {
    const callback = await echo(t)
    const commands = JSON.stringify([{ name: 'ping', callback: callback.url }, { name: 'pong' }])
    const { relay, passed } = await startWith(t, callback, { commandCallbackUrl: '', commands })
    assert.match(relay.logs.join('\n'), /entry 2 \("pong"\) is left out: it has no callback, and commandCallbackUrl is not set/)
    assert.equal(await say(relay, passed, '#ping x'), 'done: ping')
  })

  test('is heard once where two accounts are in a group, and what one of them says is none', async t => {
    const callback = await echo(t)
    const { relay, passed } = await startWith(t, callback, { commands: [deploy] })
    const other = await startSimulator(t, { selfId: '20002', anyTarget: true })
    addForward(relay.app, other.endpoint, { selfId: '20002' })
    await until('both are online', () => relay.app.bots.filter(({ status }) => status === Universal.Status.ONLINE).length === 2)
    for (let time = 1; time <= 2; time++) {
      assert.equal(await say(relay, passed, '#deploy main'), 'done: deploy')
      other.say({ group, user, text: '#deploy main' })
      await until('the other one lets it pass', () => passed.length === time)
    }
    other.say({ group, user: relay.simulator.selfId, text: '#deploy' })
    await until('it passes', () => passed.length === 3)
    assert.deepEqual([callback.posted.length, other.ledger.length], [2, 0])
  })
})
