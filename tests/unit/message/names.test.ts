import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseDestinations } from '../../../src/message/target'
import type { Named } from '../../../src/message/model'
import { parseNamed, parseNames } from '../../../src/message/names'
import { parseTo } from '../../../src/message/parse'

const { names } = parseNames({
  ops: 'group:1',
  boss: 'private:2',
  chat: 'discord:group:3',
  far: { to: 'group:4', platform: 'discord', selfId: 9, lang: null },
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
    ['', 'group:1'], ['-ops', 'group:1'], ['a b', 'group:1'], ['a:b', 'group:1'], ['ｏｐｓ', 'group:1'], ['a'.repeat(65), 'group:1'], ['x', ''], ['x', []],
    ['x', 'ops'], ['x', 'group:'], ['x', 'group:*'], ['x', '*:group:1'], ['x', ['group:1', 'ops']], ['x', 7], ['x', null], ['x', {}], ['x', { to: 'ops' }],
    ['x', { to: 'group:1', platform: 7 }], ['x', { to: 'group:1', selfId: '' }], ['x', { to: 'discord:group:1', platform: 'onebot' }], ['x', { to: 'discord:9:group:1', selfId: '8' }],
    ['x', { to: 'group:1', bot: 'a' }], ['a\u202eb', 'group:1'],
  ]
  test('that are malformed are named in a warning, and the others work', () => {
    for (const [name, value] of malformed) {
      const { names: found, warnings } = parseNames({ [name]: value, ops: 'group:1' })
      assert.deepEqual([...found.keys()], ['ops'], JSON.stringify({ [name]: value }))
      assert.equal(warnings.length, 1)
      assert.match(String(warnings[0]), /^targets: ".*" is left out: /)
      assert.doesNotMatch(String(warnings[0]), /\p{Cf}/u)
    }
  })
})

test('names are letters and digits of any script, in one normal form, and look like nothing else', () => {
  const good = ['1', '告警群', '运维-1_a.b', '二〇二六', 'Ünïcode', 'ключ', 'हिन्दी', '値', '가나', '𠮷', 'ops', '字'.repeat(64)]
  const { names: found, warnings } = parseNames(Object.fromEntries(good.map(name => [name.normalize('NFD'), 'group:1'])))
  assert.deepEqual([[...found.keys()], warnings], [good, []])
  for (const name of good) {
    for (const form of ['NFC', 'NFD']) assert.equal(parseTo({ to: name.normalize(form), msg: 'x' }, found).list[0]?.asked, name)
  }
  const wrong = [
    '', '-a', '.a', '群 1', '群:1', '群：1', 'ｏｐｓ', '１', '①', '㍿', 'ﬁ', 'a/b', 'a,b', '群，1', 'a\u202eb', 'a\u200bb', '\u200da', 'a\ufe0f', '\u3164',
    'a\u034fb', '\u0301a', 'a\nb', '👍', 'a"b', '*', '字'.repeat(65),
  ]
  for (const name of wrong) assert.throws(() => parseNamed(name, 'group:1'), /a name must be 1 to 64 letters, digits/, JSON.stringify(name))
  const way = parseNames({ 告警群: 'group:1', Ünïcode: { first: ['告警群', 'é'.normalize('NFD')] }, é: 'group:2' })
  assert.deepEqual([way.warnings, way.names.get('Ünïcode')?.first?.ways], [[], [{ name: '告警群' }, { name: 'é' }]])
})

test('of a chat that is named twice, the first name counts', () => {
  const quiet = parseNames({ night: { to: 'group:1', lang: 'en-US' } }).names
  const langOf = (...words: string[]): unknown[] => parseDestinations(words, {}, quiet).list.map(({ lang }) => lang)
  assert.deepEqual([langOf('night', 'group:1'), langOf('group:1', 'night')], [['en-US'], [undefined]])
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
    [{ to: 'ops, private:2' }, [{ kind: 'group', id: '1' }, { kind: 'private', id: '2' }]],
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
    [404, /^no such target "nobody": write/, ['nobody', ['group:1', 'nobody', 'Ops']].map(to => ({ to }))],
    [404, /^no such target "[^"]{0,64}": write/, ['Ops', 'group:', 'channel:1', '__proto__', ['group:1', ''], 'a\n'.repeat(99)].map(to => ({ to }))],
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
    assert.equal(parseDestinations('ops,'.repeat(10_000) + 'ops', {}, asked).list.length, 100)
    assert.deepEqual(asked.asked, ['ops', 'ops'])
  })

  test('are not looked up at all where there are too many of them, and no longer than there is room', () => {
    const words = Array.from({ length: 101 }, (_, index) => `n${index}`)
    const asked = new AskedNames(words.map((word, index) => [word, hundred(index * 100)]))
    assert.throws(() => parseTo({ to: words, msg: 'x' }, asked), /more than 100 targets/)
    assert.deepEqual(asked.asked, [])
    assert.throws(() => parseDestinations(words.slice(1).join(), {}, asked), /more than 100 targets/)
    assert.deepEqual(asked.asked, ['n1', 'n2'])
  })

  test('have a policy, and several ways', () => {
    const { names: found, warnings } = parseNames({
      ops: 'group:1',
      oncall: {
        first: ['ops', 'onebot:20002:group:1', 'https://example.com/hook', { url: 'http://example.com/apprise', secret: 'abc', format: 'apprise' }],
        after: 60, when_unknown: 'next', digest: 30, quiet: { from: '22:00', to: '08:00', zone: 'Asia/Shanghai' },
      },
    })
    assert.deepEqual(warnings, [])
    const policy = { name: 'oncall', digest: 30_000, quiet: { from: 1320, to: 480, zone: 'Asia/Shanghai' } }
    const { list: [destination] } = parseDestinations('oncall', {}, found)
    assert.deepEqual(destination, {
      target: { kind: 'group', id: '1' }, asked: 'oncall', bot: {}, policy,
      route: {
        name: 'oncall', after: 60_000, whenUnknown: 'next',
        ways: [
          { target: { kind: 'group', id: '1' } }, { target: { kind: 'group', id: '1' }, platform: 'onebot', selfId: '20002' },
          { platform: 'http', target: { kind: 'group', id: 'oncall/3' } }, { platform: 'http', target: { kind: 'group', id: 'oncall/4' } },
        ],
      },
    })
    assert.throws(() => parseDestinations('oncall', { platform: 'onebot' }, found), /leave out platform and self_id/)
  })

  for (const [value, reason] of [
    [{ first: ['loop'] }, /"loop" must be a name that leads to one chat/],
    [{ first: ['both'] }, /"both" must be a name that leads to one chat/],
    [{ first: ['nobody'] }, /"nobody" must be a name/],
    [{ first: [] }, /first must be a list/],
    [{ first: ['group:1'], to: 'group:2' }, /not both/],
    [{ first: ['group:1'], after: 0 }, /after must be a number of seconds from 1 to 86400/],
    [{ first: ['ftp://example.com'] }, /an address of first must be/],
    [{ first: ['group:1'], when_unknown: 'again' }, /when_unknown must be stop or next/],
    [{ to: 'group:1', after: 5 }, /go with first/],
    [{ to: 'group:1', digest: 3601 }, /digest must be a number of seconds from 0 to 3600/],
    [{ to: 'group:1', quiet: { from: '22:00', to: '22:00' } }, /must differ/],
    [{ to: 'group:1', quiet: { from: '25:00', to: '08:00' } }, /quiet.from must be a time/],
    [{ to: 'group:1', quiet: { from: 22, to: 8 } }, /quiet.from must be a time/],
    [{ to: 'group:1', quiet: { from: '22:00', to: '08:00', zone: 'Mars/Olympus' } }, /quiet.zone must be the name of a time zone/],
  ] as const) {
    test(`are refused as a whole where they are ${JSON.stringify(value)}`, () => {
      const { names: found, warnings } = parseNames({ both: ['group:1', 'group:2'], loop: value, good: 'group:3' })
      assert.deepEqual([...found.keys()], ['both', 'good'])
      assert.equal(warnings.length, 1)
      assert.match(String(warnings[0]), reason)
    })
  }
})

describe('a name that makes incidents', () => {
  const isCalled = (word: string): boolean => ['oncall', 'li-lei'].includes(word)
  const parse = (rules: object, others: object = {}) => parseNames({ ops: { to: 'group:1', ...rules }, ...others }, isCalled)

  test('has its rules with times in milliseconds, and a policy that is durable', () => {
    const { names: found, warnings } = parse({
      mention: { critical: 'oncall, li-lei', warning: 'none' },
      ack: { who: 'oncall', remind: '4h', escalate: [{ after: '5m', mention: 'oncall' }, { after: 900, mention: 'all' }, { after: '30m', to: 'boss', again: '1d' }] },
    }, { boss: { to: 'private:2', ack: { from: 'info', escalate: [{ after: 1, to: 'feishu:private:3' }] } } })
    assert.deepEqual(warnings, [])
    assert.deepEqual(found.get('ops'), {
      addresses: [{ target: { kind: 'group', id: '1' } }], isList: false, policy: { name: 'ops', durable: true },
      mention: { critical: ['oncall', 'li-lei'] },
      ack: { from: 'warning', who: ['oncall'], remind: 14_400_000, escalate: [
        { after: 300_000, mention: ['oncall'] }, { after: 900_000, mention: ['all'] }, { after: 1_800_000, mention: [], to: 'boss', again: 86_400_000 },
      ] },
    })
    assert.deepEqual(found.get('boss')?.ack, { from: 'info', escalate: [{ after: 1000, mention: [], to: 'lark:private:3' }] })
    assert.deepEqual(parse({ mention: ['all'] }).names.get('ops'), {
      addresses: [{ target: { kind: 'group', id: '1' } }], isList: false, policy: { name: 'ops' },
      mention: { critical: ['all'], warning: ['all'], info: ['all'] },
    })
    assert.deepEqual(parse({ mention: 'none', ack: null }).names.get('ops'), { addresses: [{ target: { kind: 'group', id: '1' } }], isList: false })
  })

  test('is left out where a rule is malformed, with the name of the field', () => {
    const step = (...steps: unknown[]) => ({ ack: { escalate: steps } })
    const cases: [rules: object, message: string][] = [
      [{ mention: 'wang' }, 'mention: there is no person and no rota "wang"'], [{ mention: [] }, 'mention must be a person or rota'],
      [{ mention: 'none,oncall' }, 'mention: none goes alone'], [{ mention: { ok: 'oncall' } }, 'mention goes by critical'], [{ mention: 7.5 }, 'mention: there is no'],
      [{ ack: true }, 'ack must be an object'], [{ ack: { whom: 1 } }, 'rules of ack have no field "whom"'], [{ ack: { from: 'ok' } }, 'ack.from must be'],
      [{ ack: { who: [] } }, 'ack.who must be'], [{ ack: { who: 'all' } }, 'ack.who must be people'], [{ ack: { who: 'none' } }, 'ack.who: there is no'], [{ ack: { remind: 0 } }, 'ack.remind must be a duration'],
      [{ ack: { remind: '31d' } }, 'ack.remind'], [{ ack: { escalate: {} } }, 'ack.escalate must be a list'], [step(7), 'ack.escalate\\[0\\] must be an object'],
      [step({ mention: 'all' }), 'ack.escalate\\[0\\].after must be a duration'], [step({ after: 1 }), 'ack.escalate\\[0\\] must have mention or to'],
      [step({ after: 2, mention: 'all' }, { after: 2, mention: 'all' }), 'ack.escalate\\[1\\].after must be later'],
      [step({ after: 2, mention: 'wang' }), 'ack.escalate\\[0\\].mention: there is no'], [step({ after: 2, to: 'a b' }), 'ack.escalate\\[0\\].to must be'],
      [step({ after: 2, to: 'gone' }), 'ack.escalate\\[0\\].to: there is no name "gone"'], [step({ after: 2, to: 'ops' }), '.*"ops" leads back to this name'],
      [step({ after: 2, mention: 'all', again: 5 }, { after: 3, mention: 'all' }), 'ack.escalate\\[0\\].again goes with the last step only'],
    ]
    for (const [rules, message] of cases) {
      const { names: found, warnings } = parse(rules)
      assert.deepEqual([found.size, warnings.length], [0, 1], message)
      assert.match(String(warnings[0]), new RegExp(`^targets: "ops" is left out: ${message}`))
    }
  })

  test('leads back to none of those that lead to it', () => {
    const to = (name: string) => ({ to: 'group:2', ack: { escalate: [{ after: 1, to: name }] } })
    const { names: found, warnings } = parse({ ...to('b'), to: 'group:1' }, { a: to('group:9'), b: to('c'), c: to('ops'), d: to('a') })
    assert.deepEqual([[...found.keys()], warnings.length], [['a', 'd'], 3])
    assert.match(String(warnings[0]), /"ops" is left out: ack.escalate\[0\].to: "b" leads back to this name/)
    const known = { names: parse({}, { d: to('ops') }).names, isCalled }
    assert.throws(() => parseNamed('ops', to('d'), known), /"d" leads back to this name/)
    assert.throws(() => parseNamed('ops', to('ops'), known), /"ops" leads back to this name/)
    assert.throws(() => parseNamed('x', to('y'), known), /to: there is no name "y"/)
  })
})
