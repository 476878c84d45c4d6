import assert from 'node:assert/strict'
import { mkdir, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryName } from '../../../src/uploads/names'
import { retention, UploadStore } from '../../../src/uploads/store'
import { temporaryFolder } from '../../support/folder'
import { tree } from '../../support/uploads'

const now = Date.now()
const hour = 60 * 60 * 1000
const uuid = (digit: number) => `${String(digit).repeat(8)}-1111-4111-8111-111111111111`

/** A store with nothing in it, and a way to put something of a certain age there. */
async function createStore() {
  const directory = join(temporaryFolder(), 'uploads')
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
  test('removes files older than 24 hours with their folders, however old these are, and keeps the others', async () => {
    const { directory, store, put, makeOlder } = await createStore()
    await put(`${uuid(1)}/old`, retention + 1000)
    await put(`${uuid(2)}/new`, retention - 1000)
    await put(`${uuid(3)}/old`, 10 * retention)
    await put(`${uuid(3)}/new`, -1000)
    await makeOlder(join(directory, uuid(2)), 10 * retention)
    assert.deepEqual(await store.sweep(now), { removed: 2, errors: [] })
    assert.deepEqual(await tree(directory), [uuid(2), `${uuid(2)}/new`, uuid(3), `${uuid(3)}/new`])
  })

  test('touches nothing of others', async () => {
    const { directory, store, put, makeOlder } = await createStore()
    const old = 10 * retention
    const foreign = [
      'file', '.hidden', 'folder/file', `${uuid(1)}x/file`, 'not-a-uuid/file', uuid(2), `${uuid(3)}/inner/file`, '11111111-1111-1111-8111-111111111111/version-1',
      `${uuid(4).replace('1', 'A')}/upper-case`, `x${temporaryName(uuid(5))}`, `${temporaryName(uuid(5))}x`, '.message-relay-other.part', `${temporaryName(uuid(6))}/in-a-folder`,
    ]
    for (const path of foreign) {
      await put(path, old)
      await makeOlder(dirname(join(directory, path)), old)
    }
    const before = await tree(directory)
    assert.deepEqual(await store.sweep(now), { removed: 0, errors: [] })
    assert.deepEqual(await tree(directory), before)
  })

  test('follows no links and leaves them where they are', async () => {
    const { directory, store, put } = await createStore()
    const outside = join(dirname(directory), 'outside')
    await mkdir(join(outside, 'folder'), { recursive: true })
    await writeFile(join(outside, 'folder', 'file'), '')
    await utimes(join(outside, 'folder', 'file'), 1, 1)
    await put(`${uuid(2)}/old`, 2 * retention)
    await symlink(join(outside, 'folder'), join(directory, uuid(1)))
    await symlink(join(outside, 'folder', 'file'), join(directory, uuid(2), 'link'))
    await symlink(join(outside, 'folder', 'file'), join(directory, temporaryName(uuid(3))))
    assert.deepEqual(await store.sweep(now + 10 * retention), { removed: 1, errors: [] })
    assert.deepEqual(await tree(outside), ['folder', 'folder/file'])
    assert.deepEqual(await tree(directory), [temporaryName(uuid(3)), uuid(1), `${uuid(1)}/file`, uuid(2), `${uuid(2)}/link`])
  })

  test('removes what a crashed upload left, once it is an hour old', async () => {
    const { directory, store, put, makeOlder } = await createStore()
    await put(temporaryName(uuid(1)), hour + 1000)
    await put(temporaryName(uuid(2)), hour - 1000)
    await mkdir(join(directory, uuid(3)))
    await makeOlder(join(directory, uuid(3)), hour + 1000)
    await mkdir(join(directory, uuid(4)))
    await makeOlder(join(directory, uuid(4)), hour - 1000)
    assert.deepEqual(await store.sweep(now), { removed: 1, errors: [] })
    assert.deepEqual(await tree(directory), [temporaryName(uuid(2)), uuid(4)])
  })

  test('keeps a held file until its last hold ends', async () => {
    const { store, put } = await createStore()
    const id = await put(`${uuid(1)}/a`, 2 * retention)
    const first = store.hold(id)
    const second = store.hold(id)
    assert.equal((await store.sweep(now)).removed, 0)
    first()
    first()
    assert.equal((await store.sweep(now)).removed, 0)
    assert.ok(await store.resolve(id))
    second()
    assert.equal((await store.sweep(now)).removed, 1)
    second()
  })

  test('finds nothing where there is no directory, and reports what fails', async () => {
    const { directory, store } = await createStore()
    await rm(directory, { recursive: true })
    assert.deepEqual(await store.sweep(now), { removed: 0, errors: [] })
    await writeFile(directory, 'no directory')
    const { removed, errors } = await store.sweep(now)
    assert.equal(removed, 0)
    assert.deepEqual(errors.map(String).map(text => /E[A-Z]+/.exec(text)?.[0]), ['ENOTDIR'])
  })

  test('takes no notice of things that vanish meanwhile', async () => {
    const { directory, store, put } = await createStore()
    for (let index = 0; index < 200; index++) await put(`${String(index).padStart(8, '0')}-1111-4111-8111-111111111111/a`, 2 * retention)
    const other = new UploadStore(directory)
    const results = await Promise.all([store.sweep(now), other.sweep(now)])
    assert.deepEqual(results.flatMap(({ errors }) => errors), [])
    assert.equal(results.reduce((sum, { removed }) => sum + removed, 0), 200)
    assert.deepEqual(await tree(directory), [])
  })

  test('ends early when it is told to', async () => {
    const { directory, store, put } = await createStore()
    for (let digit = 1; digit < 9; digit++) await put(`${uuid(digit)}/a`, 2 * retention)
    const stop = new AbortController()
    const sweeping = store.sweep(now, stop.signal)
    stop.abort()
    assert.deepEqual(await sweeping, { removed: 0, errors: [] })
    assert.equal((await tree(directory)).length, 16)
  })
})
