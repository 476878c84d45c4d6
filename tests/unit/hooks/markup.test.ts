import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { excerpt, fromDiscord, fromMarkdown, fromSlack } from '../../../src/hooks/markup'

process.env.TZ = 'Asia/Shanghai'

describe('an excerpt of Markdown', () => {
  for (const [markdown, text] of [
    ['**bold** and `code` and ~~gone~~', 'bold and code and gone'],
    ['# Title\n\n> said\n', 'Title\nsaid'],
    ['![a](https://example.com/a.png)[the page](https://example.com)', 'the page'],
    ['<details><summary>More</summary>\n<!-- not\nseen -->x', 'More\nx'],
    ['| a | b |\n|---|---|\n| 1 | 2 |\nafter', 'after'],
    ['a < b, snake_case and 2 * 3 * 4', 'a < b, snake_case and 2 * 3 * 4'],
    ['1\n2\n3\n4', '1\n2\n3 …'],
    ['[CQ:at,qq=all] @all', '[CQ:at,qq=all] @all'],
    ['<!-- never ends', ''],
  ] as const) {
    test(`of ${JSON.stringify(markdown)}`, () => {
      assert.equal(excerpt(markdown), text)
    })
  }

  test('is bounded, and made in no time of whatever comes', () => {
    const start = performance.now()
    for (const piece of ['x', '<', '![', '[a](', '<a ', '<!--', '**', '|\n', '> ', '# ', '\n']) {
      assert(excerpt(piece.repeat(1024 * 1024)).length <= 200, piece)
    }
    assert(performance.now() - start < 2000)
  })
})

describe('Markdown', () => {
  for (const [markdown, text] of [
    ['# Title\n**bold**, *italic*, ~~gone~~ and `code`', 'Title\nbold, italic, gone and code'],
    ['```sh\nmake\n```', 'make'],
    ['> said\n>> twice', 'said\ntwice'],
    ['[a page](https://example.com) ![](https://example.com/a.png)', 'a page (https://example.com) https://example.com/a.png'],
    ['| a | b |\n|:--|--:|\n| 1 | 2 |', 'a | b\n1 | 2'],
    ['above\n\n---\nbelow', 'above\n\nbelow'],
    ['<font color="warning">132</font><br/>next', '132\nnext'],
    [':warning: at 12:30:45 :shipit:', '⚠️ at 12:30:45 :shipit:'],
    ['2 * 3 * 4, snake_case_name, a < b', '2 * 3 * 4, snake_case_name, a < b'],
  ] as const) {
    test(`of ${JSON.stringify(markdown)}`, () => {
      assert.equal(fromMarkdown(markdown), text)
    })
  }
})

describe('the markup of Slack', () => {
  for (const [markup, text] of [
    ['<https://example.com|a page>, <https://example.com>', 'a page (https://example.com), https://example.com'],
    ['<mailto:eva@example.com|eva@example.com>', 'eva@example.com'],
    ['<@U1> <@U1|eva> <#C1|general> <!here> <!subteam^S1|@ops> <!subteam^S1>', '@U1 @eva #general @here @ops @S1'],
    ['<!date^1795165964^{date_short}|Nov 20, 2026> <!date^1795165964^{time}^https://example.com|9 am>', 'Nov 20, 2026 9 am'],
    ['since <!date^1795165964^{date_short}>', 'since 2026-11-20 17:12'],
    ['<!date^soon|later> <!date^99999999999^{date}>', 'later 5138-11-16 17:46'],
    ['can&#x27;t &#39;see&#39; &quot;it&quot; &amp;quot;', 'can\'t \'see\' "it" &quot;'],
    ['*bold* _italic_ ~gone~ `code` a*b*c', 'bold italic gone code a*b*c'],
    ['&gt; said\n1 &lt; 2 &amp;amp;', 'said\n1 < 2 &amp;'],
    [':white_check_mark: done', '✅ done'],
  ] as const) {
    test(`of ${JSON.stringify(markup)}`, () => {
      assert.equal(fromSlack(markup), text)
    })
  }
})

describe('the markup of Discord', () => {
  for (const [markup, text] of [
    ['<@1> <@!2> <@&3> <#4> <:sad:5> <a:wow:6> </status:7>', '@1 @2 @3 #4 :sad: :wow: /status'],
    ['[notes](<https://example.com>) <https://example.com>', 'notes (https://example.com) https://example.com'],
    ['<t:1795165964> <t:1795165964:R> <t:99999999999>', '2026-11-20 17:12 2026-11-20 17:12 5138-11-16 17:46'],
    ['-# small ||hidden||', 'small hidden'],
  ] as const) {
    test(`of ${JSON.stringify(markup)}`, () => {
      assert.equal(fromDiscord(markup), text)
    })
  }
})
