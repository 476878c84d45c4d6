import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cardsOf } from '../../../src/hooks/cards'
import { address, count, date, firstLine, inOneLine, joinLines, labelled, line, linked, objects, parsed, pictureOf, textOf } from '../../../src/hooks/fields'
import { excerpt, fromDiscord, fromMarkdown, fromRobotMarkdown, fromSlack, readerOf } from '../../../src/hooks/markup'
import { markOfColor, ratingOfPriority, severityIn, severityOfWord, unlessMarked } from '../../../src/hooks/marks'
import { renderPlainly, tidy } from '../../../src/hooks/plain'

process.env.TZ = 'Asia/Shanghai'

describe('a field', () => {
  test('becomes one line of plain text, cut, but not through a character', () => {
    assert.equal(line(' a\r\n\tb\u0000\u001b[31m\u202e c\u2028d '), 'a b [31m c d')
    assert.equal(line('👨‍👩‍👧 é'), '👨‍👩‍👧 é')
    assert.equal(line(12), '12')
    for (const value of [null, undefined, true, {}, [], ['a']]) assert.equal(line(value), '')
    assert.deepEqual([line('abcdef', 6), line('abcdefg', 6), line('abcd😀fg', 6), line('\ud800')], ['abcdef', 'abcde…', 'abcd…', '\ufffd'])
    assert.deepEqual([firstLine('\n first \n\nsecond'), firstLine({})], ['first', ''])
  })

  test('is an address where it is a link that fits into a line', () => {
    for (const link of ['https://example.com/a?b=c#d', 'http://prometheus:9090/graph?g0.expr=up', 'https://例子.example/路']) assert.equal(address(link), link)
    for (const wrong of ['', 'javascript:alert(1)', 'file:///etc/passwd', 'https://a b', 'https://a\nb', 'https://a\u202eb', 'https:///a', `https://${'a'.repeat(2048)}`, {}, 1]) {
      assert.equal(address(wrong), '', JSON.stringify(wrong))
    }
  })

  test('is a count, a date, a text of several lines, or a list of objects', () => {
    assert.deepEqual([3, '12', -1, 1.5, 1e300, 'x', null, {}].map(count), [3, 12, 0, 0, 0, 0, 0, 0])
    assert.equal(date('2026-03-02T09:51:03+08:00'), '2026-03-02T01:51:03.000Z')
    for (const wrong of ['0001-01-01T00:00:00Z', 'soon', '', 'x'.repeat(100), null, 1]) assert.equal(date(wrong), '')
    assert.deepEqual([textOf(' a\n\n  b '), textOf(0), textOf('x'.repeat(200_000)).length], ['a\n\n  b', '0', 100_000])
    for (const value of [null, undefined, false, {}, ['a']]) assert.equal(textOf(value), '')
    const list = Array.from({ length: 60 }, () => ({}))
    assert.deepEqual([objects(list).length, objects(list, Infinity).length, objects([null, [], 'a', {}]).length, objects({ length: 1 }).length], [50, 60, 1, 0])
  })

  test('leaves nothing behind where it is empty', () => {
    assert.equal(joinLines('a', '', 'b'), 'a\nb')
    assert.deepEqual([labelled('a', 'b'), labelled('', 'b'), labelled('a', '')], ['a: b', 'b', 'a'])
    assert.deepEqual([linked('a', 'https://b'), linked('', 'https://b'), linked('a', ''), linked('https://b', 'https://b')], ['a (https://b)', 'https://b', 'a', 'https://b'])
    assert.deepEqual([inOneLine('Host:\nnode-3'), inOneLine('主机：\nnode-3'), inOneLine('a\nb\nc')], ['Host: node-3', '主机: node-3', 'a\nb\nc'])
  })

  test('may be JSON as text, no deeper and no wider than the payload itself, which takes seconds to read', () => {
    assert.deepEqual([parsed('{"a":[1]}'), parsed({ a: 1 }), parsed('{'), parsed('\ud800'), parsed(undefined)], [{ a: [1] }, { a: 1 }, undefined, undefined, undefined])
    const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
    assert(Array.isArray(parsed(deep(64))))
    assert.equal(parsed(deep(65)), undefined)
    assert.equal(parsed(`[${'0,'.repeat(20_000)}0]`), undefined)
  })

  test('is a picture where it is an image type and base64, and nothing else', () => {
    assert.equal(pictureOf('image/png', 'iVBO\nRw0K\r\n'), 'data:image/png;base64,iVBORw0K')
    for (const [type, base64] of [['image/png', ''], ['image/png', '!'], ['image/png', 7], ['image/png,x', 'AAAA'], ['text/html', 'AAAA'], ['', 'AAAA']] as const) {
      assert.equal(pictureOf(type, base64), '', `${type} ${base64}`)
    }
  })
})

const markups: [what: string, read: (markup: string) => string, cases: [markup: string, text: string][]][] = [
  ['an excerpt of Markdown', excerpt, [
    ['**bold** and `code` and ~~gone~~', 'bold and code and gone'],
    ['# Title\n\n> said\n', 'Title\nsaid'],
    ['![a](https://example.com/a.png)[the page](https://example.com)', 'the page'],
    ['<details><summary>More</summary>\n<!-- not\nseen -->x', 'More\nx'],
    ['| a | b |\n|---|---|\n| 1 | 2 |\nafter', 'after'],
    ['a < b, snake_case and 2 * 3 * 4', 'a < b, snake_case and 2 * 3 * 4'],
    ['1\n2\n3\n4', '1\n2\n3 …'],
    ['[CQ:at,qq=all] @all', '[CQ:at,qq=all] @all'],
    ['<!-- never ends', ''],
    ['List<String> from <a href="https://example.com">a page</a> <img src="https://example.com/a.png">', 'List<String> from a page'],
  ]],
  ['Markdown', fromMarkdown, [
    ['# Title\n**bold**, *italic*, ~~gone~~ and `code`', 'Title\nbold, italic, gone and code'],
    ['```sh\nmake\n```', 'make'],
    ['> said\n>> twice', 'said\ntwice'],
    ['[a page](https://example.com) ![](https://example.com/a.png)', 'a page (https://example.com) https://example.com/a.png'],
    ['| a | b |\n|:--|--:|\n| 1 | 2 |', 'a | b\n1 | 2'],
    ['above\n\n---\nbelow', 'above\n\nbelow'],
    ['<font color="warning">132</font><br/>next', '132\nnext'],
    [':warning: at 12:30:45 :shipit:', '⚠️ at 12:30:45 :shipit:'],
    ['2 * 3 * 4, snake_case_name, a < b', '2 * 3 * 4, snake_case_name, a < b'],
    ['\\[FIRING:1\\] 95\\.2% snake\\_case \\*not\\* C:\\temp *event_type:* `\\[a\\]`', '[FIRING:1] 95.2% snake_case *not* C:\\temp event_type: \\[a\\]'],
  ]],
  ['Markdown of programs that write other texts into it', fromMarkdown, [
    // Templates of n9e (etc/template), tracebacks of Python, and addresses of easeprobe (issue 628).
    ['[__name__=cpu_usage_active cpu=cpu-total]', '[__name__=cpu_usage_active cpu=cpu-total]'],
    ['File "/app/__init__.py", line 1, in __main__ _x_', 'File "/app/__init__.py", line 1, in __main__ _x_'],
    ['https://search.example.com:9200/_cluster/health', 'https://search.example.com:9200/_cluster/health'],
    // Patterns of .gitignore and of certificates, sizes, crontabs, SQL, C and Python.
    ['删除 *.log 和 *.txt 文件, **/node_modules/**, src/**/*.ts', '删除 *.log 和 *.txt 文件, **/node_modules/**, src/**/*.ts'],
    ['*.a.example,*.b.example *:80 and *:443 "*error*"', '*.a.example,*.b.example *:80 and *:443 "*error*"'],
    ['2*3*4 长*宽*高 2**10 + 3**2', '2*3*4 长*宽*高 2**10 + 3**2'],
    ['*/5 * * * * root; */10 * * * * root', '*/5 * * * * root; */10 * * * * root'],
    ['SELECT *, a.* FROM a; char *argv[], char *envp[]; f(*args, **kw) and g(*args, **kw)', 'SELECT *, a.* FROM a; char *argv[], char *envp[]; f(*args, **kw) and g(*args, **kw)'],
    ['**状态：**正常，请**立即**处理 ***x*** **a *b* c** **CPU:**95%', '状态：正常，请立即处理 x a b c CPU:95%'],
    // Sonarr and Radarr (Notifications/Discord/Discord.cs), Alertmanager's templates in DingTalk, nlopes/slack's examples.
    ['```The.Matrix.1999.2160p_REMUX-GRP```', 'The.Matrix.1999.2160p_REMUX-GRP'],
    ['t\n```\n{"a": 1}```\nend', 't\n{"a": 1}\nend'],
    ['```yaml\n# a *b* &lt;\n> c\n``` and ``a`b``', '# a *b* &lt;\n> c\nand a`b'],
    ['and ```\nx\ny\n``` z\n```\na\n```\n\nb', 'and \nx\ny\nz\na\n\nb'],
    // A backslash in paths of Windows and in patterns of logs.
    ['C:\\Users\\x\\_cache\\.ssh D:\\.git \\\\nas\\#recycle \\d+\\.\\d+', 'C:\\Users\\x\\_cache\\.ssh D:\\.git \\\\nas\\#recycle \\d+\\.\\d+'],
    ['&lt;b&gt; &amp;lt; 21&nbsp;&deg;C &#20320;&#x597d; a?b=1&copy=2 &nosuch;', '<b> &lt; 21 °C 你好 a?b=1&copy=2 &nosuch;'],
    ['<div>a</div><p>b</p>\n<ul><li>c</li></ul><table><tr><td>d</td><td>e</td></tr></table>f', 'a\nb\n- c\nd | e\nf'],
    ['std::map<std::string, int> <user@example.com> List<String> <name> a<b and c>\nCPU <b and mem> 80, a<b\n> c', 'std::map<std::string, int> <user@example.com> List<String> <name> a<b and c>\nCPU <b and mem> 80, a<b\nc'],
    ['<a href="https://example.com/?a=1&amp;b=2">a page</a> <https://example.com>', 'a page (https://example.com/?a=1&b=2) https://example.com'],
    ['[![Build](https://example.com/a.svg)](https://example.com) [b](https://example.com/c_(d) "e")', 'Build (https://example.com/a.svg) (https://example.com) b (https://example.com/c_(d))'],
    ['handlers[event](payload)', 'handlers[event](payload)'],
  ]],
  ['Markdown of robots without escapes', fromRobotMarkdown, [['\\.\\*\\_ **b**', '\\.\\*\\_ b']]],
  ['declared Markdown', readerOf('markdown'), [['__init__ _it_ snake_case 5\\.1 C:\\\\x', 'init it snake_case 5.1 C:\\x']]],
  ['Markdown of Telegram', readerOf('telegram'), [['*b* _i_ `c` snake_case 5\\.1 \\_x\\_ [a](https://example.com)\n# 1', 'b i c snake_case 5\\.1 _x_ a (https://example.com)\n# 1']]],
  ['MarkdownV2 of Telegram', readerOf('markdownv2'), [
    ['*bold* 5\\.1 GB \\(ok\\) [li\\[n\\]k](https://example.com/a\\)b)', 'bold 5.1 GB (ok) li[n]k (https://example.com/a)b)'],
    ['**>quote\n>more|| __a__ ~b~ `c\\`d` ![👍](tg://emoji?id=1) C:\\\\Users', 'quote\nmore a b c`d 👍 C:\\Users'],
  ]],
  ['HTML', readerOf('html'), [
    ['<b>Alert</b> 2 &lt; 3 <a href="https://example.com/?x=1&amp;y=2">link</a>\n\nnext', 'Alert 2 < 3 link (https://example.com/?x=1&y=2)\n\nnext'],
    ['<p>已用 <b>95%</b></p><br>主机: nas<br><br>a<br/>\nb', '已用 95%\n主机: nas\n\na\nb'],
    ['<p\n  style="a"\n>a</p><blockquote expandable>b</blockquote><img src=https://example.com/p.png />', 'a\nb\nhttps://example.com/p.png'],
    ['<!DOCTYPE html><html><head><title>t</title></head><body>\n<h1>a</h1>\n<ul>\n  <li>b</li>\n</ul><!-- c --></body></html>', 'a\n- b'],
    ['<table>\n<tr> <th>Host</th>\n <th>Use</th> </tr>\n<tr><td>nas</td><td>95%</td></tr></table>', 'Host | Use\nnas | 95%'],
    ['<a href="tg://user?id=1">Tom</a> <code class="language-c">*p &amp; q</code> <user> <img alt="p" src=\'https://example.com/p.png\'>', 'Tom *p & q <user> p (https://example.com/p.png)'],
  ]],
  ['the markup of Slack', fromSlack, [
    // wee-slack (issue 304), GitHub's integration (issue 1761), and programs that escape nothing.
    ['CPU < 90 and mem > 80; map<string,string>; <not a link>; std::map<std::string,int> <foo|bar> <!DOCTYPE html>', 'CPU < 90 and mem > 80; map<string,string>; <not a link>; std::map<std::string,int> <foo|bar> <!DOCTYPE html>'],
    ['<tel:+123|call> <slack://open|open> <https://example.com/_a_/*b*|*b*>', 'call (tel:+123) open (slack://open) b (https://example.com/_a_/*b*)'],
    ['删除 *.log 和 *.txt 文件 2*3*4 C:\\_x in __main__ ```a *b* &lt;```', '删除 *.log 和 *.txt 文件 2*3*4 C:\\_x in __main__ a *b* <'],
    ['<https://example.com|a page>, <https://example.com>', 'a page (https://example.com), https://example.com'],
    ['<mailto:eva@example.com|eva@example.com>', 'eva@example.com'],
    ['<@U1> <@U1|eva> <#C1|general> <!here> <!subteam^S1|@ops> <!subteam^S1>', '@U1 @eva #general @here @ops @S1'],
    ['<!date^1795165964^{date_short}|Nov 20, 2026> <!date^1795165964^{time}^https://example.com|9 am>', 'Nov 20, 2026 9 am'],
    ['since <!date^1795165964^{date_short}>', 'since 2026-11-20 17:12'],
    ['<!date^soon|later> <!date^99999999999^{date}>', 'later 5138-11-16 17:46'],
    ['can&#x27;t &#39;see&#39; &quot;it&quot; &amp;quot;', 'can\'t \'see\' "it" &quot;'],
    ['*bold* _italic_ ~gone~ `code` a*b*c *event_type:* x', 'bold italic gone code a*b*c event_type: x'],
    ['&gt; said\n1 &lt; 2 &amp;amp;', 'said\n1 < 2 &amp;'],
    [':white_check_mark: done :fire::fire:（:x:）', '✅ done 🔥🔥（❌）'],
    ['session:lock:42 std::x::y', 'session:lock:42 std::x::y'],
    ['*状态*：正常 *主机*，（_web-1_）*a*中文', '状态：正常 主机，（web-1）*a*中文'],
  ]],
  ['the markup of Discord', fromDiscord, [
    ['<@1> <@!2> <@&3> <#4> <:sad:5> <a:wow:6> </status:7>', '@1 @2 @3 #4 :sad: :wow: /status'],
    ['[notes](<https://example.com>) <https://example.com>', 'notes (https://example.com) https://example.com'],
    ['<t:1795165964> <t:1795165964:R> <t:99999999999>', '2026-11-20 17:12 2026-11-20 17:12 5138-11-16 17:46'],
    ['-# small ||hidden|| a||b||c', 'small hidden a||b||c'],
  ]],
]
for (const [what, read, cases] of markups) {
  test(`${what} becomes plain text`, () => {
    for (const [markup, text] of cases) assert.equal(read(markup), text)
  })
}

test('an excerpt is bounded, and made in no time of whatever comes', () => {
  const start = performance.now()
  for (const piece of ['x', '<', '![', '[a](', '<a ', '<!--', '**', '|\n', '> ', '# ', '\n']) {
    assert(excerpt(piece.repeat(1024 * 1024)).length <= 200, piece)
  }
  assert(performance.now() - start < 2000)
})

test('a text is made fit for a chat, and of the main fields where there is no other', () => {
  assert.equal(tidy('a  \r\nb\u0007\u202e\tc\n\n\n\nd\u2028e\ud800 '), 'a\nb  c\n\nd\ne\ufffd')
  assert.equal(renderPlainly({ a: 'x', b: { c: 1 }, d: 2, e: true, f: 'y'.repeat(600), g: null }), `a: x\nb.c: 1\nd: 2\ne: true\nf: ${'y'.repeat(499)}…`)
})

test('the fields of a payload that nobody has described are told by their names, the telling ones first, without secrets', () => {
  assert.equal(renderPlainly({
    id: 7, build: { number: 42, full_url: 'https://ci.example.com/42', status: 'FAILURE', scm: { culprits: ['eva', 'lena'] } }, name: 'shop', api_key: 'x', accessToken: 'y', callback_url: 'https://example.com/key',
    steps: [{ id: 1, jobName: 'test' }, { id: 2, jobName: 'lint' }, {}], empty: [], nothing: {},
  }), 'name: shop\nbuild.full_url: https://ci.example.com/42\nbuild.status: FAILURE\nsteps: test, lint\nbuild.number: 42\nbuild.scm.culprits: eva, lena\nid: 7')
  assert.equal(renderPlainly(Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`field${index}`, index])), 2), 'field0: 0\nfield1: 1\n…')
  assert.equal(renderPlainly({ list: Array.from({ length: 11 }, (_, index) => index) }), 'list: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …')
})

test('a mark tells what is said only by a colour, a tag or a priority', () => {
  const colors: [unknown, string][] = [
    ['danger', '❌'], ['warning', '⚠️'], ['good', '✅'], ['#D63232', '❌'], ['#36a64f', '✅'], [15_749_200, '❌'], [16_753_920, '⚠️'], [0x27_C2_4C, '✅'], [0xD6_05_10, '❌'],
    ['#ffc441', '⚠️'], [0xFE_E7_5C, '⚠️'], [0x58_65_F2, ''], ['#2788CE', ''], [0, ''], ['#439FE0', ''], [7_105_644, ''], ['blue', ''], [null, ''], [{}, ''], [-1, ''],
  ]
  for (const [color, mark] of colors) assert.equal(markOfColor(color), mark, String(color))
  const ratings = ['5', 4, 'max', 'high', 'default', 3, '', {}].map(each => Object.values(ratingOfPriority(each, 4, 5) ?? {}).join(' '))
  assert.deepEqual(ratings, ['🔥 critical', '⚠️ warning', '🔥 critical', '⚠️ warning', ' info', ' info', '', ''])
  assert.deepEqual(['Critical', 'error', 'timeSensitive', 'OK', 'passive', 'soon'].map(severityOfWord), ['critical', 'warning', 'warning', 'ok', 'info', undefined])
  assert.deepEqual(['[🔴 Down]', 'a\n✅', '✅ then 🔥', '🚨'].map(text => severityIn(text)), ['warning', undefined, 'ok', 'critical'])
  assert.equal(severityIn('', 'plain', '⚠️ b'), 'warning')
  assert.deepEqual([unlessMarked('❌', 'down'), unlessMarked('❌', 'a', '🔴 down'), unlessMarked('❌', 'Acme™ 1')], ['❌', '', '❌'])
})

test('cards are read up to a number, because reading them takes longer than parsing', () => {
  const cards = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`c${index}`, { text: 'a' }]))
  for (const fields of [{ cards }, { cards: Object.values(cards) }]) assert.equal(cardsOf(fields).split('\n').length, 998)
})
