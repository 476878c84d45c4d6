import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Access } from '../../../src/access/access'
import { parseKeys } from '../../../src/access/keys'
import { MadeKeys } from '../../../src/access/made-keys'
import { MadeTargets } from '../../../src/access/made-targets'
import { Usages } from '../../../src/access/usage'
import { parseDestinations } from '../../../src/message/target'
import { parseNames } from '../../../src/message/names'
import { Stores } from './support'
import { words } from '../../../src/texts/text'

const apiKey = 'the-master-key-of-all'
const fixedKey = 'the-key-of-the-settings'

/** A plugin's keys and targets on a store that is opened later. */
function start(stores = new Stores()) {
  const warnings: string[] = []
  const logger = { warn: (line: unknown) => void warnings.push(String(line)) }
  const usages = new Usages(stores.get)
  const names = new MadeTargets({ fixed: parseNames({ ops: 'group:1' }).names, store: stores.get, logger }, () => false)
  const { keys: fixed } = parseKeys([{ name: 'fixed', key: fixedKey }], apiKey, names, usages)
  const keys = new MadeKeys({ store: stores.get, apiKey, fixed, names, usages, logger })
  const access = new Access(apiKey, fixed, usages, () => keys.keys())
  return {
    stores, warnings, usages, names, keys, access,
    who: (key: string) => access.identify([Buffer.from(key)], '127.0.0.1'),
    find: (name: string) => parseDestinations(name, {}, names).list.map(({ target }) => target.id),
  }
}

type Started = ReturnType<typeof start>

/** One on an open store. */
async function ready(stores?: Stores): Promise<Started> {
  const started = start(stores)
  await started.stores.open()
  return started
}

const row = ({ stores }: Started, table: string, name: string, entry: string): void => {
  stores.present.commit(writer => void writer.run(`REPLACE INTO ${table} VALUES (?, ?)`, name, entry))
}

describe('while the store cannot be read', () => {
  test('a key and a name that may be in it are unknown for its reason, and those of the settings work', async () => {
    const started = start()
    const failure = { code: 'store-down', message: 'the relay is starting' }
    assert.deepEqual([started.who(apiKey).name, started.who(fixedKey).name, started.find('ops')], [null, 'fixed', ['1']])
    assert.throws(() => started.who('some-other-key'), failure)
    assert.throws(() => started.access.verify(() => false, undefined), failure)
    assert.throws(() => started.access.identify([], undefined), { code: 'unauthorized' })
    assert.throws(() => started.find('night'), failure)
    await assert.rejects(started.keys.create({ name: 'ci' }), failure)
    await assert.rejects(started.names.put('night', 'group:2'), failure)
    await started.stores.open()
    assert.throws(() => started.who('some-other-key'), { code: 'unauthorized' })
    assert.throws(() => started.find('night'), { code: 'no-such-target' })
  })

  test('made keys and names wait for it, and are there with the next store', async () => {
    const started = await ready()
    const { key } = await started.keys.create({ name: 'ci' })
    await started.names.put('night', 'group:2')
    started.stores.storage.owner = words('another bot')
    assert.throws(() => started.who(key), { code: 'store-down', message: /another process/ })
    assert.throws(() => started.find('night'), { code: 'store-down' })
    assert.deepEqual([started.keys.list(), started.names.list().map(({ name }) => name)], [[], ['ops']])
    started.stores.storage.owner = undefined
    await started.stores.open()
    assert.deepEqual([started.who(key).name, started.find('night')], ['ci', ['2']])
  })
})

describe('a change', () => {
  test('counts when it is safe from a power cut, and not at all if it could not be written', async () => {
    const started = await ready()
    const { storage } = started.stores
    const { key } = await started.keys.create({ name: 'ci' })
    storage.cut()
    const next = await ready(started.stores)
    assert.equal(next.who(key).name, 'ci')
    storage.isFull = true
    const changes = [next.keys.rotate('ci'), next.keys.create({ name: 'more' }), next.names.put('night', 'group:2'), next.keys.remove('ci')]
    for (const change of changes) await assert.rejects(change, { code: 'storage-full' })
    assert.deepEqual([next.who(key).may('send'), next.keys.list().map(({ name }) => name)], [true, ['ci']])
    storage.isFull = false
    storage.isFlushFailing = true
    await assert.rejects(next.keys.remove('ci'), { code: 'store-down' })
    assert.throws(() => next.who(key), { code: 'store-down' })
  })
})

test('there are a thousand made keys and names at most', async () => {
  const started = await ready()
  await started.keys.create({ name: 'key-0' })
  const { stores: { present } } = started
  present.commit(writer => {
    for (let index = 1; index < 999; index++) writer.run('INSERT INTO keys SELECT ?, entry FROM keys LIMIT 1', `key-${index}`)
    for (let index = 0; index < 999; index++) writer.run('INSERT INTO targets VALUES (?, ?)', `name-${index}`, '"group:2"')
  })
  await started.stores.open()
  await started.keys.create({ name: 'last' })
  await started.names.put('last', 'group:3')
  await assert.rejects(started.keys.create({ name: 'more' }), { code: 'conflict', message: 'there are 1000 keys already: remove one first' })
  await assert.rejects(started.names.put('more', 'group:3'), { code: 'conflict', message: 'no room for another name: there are 1000 already, remove one first' })
  await started.keys.rotate('last')
  await started.names.put('last', 'group:4')
})

test('a row that cannot be read disables its entry alone, is told, and gives way to a new one', async () => {
  const started = await ready()
  const { key } = await started.keys.create({ name: 'good' })
  await started.names.put('night', 'group:2')
  const bad = ['', '[]', '{}', '7', '{"key":"sha256:0","created_at":"2026-11-20T00:00:00.000Z"}', '{"key":"a-key-without-a-time"}']
  for (const [index, entry] of bad.entries()) row(started, 'keys', `bad-${index}`, entry)
  row(started, 'targets', 'day', '"group:"')
  await started.stores.open()
  assert.deepEqual([started.who(key).name, started.find('night'), started.keys.list().length], ['good', ['2'], 1])
  assert.throws(() => started.find('day'), { code: 'no-such-target' })
  assert.equal(started.warnings.length, 7)
  const told = /^(keys: "bad-\d"|targets: "day"), made while the relay ran, cannot be read and does not count: .+; make it anew$/
  for (const line of started.warnings) assert.match(line, told)
  await started.names.put('day', 'group:3')
  await started.keys.create({ name: 'bad-0' })
  await started.stores.open()
  assert.deepEqual([started.find('day'), started.keys.list().map(({ name }) => name)], [['3'], ['good', 'bad-0']])
})

describe('the usage of a key', () => {
  const none = { last: 0, messages: 0, accepted: 0, sent: 0, failed: 0, refused: 0 }
  const counts = ({ access }: Started, name: string | null): object | undefined => access.usage().get(name)

  test('goes on after a restart, from the first use on', async () => {
    const first = await ready()
    const { key } = await first.keys.create({ name: 'ci' })
    first.who(apiKey).note('10.0.0.1')
    first.who(key).note('10.0.0.2')
    first.who(key).spend(3)
    first.who(key).noteRefusal()
    first.who(fixedKey).spend(2)
    first.usages.save()
    const [before] = [counts(first, 'ci')]
    const next = start(first.stores)
    // Counted before the store is open.
    await first.stores.present.close()
    next.who(fixedKey).spend(5)
    next.usages.save()
    await next.stores.open()
    assert.deepEqual([counts(next, 'ci'), counts(next, null)], [before, counts(first, null)])
    assert.deepEqual({ ...counts(next, 'fixed') }, { ...none, messages: 7 })
    next.usages.save()
    assert.deepEqual(counts(await ready(first.stores), 'fixed'), { ...none, messages: 7 })
  })

  test('writes nothing when nothing has changed, and what could not be written later', async () => {
    const { stores, usages, who } = await ready()
    who(apiKey).spend(1)
    stores.storage.isFull = true
    assert.throws(() => usages.save(), { code: 'storage-full' })
    stores.storage.isFull = false
    const { end } = stores.storage.folder
    usages.save()
    usages.save()
    assert.equal(stores.storage.folder.end - end, 1)
  })

  test('is that of all its keys, and is forgotten with the key', async () => {
    const started = await ready()
    const { key } = await started.keys.create({ name: 'ci' })
    started.who(key).spend(1)
    const { key: second } = await started.keys.rotate('ci', 60)
    started.who(key).spend(1)
    started.who(second).spend(1)
    started.usages.save()
    assert.deepEqual(counts(started, 'ci'), { ...none, messages: 3 })
    await started.keys.remove('ci')
    started.usages.save()
    await started.keys.create({ name: 'ci' })
    assert.deepEqual(counts(started, 'ci'), none)
    assert.deepEqual(counts(await ready(started.stores), 'ci'), none)
  })
})
