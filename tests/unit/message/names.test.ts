import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parsePath } from '../../../src/message/destination'
import type { Named } from '../../../src/message/model'
import { parseNames } from '../../../src/message/names'
import { parseTo } from '../../../src/message/parse'

const { names } = parseNames({
  ops: 'group:1',
  boss: 'private:2',
  chat: 'discord:group:3',
  far: { to: 'group:4', platform: 'discord', selfId: '9' },
  both: ['group:1', 'group:2'],
  one: ['group:1'],
  comma: 'group:1, private:2',
})

function read(body: object): unknown {
  const { list, isList } = parseTo({ msg: 'x', ...body }, names)
  const found = list.map(({ target, bot }) => ({ ...target, ...bot }))
  return isList ? found : found[0]
}

describe('names for targets', () => {
  test('lead to one target, or to a list of them', () => {
    assert.deepEqual(names.get('ops'), { addresses: [{ target: { kind: 'group', id: '1' } }], isList: false })
    assert.deepEqual(names.get('far'), { addresses: [{ target: { kind: 'group', id: '4' }, platform: 'discord', selfId: '9' }], isList: false })
    assert.deepEqual(names.get('one'), { addresses: [{ target: { kind: 'group', id: '1' } }], isList: true })
    assert.equal(names.get('both')?.addresses.length, 2)
    assert.deepEqual(names.get('comma'), { addresses: [{ target: { kind: 'group', id: '1' } }, { target: { kind: 'private', id: '2' } }], isList: true })
  })

  const malformed: [string, unknown][] = [
    ['', 'group:1'], ['-ops', 'group:1'], ['a b', 'group:1'], ['a:b', 'group:1'], ['群', 'group:1'], ['a'.repeat(65), 'group:1'], ['x', ''], ['x', []],
    ['x', 'ops'], ['x', 'group:'], ['x', 'group:*'], ['x', '*:group:1'], ['x', ['group:1', 'ops']], ['x', 7], ['x', null], ['x', {}], ['x', { to: 'ops' }],
    ['x', { to: 'group:1', platform: 7 }], ['x', { to: 'group:1', selfId: '' }], ['x', { to: 'discord:group:1', platform: 'onebot' }], ['x', { to: 'discord:9:group:1', selfId: '8' }],
    ['x', { to: 'group:1', bot: 'a' }], ['a\u202eb', 'group:1'],
  ]
  test('that are malformed are named in a warning, and the others work', () => {
    for (const [name, value] of malformed) {
      const { names: found, warnings } = parseNames({ [name]: value, ops: 'group:1' })
      assert.deepEqual([...found.keys()], ['ops'], JSON.stringify({ [name]: value }))
      assert.equal(warnings.length, 1)
      assert.match(warnings[0] ?? '', /^targets: ".*" is left out: /)
      assert.doesNotMatch(warnings[0] ?? '', /\p{Cf}/u)
    }
  })
})

describe('the field to', () => {
  const cases: [object, object][] = [
    [{ to: 'group:1' }, { kind: 'group', id: '1' }],
    [{ to: 'private:2' }, { kind: 'private', id: '2' }],
    [{ to: 'discord:group:3' }, { kind: 'group', id: '3', platform: 'discord' }],
    [{ to: 'feishu:group:3' }, { kind: 'group', id: '3', platform: 'lark' }],
    [{ to: 'group:3', platform: 'feishu' }, { kind: 'group', id: '3', platform: 'lark' }],
    [{ to: 'lark:group:3', platform: 'feishu' }, { kind: 'group', id: '3', platform: 'lark' }],
    [{ to: 'group:a:b' }, { kind: 'group', id: 'a:b' }],
    [{ to: 'group:private:3' }, { kind: 'group', id: 'private:3' }],
    [{ to: 'ops' }, { kind: 'group', id: '1' }],
    [{ to: 'ops', platform: 'onebot', self_id: 5 }, { kind: 'group', id: '1', platform: 'onebot', selfId: '5' }],
    [{ to: 'chat' }, { kind: 'group', id: '3', platform: 'discord' }],
    [{ to: 'onebot:5:group:1' }, { kind: 'group', id: '1', platform: 'onebot', selfId: '5' }],
    [{ to: 'onebot:private:group:1' }, { kind: 'private', id: 'group:1', platform: 'onebot' }],
    [{ to: 'far' }, { kind: 'group', id: '4', platform: 'discord', selfId: '9' }],
    [{ to: 'far', platform: 'discord', self_id: '9' }, { kind: 'group', id: '4', platform: 'discord', selfId: '9' }],
    [{ to: 'ops', group_id: '', user_id: null }, { kind: 'group', id: '1' }],
    [{ to: null, group_id: '1' }, { kind: 'group', id: '1' }],
    [{ to: '', user_id: '1' }, { kind: 'private', id: '1' }],
    [{ to: ['group:1'] }, [{ kind: 'group', id: '1' }]],
    [{ to: 'one' }, [{ kind: 'group', id: '1' }]],
    [{ to: 'both' }, [{ kind: 'group', id: '1' }, { kind: 'group', id: '2' }]],
    [{ to: 'comma' }, [{ kind: 'group', id: '1' }, { kind: 'private', id: '2' }]],
    // Doubles are left out, however they are written; through another bot it is another message.
    [{ to: ['boss', 'both', 'ops', 'group:2', 'private:2'] }, [{ kind: 'private', id: '2' }, { kind: 'group', id: '1' }, { kind: 'group', id: '2' }]],
    [{ to: ['group:3', 'chat'] }, [{ kind: 'group', id: '3' }, { kind: 'group', id: '3', platform: 'discord' }]],
    [{ to: ['ops', 'chat'], platform: 'discord' }, [{ kind: 'group', id: '1', platform: 'discord' }, { kind: 'group', id: '3', platform: 'discord' }]],
  ]
  test('leads to targets, and to a bot where it says so', () => {
    for (const [body, expected] of cases) assert.deepEqual(read(body), expected, JSON.stringify(body))
  })

  const refused: [number, RegExp, object[]][] = [
    [400, /only one of them/, [{ to: 'group:1', group_id: '1' }, { to: 'group:1', user_id: '1' }]],
    [404, /^no such target/, ['nobody', 'Ops', 'group:', 'channel:1', '__proto__', ['group:1', 'nobody'], ['group:1', '']].map(to => ({ to }))],
    [400, /one target/, [7, {}, [7]].map(to => ({ to }))],
    [400, /must not be empty/, [{ to: [] }]],
    [400, /more than 100 targets/, [{ to: Array.from({ length: 101 }, (_, index) => `group:${index + 1}`) }]],
    [400, /another bot/, [
      { to: ['ops', 'far'], platform: 'onebot' }, { to: 'far', platform: 'onebot' }, { to: 'far', self_id: '8' },
      { to: 'discord:group:3', platform: 'onebot' },
    ]],
  ]
  test('is refused where it is malformed, or says another bot than its name', () => {
    for (const [status, message, bodies] of refused) {
      for (const body of bodies) assert.throws(() => read(body), { status, message }, JSON.stringify(body))
    }
  })
})

/** Names that remember which of them were asked for. */
class AskedNames extends Map<string, Named> {
  readonly asked: string[] = []

  override get(name: string): Named | undefined {
    this.asked.push(name)
    return super.get(name)
  }
}

describe('names that are given again and again', () => {
  const hundred = (start: number): Named => ({
    addresses: Array.from({ length: 100 }, (_, index) => ({ target: { kind: 'group', id: String(start + index) } })), isList: true,
  })

  test('are looked up once', () => {
    const asked = new AskedNames([['ops', hundred(0)]])
    assert.equal(parseTo({ to: Array.from({ length: 10_000 }, () => 'ops'), msg: 'x' }, asked).list.length, 100)
    assert.equal(parsePath('ops,'.repeat(10_000) + 'ops', {}, asked).list.length, 100)
    assert.deepEqual(asked.asked, ['ops', 'ops'])
  })

  test('are not looked up at all where there are too many of them, and no longer than there is room', () => {
    const words = Array.from({ length: 101 }, (_, index) => `n${index}`)
    const asked = new AskedNames(words.map((word, index) => [word, hundred(index * 100)]))
    assert.throws(() => parseTo({ to: words, msg: 'x' }, asked), /more than 100 targets/)
    assert.deepEqual(asked.asked, [])
    assert.throws(() => parsePath(words.slice(1).join(), {}, asked), /more than 100 targets/)
    assert.deepEqual(asked.asked, ['n1', 'n2'])
  })
})
