import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fs, { mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { RelayError } from '../../../src/errors'
import { UploadStore } from '../../../src/uploads/store'
import type { Upload } from '../../../src/uploads/upload'
import { temporaryFolder } from '../../support/folder'
import { tree } from '../../support/uploads'

/** A store in a directory that does not exist yet, next to which a test may put things. */
function createStore() {
  const directory = join(temporaryFolder(), 'uploads')
  return { directory, store: new UploadStore(directory) }
}

/** Stores files without a request, and gives their IDs. */
function put(store: UploadStore, ...names: string[]): Promise<string[]> {
  return Promise.all(names.map(name => save(store, `content of ${name}`, name)))
}

async function save(store: UploadStore, data: Buffer | string, name: string): Promise<string> {
  const [id = ''] = await store.write(upload => void upload.open(name).end(data))
  return id
}

async function putOne(store: UploadStore, name: string) {
  const [id = ''] = await put(store, name)
  return { id, folder: id.slice(0, 36) }
}

function isMissing(error: unknown): boolean {
  assert.ok(error instanceof RelayError)
  assert.equal(error.code, 'file-not-found')
  assert.doesNotMatch(error.message, /\//)
  return true
}

describe('resolve', () => {
  test('gives path, name and size of a stored file, and nothing of one that is gone, nor of any before the first upload', async () => {
    const { directory, store } = createStore()
    await assert.rejects(store.resolve('0b1f7d6e-1d3c-4b52-8f3c-0a2b4c6d8e0f/a'), isMissing)
    assert.deepEqual(await tree(dirname(directory)), [])
    const { id, folder } = await putOne(store, '发票 1.pdf')
    assert.deepEqual(await store.resolve(id), { id, path: join(directory, id), name: '发票 1.pdf', size: 23 })
    const link = join(dirname(directory), 'link')
    await symlink(directory, link)
    assert.equal((await new UploadStore(link).resolve(id)).path, join(link, id), 'the directory may be a link itself')
    await rm(join(directory, folder), { recursive: true })
    await assert.rejects(store.resolve(id), isMissing)
  })

  test('finds nothing outside, whatever the ID', async () => {
    const { directory, store } = createStore()
    const { id, folder } = await putOne(store, 'a.txt')
    await writeFile(join(dirname(directory), 'secret'), '')
    await writeFile(join(directory, 'foreign'), '')
    await mkdir(join(directory, 'foreign-folder'))
    await writeFile(join(directory, 'foreign-folder', 'a.txt'), '')
    await mkdir(join(directory, folder, 'inner'))
    await writeFile(join(directory, folder, 'inner', 'a.txt'), '')
    const ids = [
      '', '/', '.', '..', 'secret', 'foreign', 'foreign-folder/a.txt', '../secret', `${folder}/../../secret`, `${folder}/..`, `${folder}/.`,
      `${folder}/`, folder, `${folder}//a.txt`, `${folder}/./a.txt`, `${folder}\\a.txt`, `./${id}`, `/${id}`, ` ${id}`, `${id}/`, `${id}\0`, `${id} `,
      `${id}.`, `${folder}/inner`, `${folder}/inner/a.txt`, join(directory, id), folder.toUpperCase() + '/a.txt', `${folder}/a.txt/..`, `${folder}/${'a'.repeat(5000)}`,
      `${folder}/a%2etxt`, `file://${join(directory, id)}`,
    ]
    for (const wrong of ids) await assert.rejects(store.resolve(wrong), isMissing, JSON.stringify(wrong))
    assert.ok(await store.resolve(id))
  })

  test('follows no link below the directory', async () => {
    const { directory, store } = createStore()
    const { id, folder } = await putOne(store, 'a.txt')
    const outside = join(dirname(directory), 'outside')
    const linked = '11111111-1111-4111-8111-111111111111'
    await mkdir(outside)
    await writeFile(join(outside, 'secret'), '')
    await symlink(join(outside, 'secret'), join(directory, folder, 'link-out'))
    await symlink(join(directory, id), join(directory, folder, 'link-in'))
    await symlink('nowhere', join(directory, folder, 'dangling'))
    await symlink('circle', join(directory, folder, 'circle'))
    await symlink(outside, join(directory, linked))
    for (const wrong of [`${folder}/link-out`, `${folder}/link-in`, `${folder}/dangling`, `${folder}/circle`, `${linked}/secret`]) {
      await assert.rejects(store.resolve(wrong), isMissing, wrong)
    }
  })
})

describe('digest', () => {
  const sha256 = (content: string): string => createHash('sha256').update(content).digest('hex')

  test('is that of all the content, whatever the ID', async () => {
    const { directory, store } = createStore()
    const [first = '', second = '', large = ''] = await put(store, 'a', 'a', 'large')
    await writeFile(join(directory, large), 'x'.repeat(1_000_000))
    for (const id of [first, second]) assert.equal(await store.hash(id), sha256('content of a'))
    assert.equal(await store.hash(large), sha256('x'.repeat(1_000_000)))
  })

  test('is unknown where there is no such file, and behind a link', async () => {
    const { directory, store } = createStore()
    const { id } = await putOne(store, 'a')
    await rm(join(directory, id))
    for (const gone of [id, '../a']) assert.equal(await store.hash(gone), undefined)
    await writeFile(join(dirname(directory), 'secret'), 'secret')
    await symlink(join(dirname(directory), 'secret'), join(directory, id))
    assert.equal(await store.hash(id), undefined)
  })
})

describe('an upload', () => {
  const names = ['a', 'b', 'c']

  async function fill(upload: Upload): Promise<void> {
    for (const name of names) upload.open(name).end('content')
    await upload.written()
  }

  test('shows no file before all are written', async () => {
    const { directory, store } = createStore()
    let before: string[] = []
    const ids = await store.write(async upload => {
      await fill(upload)
      before = await tree(directory)
    })
    assert.equal(before.length, 3)
    for (const name of before) assert.match(name, /^\.message-relay-[0-9a-f-]{36}\.part$/)
    assert.deepEqual(ids.map(id => id.slice(37)), names)
    assert.deepEqual(await tree(directory), ids.flatMap(id => [id.slice(0, 36), id]).sort())
  })

  test('waits a moment for another program that has the new file open, as on Windows, and no longer', async t => {
    const { directory, store } = createStore()
    const { rename } = fs
    let failures = 3
    t.mock.method(fs, 'rename', (from: string, to: string) => (
      failures-- > 0 ? Promise.reject(Object.assign(new Error('not now'), { code: 'EPERM' })) : rename(from, to)
    ))
    const { id } = await putOne(store, 'a.txt')
    assert.equal((await store.resolve(id)).size, 16)
    failures = Infinity
    await assert.rejects(putOne(store, 'b.txt'), { code: 'EPERM' })
    assert.deepEqual(await tree(directory), [id.slice(0, 36), id])
  })

  test('leaves nothing behind when it is interrupted at any step', async () => {
    const { directory, store } = createStore()
    let steps = 0
    for (let isDone = false; !isDone; steps++) {
      // Counts the places where an interruption is noticed, and comes at each of them in turn.
      let left = steps
      const signal = Object.assign(new AbortController().signal, { throwIfAborted: () => {
        if (left-- === 0) throw new Error('interrupted')
      } })
      isDone = await store.write(fill, signal).then(() => true, (error: unknown) => {
        assert.ok(error instanceof Error && error.message === 'interrupted')
        return false
      })
      if (!isDone) assert.deepEqual(await tree(directory), [], `at step ${steps}`)
    }
    assert.equal(steps, names.length + 2)
    assert.equal((await tree(directory)).length, 6)
  })

  test('leaves nothing behind when a later file cannot be named', async () => {
    const { directory, store } = createStore()
    await assert.rejects(store.write(async upload => {
      await fill(upload)
      await rm(join(directory, (await tree(directory))[1] ?? ''))
    }), { code: 'ENOENT' })
    assert.deepEqual(await tree(directory), [])
  })
})

describe('write', () => {
  test('stores bytes and text under a safe name, for the owner only', async () => {
    const { directory, store } = createStore()
    const [first, second] = [await save(store, Buffer.of(0, 255), '../a%.bin'), await save(store, '内容', '内容.txt')]
    assert.match(first, /^[0-9a-f-]{36}\/a\.bin$/)
    assert.deepEqual(await readFile(join(directory, first)), Buffer.of(0, 255))
    assert.equal(await readFile(join(directory, second), 'utf8'), '内容')
    assert.deepEqual(await tree(directory), [first, second].flatMap(id => [id.slice(0, 36), id]).sort())
    if (process.platform !== 'win32') assert.equal((await stat(join(directory, first))).mode & 0o777, 0o600)
  })

  test('rejects, and leaves nothing behind, when the file cannot be written', async () => {
    const { directory, store } = createStore()
    await writeFile(directory, 'in the way')
    await assert.rejects(save(store, 'a', 'a'), { code: 'EEXIST' })
    assert.deepEqual(await tree(dirname(directory)), ['uploads'])
  })
})

test('remove takes a file and its folder, and nothing else whatever the ID', async () => {
  const { directory, store } = createStore()
  const [first = '', second = ''] = await put(store, 'a', 'b')
  for (const id of ['', '..', '../uploads', `${second.slice(0, 36)}/../x`, second.slice(0, 36), `${first.slice(0, 35)}0/x`]) await store.remove(id)
  await store.remove(first)
  await store.remove(first)
  assert.deepEqual(await tree(directory), [second.slice(0, 36), second])
})
