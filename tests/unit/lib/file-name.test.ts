import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { safeName } from '../../../src/lib/file-name'
import { Random } from '../../faults/random'

const bytes = (text: string) => Buffer.byteLength(text)

/** What a hostile or careless client may call its file, and what it is stored as. */
const table: [given: string, stored: string][] = [
  ['report.pdf', 'report.pdf'], ['发票 2024.pdf', '发票 2024.pdf'], ['C:\\Users\\me\\build.log', 'build.log'], ['../../etc/passwd', 'passwd'],
  ['..\\..\\boot.ini', 'boot.ini'], ['a/b\\c/d.txt', 'd.txt'], ['dir/', 'file'], ['', 'file'], ['.', 'file'], ['..', 'file'], ['...', 'file'],
  ['???', 'file'], ['\u202E\u200B', 'file'], ['.env', 'env'], ['.part', 'part'], ['  a.txt. . ', 'a.txt'],
  ['a%00.png', 'a00.png'], ['a\0.png', 'a.png'],
  ['a\r\nSet-Cookie: b.png', 'aSet-Cookie b.png'], ['50%#?<>:"|*.txt', '50.txt'], ['photo\u202Egpj.exe', 'photogpj.exe'],
  ['a\u200E\u200F\u202A\u202B\u202C\u202D\u202Eb\u2066\u2067\u2068\u2069.txt', 'ab.txt'],
  ['a\u200B\u200C\u200D\u2060\uFEFF\u2028\u2029\u0085b.txt', 'ab.txt'], ['a\uD800b\uDC00.txt', 'ab.txt'], ['😀.png', '😀.png'],
  ['cafe\u0301.txt', 'caf\u00E9.txt'], ['CON', '_CON'], ['nul.txt', '_nul.txt'], ['com1.tar.gz', '_com1.tar.gz'], ['LPT³.doc', '_LPT³.doc'],
  ['aux .txt', '_aux .txt'], ['con:', '_con'], ['console.log', 'console.log'], ['com10.txt', 'com10.txt'], ['file.txt:stream', 'file.txtstream'],
  ['.message-relay-0b1f7d6e.part', 'message-relay-0b1f7d6e.part'],
]

describe('safeName', () => {
  test('stores hostile and careless names as safe ones', () => {
    for (const [given, stored] of table) assert.equal(safeName(given), stored, JSON.stringify(given))
  })

  test('cuts a long name to 120 bytes and keeps its extension', () => {
    for (const extension of ['.jpeg', '.tar.gz', '.发票']) {
      for (const character of ['a', 'é', '汉', '😀']) {
        const stored = safeName(character.repeat(200) + extension)
        assert.ok(stored.endsWith(character + extension), stored)
        assert.ok(bytes(stored) <= 120 && bytes(stored) > 120 - bytes(character), `${bytes(stored)} bytes`)
      }
    }
  })

  test('leaves a name of exactly 120 bytes as it is', () => {
    const name = `${'a'.repeat(116)}.txt`
    assert.equal(safeName(name), name)
    assert.equal(bytes(safeName(`a${name}`)), 120)
  })

  test('treats an overlong extension as part of the name', () => {
    assert.equal(safeName(`a.${'x'.repeat(300)}`), `a.${'x'.repeat(118)}`)
    assert.equal(safeName(`${'a'.repeat(200)}.${'b'.repeat(62)}.gz`), `${'a'.repeat(117)}.gz`)
    // A blank ends what could be an extension: this is a sentence.
    assert.equal(safeName(`${'a'.repeat(150)}. And more`), 'a'.repeat(120))
    assert.equal(safeName(`${'a'.repeat(1_000_000)}.tar.gz`), `${'a'.repeat(113)}.tar.gz`)
  })

  test('names a reserved device apart even where the cut has brought it about', () => {
    assert.equal(safeName(`CON${' '.repeat(200)}x.txt`), '_CON.txt')
    const stored = safeName(`CON.${'x'.repeat(116)}`)
    assert.equal(stored, `_CON.${'x'.repeat(115)}`)
  })

  test('changes nothing more when applied twice, and never begins or ends with a dot or a blank', () => {
    const names = [...table.map(([given]) => given), ...randomNames(3000)]
    for (const name of names) {
      const stored = safeName(name)
      assert.equal(safeName(stored), stored, JSON.stringify(name))
      assert.ok(bytes(stored) <= 120 && stored !== '', JSON.stringify(name))
      assert.doesNotMatch(stored, /[/\\%#?<>:"|*\p{Cc}\p{Cf}\p{Cs}]|^[.\s]|[.\s]$/u, JSON.stringify(name))
    }
  })

  test('takes time in proportion to the length of a hostile name', () => {
    for (const hostile of ['.'.repeat(1e6) + 'x', `x${'. '.repeat(5e5)}x`, `x${'.a'.repeat(5e5)}`, `a${' '.repeat(1e6)}b`]) {
      assert.ok(bytes(safeName(hostile)) <= 120)
    }
  })
})

function randomNames(count: number): string[] {
  const alphabet = ['a', 'Z', '.', '.', ' ', '\u0301', '\u3000', '汉', '😀', '\uD83D', 'con', 'nul', '%', '/', '\u202E', '\u1100', '\u1161', 'gz', '_']
  const random = new Random(1)
  return Array.from({ length: count }, () => Array.from({ length: random.between(0, 159) }, () => random.pick(alphabet)).join(''))
}
