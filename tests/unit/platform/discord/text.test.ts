import assert from 'node:assert/strict'
import { test } from 'node:test'
import { escapeParts, escapeText } from '../../../../src/platform/discord/text'
import { seen } from '../../../platforms/discord'

const texts = [
  '**a** *b* _c_ __d__ ~~e~~ ||f|| `g` ```h``` ***i*** snake_case_name 2*3*4 a | b ~c',
  '\\ \\\\ \\* \\@everyone C:\\new\\_x ¯\\_(ツ)_/¯',
  '# a\n## b\n### c\n-# d\n- e\n* f\n  - g\n1. h\n  23. i\n> j\n>>> k\n#5 -1 >0',
  '@everyone @here <@539> <@!539> <@&165> <#103> </ping:816> <id:customize>',
  '<t:1618953630> <t:1618953630:R> <:mmLol:216> <a:b1nzy:392> :smile: ::ok: :+1: 12:30:45 a:b:c',
  '[mask](https://a.example/x) [a](<https://a.example>) [b](https://a.example "t")',
  'https://a.example/_x_/*y*/~~z~~?q=__a__ and https://b.example/`c`. (see https://c.example/a_b_).',
  '<https://a.example/x_y_> https://a.example/x<@539> https://a.example.<@539>: https://a.example/\\<@539>',
  'https://a.example/>*b* *https://a.example/* steam://run_me_now_ 见https://a.example/_a_，谢谢_b_',
  'http://_<_ http://_ x_ http://*. http://.<:ok:216> http://>_x_',
  '<at user_id="all"></at> &lt; &amp; 你好 😀™ “x”',
]
for (const text of texts) {
  test(`is seen letter for letter: ${JSON.stringify(text).slice(1, 40)}`, () => {
    assert.equal(seen(escapeText(text)), text)
  })
}

test('of any marks is seen letter for letter', () => {
  const pieces = [
    '\\', '*', '_', '~', '|', '`', '[', ']', '(', ')', '<', '>', '#', '-', '@', ':', '!', '.', '/', ' ', '  ', '\n', '1', 'x', '||', '**', '__', '```',
    'https://a.example/b', 'http://', 'steam://x', '<https://b.example>', '[m](https://x.y)', '<@5>', '@here', '@everyone', '> ', '# ', '- ', '1. ',
    ':ok:', '<t:1>', '<a:b:1>', '¯\\_(ツ)_/¯',
  ]
  let state = 7
  const next = (): number => state = state * 48_271 % 2_147_483_647
  for (let count = 0; count < 5_000; count++) {
    const text = Array.from({ length: 2 + next() % 14 }, () => pieces[next() % pieces.length]).join('')
    assert.equal(seen(escapeText(text)), text)
  }
})

test('is divided so that each part is short enough with what is escaped, and nothing of it is lost', () => {
  for (const text of ['*'.repeat(5000), 'a_b '.repeat(1500), '- x\n'.repeat(900), '😀_'.repeat(1500), '<https://a.example/x>'.repeat(300)]) {
    const parts = escapeParts(text, 2000)
    assert(parts.every(part => part.length <= 2000 && part.isWellFormed()))
    assert.equal(parts.map(seen).join(''), text)
  }
})
