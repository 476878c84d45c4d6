import assert from 'node:assert/strict'
import { mkdir, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { temporaryName } from '../../../src/uploads/names'
import { UploadStore } from '../../../src/uploads/store'
import { defaultRetention, isExpired } from '../../../src/uploads/sweep'
import { temporaryDirectory, tree } from '../../support/uploads'

const running = new AbortController().signal
const now = Date.now()
const hour = 60 * 60 * 1000
const uuid = (digit: number) => `${String(digit).repeat(8)}-1111-4111-8111-111111111111`

/** A store with nothing in it, and a way to put something of a certain age there. */
async function createStore(t: TestContext) {
  const directory = join(await temporaryDirectory(t), 'uploads')
  await mkdir(directory)
  async function put(path: string, age: number): Promise<string> {
    const full = join(directory, path)
    await mkdir(dirname(full), { recursive: true })
    await writeFile(full, '')
    await makeOlder(full, age)
    return path
  }
  async function makeOlder(path: string, age: number): Promise<void> {
    await utimes(path, (now - age) / 1000, (now - age) / 1000)
  }
  return { directory, store: new UploadStore(directory), put, makeOlder }
}

describe('a sweep', () => {
  test('removes files older than 24 hours with their folders, and keeps the others', async t => {
    const { directory, store, put } = await createStore(t)
    await put(`${uuid(1)}/old`, defaultRetention + 1000)
    await put(`${uuid(2)}/new`, defaultRetention - 1000)
    await put(`${uuid(3)}/old`, 10 * defaultRetention)
    await put(`${uuid(3)}/new`, 0)
    assert.deepEqual(await store.sweep(now), { removed: 2, kept: 2, failed: 0 })
    assert.deepEqual(await tree(directory), [uuid(2), `${uuid(2)}/new`, uuid(3), `${uuid(3)}/new`])
  })

  test('goes by the time of the file, not of its folder', async t => {
    const { directory, store, put, makeOlder } = await createStore(t)
    await put(`${uuid(1)}/new`, 0)
    await makeOlder(join(directory, uuid(1)), 10 * defaultRetention)
    assert.deepEqual(await store.sweep(now), { removed: 0, kept: 1, failed: 0 })
  })

  test('touches nothing of others', async t => {
    const { directory, store, put, makeOlder } = await createStore(t)
    const old = 10 * defaultRetention
    const foreign = [
      'file', '.hidden', 'folder/file', `${uuid(1)}x/file`, 'not-a-uuid/file', uuid(2), `${uuid(3)}/inner/file`, '11111111-1111-1111-8111-111111111111/version-1',
      `${uuid(4).replace('1', 'A')}/upper-case`, `x${temporaryName(uuid(5))}`, `${temporaryName(uuid(5))}x`, '.message-relay-other.part', `${temporaryName(uuid(6))}/in-a-folder`,
    ]
    for (const path of foreign) {
      await put(path, old)
      await makeOlder(dirname(join(directory, path)), old)
    }
    const before = await tree(directory)
    assert.deepEqual(await store.sweep(now), { removed: 0, kept: 0, failed: 0 })
    assert.deepEqual(await tree(directory), before)
  })

  test('follows no links and leaves them where they are', async t => {
    const { directory, store, put } = await createStore(t)
    const outside = join(dirname(directory), 'outside')
    await mkdir(join(outside, 'folder'), { recursive: true })
    await writeFile(join(outside, 'folder', 'file'), '')
    await utimes(join(outside, 'folder', 'file'), 1, 1)
    await put(`${uuid(2)}/old`, 2 * defaultRetention)
    await symlink(join(outside, 'folder'), join(directory, uuid(1)))
    await symlink(join(outside, 'folder', 'file'), join(directory, uuid(2), 'link'))
    await symlink(join(outside, 'folder', 'file'), join(directory, temporaryName(uuid(3))))
    assert.deepEqual(await store.sweep(now + 10 * defaultRetention), { removed: 1, kept: 0, failed: 0 })
    assert.deepEqual(await tree(outside), ['folder', 'folder/file'])
    assert.deepEqual(await tree(directory), [temporaryName(uuid(3)), uuid(1), `${uuid(1)}/file`, uuid(2), `${uuid(2)}/link`])
  })

  test('removes what a crashed upload left, once it is an hour old', async t => {
    const { directory, store, put, makeOlder } = await createStore(t)
    await put(temporaryName(uuid(1)), hour + 1000)
    await put(temporaryName(uuid(2)), hour - 1000)
    await mkdir(join(directory, uuid(3)))
    await makeOlder(join(directory, uuid(3)), hour + 1000)
    await mkdir(join(directory, uuid(4)))
    await makeOlder(join(directory, uuid(4)), hour - 1000)
    assert.deepEqual(await store.sweep(now), { removed: 1, kept: 0, failed: 0 })
    assert.deepEqual(await tree(directory), [temporaryName(uuid(2)), uuid(4)])
  })

  test('never touches a running upload', async t => {
    const { directory, store } = await createStore(t)
    const upload = store.begin()
    upload.begin('a')
    upload.end()
    await upload.flush(running)
    assert.deepEqual(await store.sweep(now + 100 * defaultRetention), { removed: 0, kept: 0, failed: 0 })
    const [id = ''] = await upload.commit(running)
    assert.equal((await store.resolve(id)).name, 'a')
    assert.deepEqual(await store.sweep(now + 100 * defaultRetention), { removed: 1, kept: 0, failed: 0 })
    assert.deepEqual(await tree(directory), [])
  })

  test('keeps a held file until its last hold ends', async t => {
    const { store, put } = await createStore(t)
    const id = await put(`${uuid(1)}/a`, 2 * defaultRetention)
    const first = store.hold(id)
    const second = store.hold(id)
    assert.equal((await store.sweep(now)).kept, 1)
    first()
    first()
    assert.equal((await store.sweep(now)).kept, 1)
    assert.ok(await store.resolve(id))
    second()
    assert.equal((await store.sweep(now)).removed, 1)
    second()
  })

  test('finds nothing where there is no directory', async t => {
    const { directory, store } = await createStore(t)
    await rm(directory, { recursive: true })
    assert.deepEqual(await store.sweep(now), { removed: 0, kept: 0, failed: 0 })
  })

  test('reports what fails and goes on', async t => {
    const { directory } = await createStore(t)
    await rm(directory, { recursive: true })
    await writeFile(directory, 'no directory')
    const errors: unknown[] = []
    const result = await new UploadStore(directory).sweep(now, { onError: error => errors.push(error) })
    assert.deepEqual(result, { removed: 0, kept: 0, failed: 1 })
    assert.equal(errors.length, 1)
    assert.ok(errors[0] instanceof Error && errors[0].message.includes('ENOTDIR'))
  })

  test('takes no notice of things that vanish meanwhile', async t => {
    const { directory, store, put } = await createStore(t)
    for (let index = 0; index < 200; index++) await put(`${String(index).padStart(8, '0')}-1111-4111-8111-111111111111/a`, 2 * defaultRetention)
    const other = new UploadStore(directory)
    const errors: unknown[] = []
    const options = { onError: (error: unknown) => errors.push(error) }
    const results = await Promise.all([store.sweep(now, options), other.sweep(now, options)])
    assert.deepEqual(errors, [])
    assert.equal(results.reduce((sum, { removed }) => sum + removed, 0), 200)
    assert.deepEqual(await tree(directory), [])
  })

  test('runs once at a time and then again', async t => {
    const { store, put } = await createStore(t)
    await put(`${uuid(1)}/a`, 2 * defaultRetention)
    const first = store.sweep(now)
    assert.equal(store.sweep(now), first)
    assert.equal((await first).removed, 1)
    assert.equal((await store.sweep(now)).removed, 0)
  })

  test('ends early when it is told to', async t => {
    const { directory, store, put } = await createStore(t)
    for (let digit = 1; digit < 9; digit++) await put(`${uuid(digit)}/a`, 2 * defaultRetention)
    const stop = new AbortController()
    const sweeping = store.sweep(now, { signal: stop.signal })
    stop.abort()
    assert.deepEqual(await sweeping, { removed: 0, kept: 0, failed: 0 })
    assert.equal((await tree(directory)).length, 16)
  })
})

describe('isExpired', () => {
  test('keeps a file for exactly 24 hours unless told otherwise', () => {
    assert.equal(defaultRetention, 86_400_000)
    assert.ok(!isExpired(1_000, 1_000 + 86_400_000))
    assert.ok(isExpired(1_000, 1_001 + 86_400_000))
    assert.ok(isExpired(1_000, 1_011, 10))
  })

  test('keeps a file from the future', () => {
    assert.ok(!isExpired(2_000, 1_000))
  })
})
