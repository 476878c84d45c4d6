import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Roster } from '../../../src/incidents/people'
import { onDuty, parseRota, type Swap } from '../../../src/incidents/rota'
import { say } from '../../../src/texts/text'
import { Stores } from '../access/support'

const time = (text: string): number => Date.parse(text)
const swap = (from: string, until: string, who: string): Swap => ({ from: time(from), until: time(until), who })

/** Who has a rota at a time, and until when. */
function duty(rota: object, at: string, swaps: readonly Swap[] = []): [who: string, until: string | undefined] {
  const { who, until } = onDuty(parseRota({ people: ['a', 'b', 'c'], ...rota }), swaps, time(at))
  return [who, until === undefined ? until : new Date(until).toISOString()]
}

describe('a rota', () => {
  const weekly = { every: '1w', from: '2026-11-30T09:00+08:00', zone: 'Asia/Shanghai' }

  test('is handed over to the millisecond, from the last one to the first, and before its beginning, too', () => {
    assert.deepEqual(duty(weekly, '2026-11-30T09:00+08:00'), ['a', '2026-12-07T01:00:00.000Z'])
    assert.deepEqual(duty(weekly, '2026-11-30T08:59:59.999+08:00'), ['c', '2026-11-30T01:00:00.000Z'])
    assert.deepEqual(duty(weekly, '2026-12-07T08:59:59.999+08:00')[0], 'a')
    assert.deepEqual(['2026-12-07', '2026-12-14', '2026-12-21', '2027-12-20'].map(day => duty(weekly, `${day}T09:00+08:00`)[0]), ['b', 'c', 'a', 'b'])
    assert.deepEqual(duty({ ...weekly, people: ['a'] }, '2026-12-01T00:00Z'), ['a', undefined])
    assert.deepEqual(duty({ ...weekly, people: ['a', 'a', 'b'] }, '2026-12-01T00:00Z'), ['a', '2026-12-14T01:00:00.000Z'])
  })

  test('begins at a time with an offset, or at one of its zone', () => {
    for (const from of ['2026-11-30T09:00', '2026-11-30T01:00Z', '2026-11-30 02:00:00+01:00']) {
      assert.deepEqual(parseRota({ ...weekly, people: 'a', from }), parseRota({ ...weekly, people: ['a'] }))
    }
  })

  test('is handed over at its time of the day, when the clocks change', () => {
    const daily = { every: '1d', from: '2026-03-01T09:00', zone: 'Europe/Berlin' }
    // To summer time on March 29, and back on October 25.
    assert.deepEqual(duty(daily, '2026-03-28T12:00Z'), ['a', '2026-03-29T07:00:00.000Z'])
    assert.deepEqual(duty(daily, '2026-03-29T06:59:59.999Z')[0], 'a')
    assert.deepEqual(duty(daily, '2026-03-29T07:00Z'), ['b', '2026-03-30T07:00:00.000Z'])
    assert.deepEqual(duty(daily, '2026-10-25T07:59:59.999Z'), ['a', '2026-10-25T08:00:00.000Z'])
    assert.deepEqual(duty(daily, '2026-10-25T08:00Z')[0], 'b')
  })

  test('passes once through an hour that the clocks show twice, and over one that they skip', () => {
    const night = { every: '1d', from: '2026-03-01T02:30', zone: 'Europe/Berlin' }
    assert.deepEqual(duty(night, '2026-03-29T00:59Z'), ['a', '2026-03-29T01:30:00.000Z'])
    assert.deepEqual(duty(night, '2026-03-29T01:30Z')[0], 'b')
    const turns = ['00:29', '00:30', '01:00', '01:29', '01:30', '12:00'].map(at => duty(night, `2026-10-25T${at}Z`)[0])
    assert.deepEqual(turns, ['a', 'b', 'b', 'b', 'b', 'b'])
    for (const [day, places] of [['2026-03-29', 23], ['2026-10-25', 25]] as const) {
      const hourly = { every: '1h', from: `${day}T00:00`, zone: 'Europe/Berlin', people: Array.from({ length: 24 }, (_, hour) => `${hour}`) }
      const begin = time(`${day}T00:00${day === '2026-03-29' ? '+01:00' : '+02:00'}`)
      const seen = Array.from({ length: places }, (_, hour) => duty(hourly, new Date(begin + hour * 3_600_000).toISOString())[0])
      assert.deepEqual([seen[0], seen.at(-1), [...seen].sort((x, y) => Number(x) - Number(y))], ['0', '23', seen])
    }
  })

  test('is taken over for a time, by the swap that was made last', () => {
    const swaps = [swap('2026-12-01T00:00Z', '2026-12-03T00:00Z', 'x'), swap('2026-12-02T00:00Z', '2026-12-02T12:00Z', 'y')]
    assert.deepEqual(['2026-11-30T12:00Z', '2026-12-01T00:00Z', '2026-12-02T00:00Z', '2026-12-02T12:00Z', '2026-12-03T00:00Z'].map(at => duty(weekly, at, swaps)), [
      ['a', '2026-12-01T00:00:00.000Z'], ['x', '2026-12-02T00:00:00.000Z'], ['y', '2026-12-02T12:00:00.000Z'], ['x', '2026-12-03T00:00:00.000Z'],
      ['a', '2026-12-07T01:00:00.000Z'],
    ])
    assert.deepEqual(duty({ ...weekly, every: '1h' }, '2026-12-01T00:00Z', [swap('2026-12-01T00:00Z', '2026-12-31T00:00Z', 'x')]), ['x', '2026-12-31T00:00:00.000Z'])
  })

  test('is refused where it is malformed, with the name of the field', () => {
    for (const [change, field] of [
      [{ people: [] }, 'people'], [{ people: {} }, 'people'], [{ every: 0 }, 'every'], [{ every: '59m' }, 'every'], [{ every: '2y' }, 'every'], [{ from: 'Monday' }, 'from'],
      [{ from: '2026-11-30T09:00', zone: undefined }, 'from'], [{ from: '2026-02-30T09:00' }, 'from'], [{ zone: 'Mars' }, 'zone'], [{ until: 1 }, 'rotas have no field "until"'],
    ] as const) assert.throws(() => parseRota({ ...weekly, people: ['a'], ...change }), { code: 'bad-request', message: new RegExp(`^${field}`) }, field)
  })
})

describe('people and rotas', () => {
  const people = { 'li-lei': { onebot: 10001, telegram: '777', name: ' 李雷 ' }, 'han-mei': { onebot: 10002, name: null } }
  const rotas = { oncall: { people: ['li-lei', 'han-mei'], every: '1w', from: '2026-11-30T09:00+08:00', zone: 'Asia/Shanghai' } }
  const now = time('2026-12-01T00:00Z')

  async function start(settings: { people?: object, rotas?: object } = {}, stores = new Stores()) {
    const warnings: string[] = []
    await stores.open()
    const roster = new Roster({
      people: { ...people, ...settings.people }, rotas: { ...rotas, ...settings.rotas }, store: stores.get,
      usersOf: name => name === 'used' ? [say('the-name', { name: '"ops"' })] : [], logger: { warn: (line: unknown) => void warnings.push(String(line)) },
    })
    warnings.push(...roster.warnings.map(String))
    return { roster, warnings, stores }
  }

  test('are called where they have an account, once each, and by name elsewhere', async () => {
    const { roster } = await start()
    const lilei = { person: 'li-lei', name: '李雷' }
    assert.deepEqual(roster.whom(['oncall', 'li-lei', 'han-mei', 'gone'], 'onebot', now), [{ ...lilei, userId: '10001' }, { person: 'han-mei', name: 'han-mei', userId: '10002' }])
    assert.deepEqual(roster.whom(['oncall'], 'discord', now), [lilei])
    assert.deepEqual(roster.whom(['oncall'], 'telegram', time('2026-12-07T01:00Z')), [{ person: 'han-mei', name: 'han-mei' }])
    assert.deepEqual(roster.whom(['all'], 'onebot', now), [{ userId: null, name: 'all' }])
    assert.deepEqual([roster.findBy('telegram', '777'), roster.findBy('telegram', '10001')], [lilei, undefined])
    assert.deepEqual(['li-lei', 'han-mei'].map(person => roster.includes(['oncall'], person, now)), [true, false])
    assert.equal(roster.includes(['all'], 'han-mei', now), true)
  })

  test('of the settings are left out where they are malformed, with a warning', async () => {
    const { roster, warnings } = await start({
      people: { 'all': { onebot: 1 }, 'a b': {}, 'x': { onebot: 'all' }, 'y': { onebot: 0 }, 'z': 7, 'v': { 'a:b': 1 }, 'w': { onebot: '1 2' } },
      rotas: { 'none': rotas.oncall, 'li-lei': rotas.oncall, 'far': { ...rotas.oncall, people: ['li-lei', 'x'] } },
    })
    assert.deepEqual([roster.people.list().length, roster.rotas.list().length, warnings.length], [2, 1, 10])
    const reasons = ['all is reserved', 'a name must', 'onebot must', '0 is', 'a person must', 'the accounts', 'the ID', 'none is reserved', 'there is a person', 'people: there']
    for (const [index, reason] of reasons.entries()) {
      assert.match(warnings[index] ?? '', new RegExp(`^${index < 7 ? 'people' : 'rotas'}: ".*" is left out: ${reason}`))
    }
  })

  test('are made and removed while the relay runs, but not those of the settings or in use', async () => {
    const { roster, stores } = await start()
    const rota = { ...rotas.oncall, people: ['wang'] }
    await assert.rejects(roster.rotas.put('night', rota), { code: 'bad-request', message: 'people: there is no person "wang"' })
    assert.equal((await roster.people.put('wang', { onebot: 3 })).isNew, true)
    await roster.rotas.put('night', rota)
    await assert.rejects(roster.people.put('night', {}), /there is a rota of this name/)
    await assert.rejects(roster.rotas.put('wang', rota), /there is a person of this name/)
    await assert.rejects(roster.people.remove('wang'), { code: 'conflict', message: 'this person is used by the rota "night": change that first' })
    for (const work of [roster.people.remove('li-lei'), roster.people.put('li-lei', {})]) await assert.rejects(work, /this person is in the settings of the relay/)
    assert.deepEqual((await start({}, stores)).roster.whom(['night'], 'onebot', now), [{ person: 'wang', userId: '3', name: 'wang' }])
    await roster.people.put('used', {})
    await assert.rejects(roster.people.remove('used'), /used by the name "ops"/)
    await roster.rotas.remove('night')
    await roster.people.remove('wang')
    await assert.rejects(roster.people.remove('wang'), { code: 'not-found', message: 'no such person' })
    assert.deepEqual([roster.has('wang'), roster.has('night'), roster.has('oncall')], [false, false, true])
  })

  test('keep swaps, also of a rota of the settings, until these are over', async () => {
    const { roster, stores } = await start()
    await roster.people.put('wang', {})
    const fields = { from: '2026-12-01T00:00Z', until: '2026-12-02T00:00Z', who: 'wang' }
    await roster.swap('oncall', fields, now)
    await roster.swap('oncall', { ...fields, until: '2026-12-01T12:00:00+00:00', who: 'han-mei' }, now)
    await assert.rejects(roster.people.remove('wang'), /used by the rota "oncall"/)
    const { roster: next } = await start({}, stores)
    assert.deepEqual(['00:00', '12:00'].map(at => next.onDuty('oncall', time(`2026-12-01T${at}Z`))?.who), ['han-mei', 'wang'])
    await next.swap('oncall', { ...fields, until: '2026-12-05T00:00Z' }, time('2026-12-03T00:00Z'))
    assert.equal(next.swapsOf('oncall', now).length, 1)
    for (const [change, error] of [
      [{ who: 'oncall' }, 'who: there is no person "oncall"'], [{ until: fields.from }, 'until must be after from, and ahead'], [{ who: 7 }, 'who must be the name of a person'],
      [{ from: '2026-12-01' }, /^from must be a date-time/], [{ until: 3 }, /^until must be a date-time/], [{ by: 1 }, /no field "by"/],
    ] as const) await assert.rejects(next.swap('oncall', { ...fields, ...change }, now), { code: 'bad-request', message: error })
    await assert.rejects(next.swap('gone', fields, now), { code: 'not-found' })
  })
})
