import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { LongText, MessageRequest, ParsedItem } from '../../../../src/message/model'
import { excerptOf, fitTexts } from '../../../../src/relay/send/fit'
import { summarize } from '../../../../src/relay/delivery/summary'
import { Core, chat, fates } from '../../../support/core'

const line = (length: number): string => 'x'.repeat(length)
const log = Array.from({ length: 1000 }, (_, index) => `line ${String(index).padStart(4, '0')} ${line(9)}\n`).join('')

interface Limits { most?: number, takesFiles?: boolean, setting?: LongText | '', door?: LongText }

function fit(items: readonly ParsedItem[], { most = 4000, takesFiles = true, setting = '', door }: Limits): MessageRequest {
  const request: MessageRequest = { mode: 'single', target: chat, bot: {}, items, ...door && { longText: door } }
  return fitTexts(request, { longestText: most, takesFiles }, setting)
}

function textsOf({ items }: Pick<MessageRequest, 'items'>): string[] {
  return items.map(item => 'text' in item ? item.text : 'type' in item ? `[${item.type}]` : item.message)
}

/** A divided text without the numbers of its parts. */
function join(texts: readonly string[]): string {
  return texts.map((text, index) => {
    const label = `(${index + 1}/${texts.length})\n`
    assert(text.startsWith(label), text.slice(0, 10))
    return text.slice(label.length)
  }).join('\n')
}

describe('a long text', () => {
  const text = { type: 'text', text: log } as const

  test('that no bot was there for is fitted all the same when an operator sends it again', async () => {
    const core = await Core.ready({ longText: 'divide' })
    core.port.online = false
    const id = '01a1f888-5efd-759b-8a19-306f0428960e'
    await core.run(500, core.submit('log', { id, items: [text] }))
    assert.deepEqual([core.states, core.called], [['failed'], []])
    core.port.online = true
    await core.relay.retry(id, () => undefined)
    await core.run(1_000)
    assert.equal(join(core.called), log.slice(0, -1))
  })

  test('of 20,000 characters is divided at lines, in numbered parts that fit', () => {
    for (const most of [4000, 2000, 500]) {
      const parts = textsOf(fit([text], { most, setting: 'divide' }))
      assert(parts.every(part => part.length <= most))
      assert.equal(parts.length, Math.ceil(1000 / Math.floor((most - 8) / 20)))
      assert.equal(join(parts), log.slice(0, -1))
    }
  })

  test('without lines is divided between characters', () => {
    const parts = textsOf(fit([{ type: 'text', text: `a${'🙂'.repeat(9000)}` }], { setting: 'divide' }))
    assert.equal(join(parts).replaceAll('\n', ''), `a${'🙂'.repeat(9000)}`)
    assert(parts.every(part => part.length <= 4000 && part.isWellFormed()))
  })

  test('goes as its first lines and a file, the same one for all targets', () => {
    const one = fit([text], { setting: 'file' })
    const [first, file] = one.items
    assert.deepEqual(first, { type: 'text', text: log.slice(0, 999) })
    assert.deepEqual(file, { type: 'file', link: { kind: 'data', base64: Buffer.from(log).toString('base64'), mediaType: 'text/plain' }, name: 'message.txt' })
    assert.equal(fit([text], { setting: 'file', most: 2000 }).items[1], file)
  })

  for (const [what, limits, shown, mode] of [
    ['nothing says otherwise', {}, [log], 'single'],
    ['it fits', { setting: 'divide', most: log.length }, [log], 'single'],
    ['the door has files', { door: 'file' }, [log.slice(0, 999), '[file]'], 'batch'],
    ['the setting has files', { setting: 'file' }, [log.slice(0, 999), '[file]'], 'single'],
    ['nobody knows the limit', { door: 'file', most: Infinity }, [log.slice(0, 999), '[file]'], 'batch'],
    ['it would take more than 50 messages', { setting: 'divide', most: 400 }, [log.slice(0, 399), '[file]'], 'single'],
    ['neither is possible', { setting: 'divide', most: 400, takesFiles: false }, ['the text is too long for this chat: it would take more than 50 messages'], 'single'],
  ] as const) {
    test(`becomes what it has to where ${what}`, () => {
      const request = fit([text], limits)
      assert.deepEqual([textsOf(request), request.mode], [shown, mode])
    })
  }

  test('is divided where the platform takes no files, and the setting comes before the door', () => {
    const divided = fit([text], { setting: 'divide' })
    assert.deepEqual(fit([text], { setting: 'file', takesFiles: false }).items, divided.items)
    assert.deepEqual(fit([text], { setting: 'divide', door: 'file' }), { ...divided, mode: 'batch', longText: 'file' })
  })

  test('leaves other items where they are, and makes no more than 1,000', () => {
    const before = { type: 'at', userId: '1' } as const
    const after = { type: 'text', text: 'end' } as const
    const { items } = fit([before, text, after], { setting: 'divide' })
    assert.deepEqual([items[0], items.at(-1), items.length], [before, after, 8])
    assert.throws(() => fit(Array.from({ length: 501 }, () => text), { setting: 'file' }), /more than 1000 items/)
  })

  test('is shown by as many of its first lines as fit', () => {
    for (const [what, text, excerpt] of [
      ['of 801 characters', `${line(400)}\n${line(400)}\n${line(400)}\n`, `${line(400)}\n${line(400)}`],
      ['of exactly 1,000 characters', `${line(499)}\n${line(500)}\n${line(4000)}`, `${line(499)}\n${line(500)}`],
      ['without the one that is a character too long', `${line(499)}\n${line(501)}\n${line(4000)}`, line(499)],
      ['that ends as Windows has it', `${line(1000)}\r\n${line(4000)}`, line(1000)],
      ['of which the first is cut where it is too long', line(5000), line(1000)],
      ['of characters that are not cut', `a${'🙂'.repeat(5000)}`, `a${'🙂'.repeat(499)}`],
      ['from the first on that is not blank', ` \n\n${' '.repeat(2000)}\n  a\n${line(5000)}`, 'a'],
      ['without blank lines at the end', `a\n${'\n'.repeat(990)}${line(5000)}`, 'a'],
    ] as const) assert.equal(excerptOf(text), excerpt, what)
  })
})

describe('a divided text', () => {
  const divided = (changes = {}): Core => {
    const core = new Core({ longText: 'divide', ...changes })
    core.port.longestText = 4000
    return core
  }

  test('leaves in order, with other texts where there is room, and has one result for each part', async () => {
    const core = divided()
    const items = [{ type: 'text', text: 'start' }, { type: 'text', text: log }, { type: 'text', text: 'end' }] as const
    await core.run(1000, core.submit('batch', { mode: 'batch', items }), core.submit('after'))
    assert.deepEqual(core.called.map(text => text.slice(0, 11).replace('\n', ' ')), [
      'start+(1/6)', '(2/6) line ', '(3/6) line ', '(4/6) line ', '(5/6) line ', '(6/6) line ', 'after',
    ])
    assert(core.called[5]?.endsWith('+end'))
    assert.deepEqual(core.log, [`batch ${Array(8).fill('sent').join()}`, 'after sent'])
  })

  for (const [what, done, isOpen] of [['two parts have left', 2, false], ['its third part is under way', 3, true]] as const) {
    test(`is neither lost nor doubled by a restart when ${what}`, async () => {
      const core = divided({ interval: 1000 })
      core.port.fates.push(fates.sent, fates.sent, ...isOpen ? [fates.lost] : [])
      void core.later(log)
      await core.run(isOpen ? 2500 : 1500)
      assert.equal(core.called.length, done)
      core.relay.end()
      core.restart()
      await core.run(120_000)
      assert.equal(join(core.port.texts), log.slice(0, -1))
      assert.deepEqual([core.states, core.called.length], [['sent'], 6])
    })
  }

  test('is no part of a digest', async () => {
    const core = divided()
    await core.run()
    for (const text of ['one', log, 'two', 'three']) void core.later(text, { policy: { name: 'ops', digest: 60_000 } })
    await core.run(300_000)
    assert.equal(core.called.filter(text => /^\([1-6]\/6\)\n/.test(text)).length, 6)
    assert.deepEqual(core.states.filter(state => state !== 'sent'), [])
  })

  test('that came with a key is repeated by it only as far as it has not arrived', async () => {
    const core = divided({ isDurable: false, retries: 0, retryUnanswered: false })
    core.port.fates.push(fates.sent, fates.silent)
    await core.run(60_000, core.submit(log, { key: 'k' }))
    await core.run(60_000, core.submit(log, { key: 'k' }))
    assert.deepEqual([core.port.texts.length, core.called.length], [6, 7])
    assert.deepEqual(core.log.map(entry => entry.slice(log.length + 1)), ['sent,unanswered,sent,sent,sent,sent', 'sent,sent,sent,sent,sent,sent'])
  })
})

test('the record of a long text keeps its beginning in memory, and not all of it', () => {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  assert(typeof collect === 'function')
  const { heapUsed: before } = process.memoryUsage()
  const records = Array.from({ length: 20 }, (_, index) => {
    const text = JSON.stringify({ index, text: 'x'.repeat(4_000_000) })
    return summarize([{ type: 'text', text }], 'preview')
  })
  Reflect.apply(collect, undefined, [])
  const { heapUsed } = process.memoryUsage()
  assert.equal(records.length, 20)
  assert(heapUsed - before < 40_000_000, `${heapUsed - before} bytes`)
})
