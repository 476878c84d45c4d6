import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { matchCommand } from '../../../src/commands/matcher'

const defaults = { prefix: '#', length: 4 }

describe('a command', () => {
  test('is a prefix, a name of fixed length, a blank and the rest', () => {
    assert.deepEqual(matchCommand('#ping hello', defaults), { command: 'ping', content: 'hello' })
  })

  test('keeps its content letter for letter', () => {
    assert.deepEqual(matchCommand('#ping   a \n\tb  ', defaults), { command: 'ping', content: '  a \n\tb  ' })
  })

  test('may have no content', () => {
    assert.deepEqual(matchCommand('#ping ', defaults), { command: 'ping', content: '' })
  })

  test('takes a prefix of several characters, or none', () => {
    assert.deepEqual(matchCommand('!!do x', { prefix: '!!', length: 2 }), { command: 'do', content: 'x' })
    assert.deepEqual(matchCommand('ping x', { prefix: '', length: 4 }), { command: 'ping', content: 'x' })
    assert.equal(matchCommand('!do x', { prefix: '!!', length: 2 }), undefined)
  })

  test('counts code points, not UTF-16 units', () => {
    assert.deepEqual(matchCommand('#🚀🚀🚀🚀 x', defaults), { command: '🚀🚀🚀🚀', content: 'x' })
    assert.equal(matchCommand('#🚀🚀 x', defaults), undefined)
    assert.deepEqual(matchCommand('🤖𠮷a 部署', { prefix: '🤖', length: 2 }), { command: '𠮷a', content: '部署' })
  })

  test('counts a combining mark, a joiner and half a surrogate pair as one each', () => {
    assert.deepEqual(matchCommand('#e\u0301ab x', defaults), { command: 'e\u0301ab', content: 'x' })
    assert.deepEqual(matchCommand('#👩\u200d💻a x', defaults), { command: '👩\u200d💻a', content: 'x' })
    assert.deepEqual(matchCommand('#\ud83dabc x', defaults), { command: '\ud83dabc', content: 'x' })
  })

  test('may hold any character in its name, by the letter of the document', () => {
    assert.deepEqual(matchCommand('#a b  x', defaults), { command: 'a b ', content: 'x' })
    assert.deepEqual(matchCommand('#a\nb# x', defaults), { command: 'a\nb#', content: 'x' })
  })
})

describe('no command', () => {
  const texts = {
    'nothing': '',
    'the prefix alone': '#',
    'a name too short': '#pin x',
    'a name too long': '#pings x',
    'a text that ends within the name': '#pi',
    'a text that ends with the name': '#ping',
    'a tab for the blank': '#ping\tx',
    'a line break for the blank': '#ping\nx',
    'an ideographic space for the blank': '#ping\u3000x',
    'a no-break space for the blank': '#ping\u00a0x',
    'another prefix': '＃ping x',
    'a blank before the prefix': ' #ping x',
    'the prefix further on': 'x #ping x',
    'a name and a blank before the prefix': 'xping #',
  }
  for (const [name, text] of Object.entries(texts)) {
    test(name, () => {
      assert.equal(matchCommand(text, defaults), undefined)
    })
  }
})
