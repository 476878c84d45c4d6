import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { h } from 'koishi'
import { elementsText } from '../../../src/platform/incoming'

describe('the text of elements', () => {
  const cases: Record<string, [markup: string, expected: string]> = {
    'is that of its text elements, unescaped': ['#ping &lt;b&gt; &amp;amp;', '#ping <b> &amp;'],
    'is that within styles': ['<b>#pi<i>ng</i></b> <code>x</code>', '#ping x'],
    'shows mentions by account': ['<at id="7" name="x"/> <at type="all"/> <at type="here"/> <at role="9"/>', '@7 @all @here @9'],
    'leaves out a quotation with all that is in it': ['<quote id="3">old <b>text</b></quote>#ping x', '#ping x'],
    'leaves out pictures and faces, and puts nothing in their place': ['#ping<img src="a"/>x<face id="1"><img src="b"/></face>', '#pingx'],
    'leaves out what a forwarded message says': ['<message forward>#ping x</message>', ''],
    'has the line breaks that were typed': ['a<br/>b<br/><br/>c', 'a\nb\n\nc'],
    'has a line for each paragraph': ['<p>a</p><p>b<br/></p><p>c</p>d', 'a\nb\nc\nd'],
    'has no line break around a single paragraph': ['<p>#ping x</p>', '#ping x'],
    'shows a link by its text, or else its address': ['<a href="http://a/">x</a> <a href="http://b/"/>', 'x http://b/'],
  }
  for (const [name, [markup, expected]] of Object.entries(cases)) {
    test(name, () => {
      assert.equal(elementsText(h.parse(markup)), expected)
    })
  }

  test('passes over unknown shapes', () => {
    const shapes = [null, 1, 'x', [], {}, { type: 1 }, { type: 'text' }, { type: 'text', attrs: { content: {} } }, { type: 'b' },
      { type: 'b', children: 1 }, { type: 'at', attrs: null }, { type: '__proto__', children: [h.text('no')] }, h.text('a')]
    assert.equal(elementsText(shapes), 'a')
    for (const elements of [undefined, null, 'x', {}]) assert.equal(elementsText(elements), '')
  })

  test('is found in 100,000 nested elements without exhausting the stack', () => {
    let element = h.text('deep')
    for (let depth = 0; depth < 100_000; depth++) element = h('b', [element])
    assert.equal(elementsText([h.text('a'), element]), 'a')
  })
})
