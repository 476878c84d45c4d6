import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { messageText } from '../../../../src/platform/onebot/message'

const text = (content: unknown) => ({ type: 'text', data: { text: content } })
const at = (qq: unknown) => ({ type: 'at', data: { qq } })
const image = { type: 'image', data: { file: 'a.png', url: 'http://127.0.0.1/a.png' } }

describe('the text of an array of segments', () => {
  const cases: Record<string, [message: unknown[], expected: string]> = {
    'is that of its text segments, markup and escapes left alone': [[text('#ping <b>&amp; [CQ:at,qq=1]')], '#ping <b>&amp; [CQ:at,qq=1]'],
    'has no blank where a picture was': [[text('#ping'), image, text('x')], '#pingx'],
    'leaves the reply out': [[{ type: 'reply', data: { id: '-7' } }, text('#ping x')], '#ping x'],
    'shows the mention that follows a reply': [[{ type: 'reply', data: { id: '7' } }, at('10001'), text(' #ping x')], '@10001 #ping x'],
    'shows mentions by account, whatever their type': [[at('1'), at(2), at('all')], '@1@2@all'],
    'leaves faces and other segments out': [[{ type: 'face', data: { id: '14' } }, text('a'), { type: 'json', data: { data: '{}' } }], 'a'],
    'keeps white space': [[text(' a\n'), text('\n b ')], ' a\n\n b '],
    'passes over unknown shapes': [
      [null, 1, 'x', [], {}, { type: 'text' }, { type: 'text', data: null }, text({}), text(null), at(undefined), at({}), at(''), text('a')],
      'a',
    ],
  }
  for (const [name, [message, expected]] of Object.entries(cases)) test(name, () => assert.equal(messageText({ message }), expected))
})

describe('the text of a CQ string', () => {
  const cases: Record<string, [message: string, expected: string]> = {
    'is unescaped once': ['#ping &#91;x&#93; &amp;amp; a&#44;b &lt;', '#ping [x] &amp; a,b &lt;'],
    'does not unescape what was typed as an escape': ['&amp;#91;', '&#91;'],
    'has no blank where a picture was': ['#ping[CQ:image,file=a.png,url=http://127.0.0.1/?a=1&amp;b=2]x', '#pingx'],
    'leaves the reply out': ['[CQ:reply,id=-7]#ping x', '#ping x'],
    'shows mentions by account': ['[CQ:at,qq=10001,name=小明] #ping [CQ:at,name=所有人,qq=all]', '@10001 #ping @all'],
    'leaves faces out': ['a[CQ:face,id=14]b[CQ:shake]', 'ab'],
    'leaves out codes whose type or fields are unusual': ['a[CQ:x-y,k-k=[,v]b', 'ab'],
    'keeps what a member typed that looks like a code': ['&#91;CQ:at,qq=1&#93;', '[CQ:at,qq=1]'],
    'keeps brackets that were not escaped': ['] [x] [CQ:face,id=14][y', '] [x] [y'],
    'keeps a code that never ends': ['a[CQ:at,qq=1', 'a[CQ:at,qq=1'],
    'shows no mention without an account': ['[CQ:at]a[CQ:at,name=x]', 'a'],
    'keeps white space': [' a\r\n ', ' a\r\n '],
    'may be empty': ['', ''],
  }
  for (const [name, [message, expected]] of Object.entries(cases)) test(name, () => assert.equal(messageText({ message }), expected))

  test('is read in linear time', () => {
    const start = performance.now()
    for (const part of ['[CQ:', '[CQ:at', '&amp', '[CQ:a,]']) messageText({ message: part.repeat(50_000) })
    assert.ok(performance.now() - start < 2000)
  })
})

test('an event without a message is no OneBot message', () => {
  for (const event of [undefined, null, 'x', 1, [], {}, { message: null }, { message: 1 }, { message: {} }]) {
    assert.equal(messageText(event), undefined)
  }
})
