import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isAllowed, parseExtensions } from '../../../src/uploads/extensions'

describe('parseExtensions', () => {
  test('ignores case, blanks, leading dots, empty entries and repetitions', () => {
    assert.deepEqual(parseExtensions(' .PNG, jpg ,,..gif, tar . gz ,png,'), ['png', 'jpg', 'gif', 'tar.gz'])
  })

  test('reads a blank list as no restriction', () => {
    for (const list of ['', ' ', ',', ' . , ']) assert.deepEqual(parseExtensions(list), [])
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
    const list = parseExtensions('png,tar.gz')
    assert.ok(isAllowed('a.tar.gz', list))
    for (const name of ['a.gz', 'a.xtar.gz', 'a.tar', 'png', 'a.apng', 'a.png.exe', 'tar.gz']) assert.ok(!isAllowed(name, list), name)
  })

  test('takes the last extension of several', () => {
    assert.ok(isAllowed('a.tar.gz', ['gz']))
  })
})
