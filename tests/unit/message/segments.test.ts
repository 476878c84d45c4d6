import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readCodes, readMessage, readSegment } from '../../../src/message/segments'

describe('a string with CQ codes', () => {
  /** What is read, in short: a text as it is, a code with its fields. */
  const outline = (source: string): string[] => [...readCodes(source)].map(({ type, data }) => type === 'text' ? String(data.text) : `${type} ${JSON.stringify(data)}`)

  const cases: [what: string, source: string, expected: string[]][] = [
    ['is text', 'hello', ['hello']],
    ['is nothing', '', []],
    ['has codes between texts', 'a[CQ:at,qq=10001] b', ['a', 'at {"qq":"10001"}', ' b']],
    ['has a code without fields', '[CQ:shake]', ['shake {}']],
    ['has a value with an equals sign', '[CQ:image,file=https://a/?b=c]', ['image {"file":"https://a/?b=c"}']],
    ['has escaped characters in its text', '&#91;CQ:at,qq=all&#93; &amp;#91; a,b', ['[CQ:at,qq=all] &#91; a,b']],
    ['has escaped characters in a value', '[CQ:x,title=a&#44;b&#93;&amp;]', ['x {"title":"a,b]&"}']],
    ['has a field without a value', '[CQ:x,y]', ['x {"y":""}']],
    ['has a code that nothing ends', 'a [CQ:at,qq=1', ['a [CQ:at,qq=1']],
    ['has brackets that are none of a code', '[x] [cq:at]', ['[x] [cq:at]']],
    ['has a blank in the type', '[CQ: at]', [' at {}']],
    // Mrs4s/go-cqhttp, issue 507 (pictures of Baidu); Aliyun OSS, `image/resize`; clients of OneBot that write data URLs.
    ['has a comma in a link', '[CQ:image,file=https://ss1.bdstatic.com/it/u=1071961525,4038809800&fm=26&gp=0.jpg]',
      ['image {"file":"https://ss1.bdstatic.com/it/u=1071961525,4038809800&fm=26&gp=0.jpg"}']],
    ['has commas in a link before another field', '[CQ:image,file=https://a/b?x-oss-process=image/resize,m_lfit,w_200/quality,q_80,,url=https://a/,sub_type=1]',
      ['image {"file":"https://a/b?x-oss-process=image/resize,m_lfit,w_200/quality,q_80,","url":"https://a/","sub_type":"1"}']],
    ['has commas in a title', '[CQ:share,url=https://a/?x=1,2,title=磁盘,内存, CPU]', ['share {"url":"https://a/?x=1,2","title":"磁盘,内存, CPU"}']],
    ['has a data URL', '[CQ:image,file=data:image/png;base64,RUZHSA==,cache=0]', ['image {"file":"data:image/png;base64,RUZHSA==","cache":"0"}']],
    ['has a name of every object as field', '[CQ:x,__proto__=1]', ['x {"__proto__":"1"}']],
  ]
  for (const [what, source, expected] of cases) test(what, () => assert.deepEqual(outline(source), expected))

  test('is read no further than it is asked for', () => {
    const codes = readCodes('[CQ:a]'.repeat(1_000_000))
    assert.deepEqual(codes.next().value, { type: 'a', data: {} })
  })
})

describe('segments', () => {
  test('are objects with a type', () => {
    assert.deepEqual(readSegment({ type: 'text', data: { text: 'a' } }), { type: 'text', data: { text: 'a' } })
    assert.deepEqual(readSegment({ type: 'shake', data: null }), { type: 'shake', data: {} })
    for (const wrong of [null, 'text', [], {}, { type: 1 }]) assert.equal(readSegment(wrong), undefined)
  })

  test('are left out of the message of an event where they are none', () => {
    assert.deepEqual(readMessage([{ type: 'a' }, 1, null]), [{ type: 'a', data: {} }])
    assert.deepEqual(readMessage('[CQ:a]'), [{ type: 'a', data: {} }])
    assert.equal(readMessage({ type: 'a' }), undefined)
  })
})
