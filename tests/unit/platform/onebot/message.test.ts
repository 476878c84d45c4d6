import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toElement } from '../../../../src/platform/session'
import { contentOf, isSameContent, likenessOf, readContent, toSegments, type Content } from '../../../../src/platform/onebot/message'
import type { LoadedItem } from '../../../../src/platform/port'
import { file, picture, text } from '../../../support/items'

function contentOfItems(items: readonly LoadedItem[]): Content {
  const segments = toSegments(items, items.map(toElement))
  assert(segments)
  return contentOf(segments)
}

/** Whether a message in a history looks like one made of these items. */
function matches(items: readonly LoadedItem[], message: unknown): boolean {
  const content = readContent(message)
  assert(content)
  return isSameContent(contentOfItems(items), content)
}

const video: LoadedItem = { type: 'video', name: 'a.mp4', src: 'file:///a.mp4', path: '/a.mp4' }

function says(content: string): object {
  return { type: 'text', data: { text: content } }
}

const napcatImage = { type: 'image', data: { summary: '', file: 'A1B2.png', sub_type: 0, url: 'https://multimedia.nt.qq.com.cn/x', file_size: '120' } }

test('recognises a text however its platform divides, trims and breaks it', () => {
  assert(matches([text('构建 '), text('passed')], [says('构建 passed')]))
  assert(matches([text('a b')], [says('a'), says(' '), says('b')]))
  assert(matches([text('  a\r\nb\n')], [says('a\nb')]))
  assert(matches([text('a\nb')], [says('a\rb')]))
  assert(!matches([text('a\nb')], [says('a b')]))
  assert(!matches([text('a')], [says('a!')]))
})

test('tells long texts apart by their last character', () => {
  assert(matches([text(`${'x'.repeat(5_000)}1`)], [says(`${'x'.repeat(5_000)}1`)]))
  assert(!matches([text(`${'x'.repeat(5_000)}1`)], [says(`${'x'.repeat(5_000)}2`)]))
})

test('recognises pictures by their place, whatever they are called now', () => {
  assert(matches([text('a'), picture, text('b')], [says('a'), napcatImage, says('b')]))
  assert(!matches([text('a'), picture], [napcatImage, says('a')]))
  assert(!matches([picture], [napcatImage, napcatImage]))
  assert(!matches([video], [napcatImage]))
  assert(matches([video], [{ type: 'video', data: { file: 'x.mp4', url: '', file_size: '7' } }]))
})

test('recognises a file by its name, and by its size where both sides know it', () => {
  const sent = file('日志.log', 'bytes')
  assert(matches([sent], [{ type: 'file', data: { file: '日志.log', file_id: '/x', file_size: '5' } }]), 'NapCat')
  assert(matches([sent], [{ type: 'file', data: { file: '日志.log', path: '', file_size: 5 } }]), 'LuckyLilliaBot')
  assert(matches([sent], [{ type: 'file', data: { path: '/x', name: '日志.log', size: 5, busid: 102 } }]), 'go-cqhttp')
  assert(matches([sent], [{ type: 'file', data: { file_name: '日志.log' } }]), 'Lagrange')
  assert(!matches([sent], [{ type: 'file', data: { file: '日志.log', file_size: '6' } }]))
  assert(!matches([sent], [{ type: 'file', data: { name: '日志.log', size: 6 } }]))
  assert(!matches([sent], [{ type: 'file', data: { file: 'other.log', file_size: '5' } }]))
  assert(matches([{ type: 'file', name: 'a.log', src: 'file:///a.log', path: '/a.log' }], [{ type: 'file', data: { file: 'a.log', file_size: '6' } }]))
})

test('reads CQ strings, whose brackets, commas and ampersands are escaped', () => {
  assert(matches([text('[CQ:at] & a,b'), picture], '&#91;CQ:at&#93; &amp; a,b[CQ:image,file=A1B2.png,url=https://x/?a=1&amp;b=2]'))
  assert(matches([file('a,b.log', 'bytes')], '[CQ:file,file=a&#44;b.log,file_size=5]'))
  assert(matches([text('[CQ:image')], '[CQ:image'))
  assert(matches([text('a &amp; b')], 'a &amp;amp; b'))
})

test('compares no mentions and no replies, which implementations may leave out', () => {
  const items: LoadedItem[] = [{ type: 'reply', messageId: '5' }, text('a '), { type: 'at', userId: '10001' }, text('b')]
  for (const shown of ['[CQ:reply,id=5]a [CQ:at,qq=10001]b', 'a b', [says('a '), { type: 'at', data: { qq: 10001 } }, says('b')]]) assert(matches(items, shown))
  assert(!matches(items, '[CQ:reply,id=5]a'))
})

test('takes nothing but arrays and strings for a message', () => {
  for (const message of [undefined, null, 5, {}]) assert.equal(readContent(message), undefined)
  assert(matches([], [null, 'x', { type: 5 }, { type: 'text', data: null }]))
})

test('likeness is equal for messages that look the same in a history', () => {
  const likeness = (...items: LoadedItem[]): string => likenessOf(contentOfItems(items))
  const path: LoadedItem = { type: 'file', name: 'a.log', src: 'file:///a.log', path: '/a.log' }
  assert.equal(likeness(text('a '), text('b\r\n')), likeness(text(' a b')))
  assert.equal(likeness(file('a.log', 'bytes')), likeness(path), 'whatever the size')
  assert.equal(likeness(picture), likeness({ type: 'image', name: 'b.png', src: 'https://x/b.png' }))
  const different = [[text('a')], [text('image')], [picture], [picture, picture], [text('a'), picture], [picture, text('a')], [video],
    [file('a.log', 'bytes')], [file('b.log', 'bytes')], [text('file')], [{ type: 'at', userId: null } as const]]
  assert.equal(new Set(different.map(items => likeness(...items))).size, different.length)
  assert.equal(new Set(different.map(items => likeness(...items).length)).size, 1, 'it is short, and shows nothing of the message')
})
