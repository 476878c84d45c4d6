import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { safeName } from '../../../src/lib/file-name'
import { isAllowed, isFolderName, isTemporaryName, parseExtensions, parseFileId, temporaryName } from '../../../src/uploads/names'

const uuid = '0b1f7d6e-1d3c-4b52-8f3c-0a2b4c6d8e0f'

describe('names on disk', () => {
  test('of temporary files are told from those of all others, also of uploaded ones', () => {
    const name = temporaryName(uuid)
    assert.ok(isTemporaryName(name))
    for (const other of [safeName(name), `${name}x`, `x${name}`, temporaryName(uuid.toUpperCase()), uuid]) {
      assert.ok(!isTemporaryName(other), other)
    }
  })

  test('of folders are UUIDs of version 4 in lower case', () => {
    assert.ok(isFolderName(uuid))
    for (const other of [uuid.toUpperCase(), uuid.replace('-4', '-1'), `${uuid} `, '']) assert.ok(!isFolderName(other), other)
  })

  test('make a file ID, and nothing that was not cleaned does', () => {
    assert.deepEqual(parseFileId(`${uuid}/a b.png`), { folder: uuid, name: 'a b.png' })
    for (const name of ['', '.', '..', 'a/b', 'a\\b', 'a.', ' a', 'nul', 'a%2e']) assert.equal(parseFileId(`${uuid}/${name}`), undefined, name)
    for (const id of ['a.png', `/${uuid}/a.png`, `x/a.png`]) assert.equal(parseFileId(id), undefined, id)
  })
})

describe('parseExtensions', () => {
  test('ignores case, blanks, leading dots, empty entries and repetitions', () => {
    assert.deepEqual(parseExtensions([' .PNG', ' jpg ', '', '..gif', ' tar . gz ', 'png', '']), ['png', 'jpg', 'gif', 'tar.gz'])
    assert.deepEqual(parseExtensions(['png,.jpg', 'gif']), ['png', 'jpg', 'gif'])
  })

  test('reads a blank list as no restriction', () => {
    for (const list of [[], [''], [' ', ''], [' . , ']]) assert.deepEqual(parseExtensions(list), [])
  })
})

describe('isAllowed', () => {
  test('allows every name when the list is empty', () => {
    for (const name of ['a.exe', 'a', 'file']) assert.ok(isAllowed(name, []))
  })

  test('ignores the case of the name', () => {
    assert.ok(isAllowed('A.PnG', ['png']))
  })

  test('asks for the whole extension', () => {
    const list = parseExtensions(['png', 'tar.gz'])
    assert.ok(isAllowed('a.tar.gz', list))
    for (const name of ['a.gz', 'a.xtar.gz', 'a.tar', 'png', 'a.apng', 'a.png.exe', 'tar.gz']) assert.ok(!isAllowed(name, list), name)
  })

  test('takes the last extension of several', () => {
    assert.ok(isAllowed('a.tar.gz', ['gz']))
  })
})
