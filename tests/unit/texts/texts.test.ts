import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { languageAsked } from '../../../src/texts/language'
import { table } from '../../../src/texts/table'
import { clauses, parseTexts, say, words, writer } from '../../../src/texts/text'

test('each text is there once, in both languages, with the same values', () => {
  const folder = join(__dirname, '../../../src/texts/table')
  const ids = readdirSync(folder).flatMap(file => [...readFileSync(join(folder, file), 'utf8').matchAll(/^ {2}'?([\w-]+)'?: \[/gm)].map(([, id]) => id))
  assert.deepEqual(ids.filter((id, index) => ids.indexOf(id) !== index), [])
  assert.equal(ids.length, Object.keys(table).length)
  const placesOf = (text: string): string[] => (text.match(/\{\w+\}/g) ?? []).sort()
  for (const [id, [english, chinese]] of Object.entries(table)) {
    assert.deepEqual(placesOf(chinese), placesOf(english), id)
    assert.doesNotMatch(english, /\p{Script=Han}/u, id)
    if (id !== 'invalid-json') assert.match(chinese, /[\p{Script=Han}（；：]|^\{what\}/u, id)
  }
})

test('each text of the table is said somewhere', () => {
  const root = join(__dirname, '../../..')
  const sources = ['src', 'cli'].flatMap(folder => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts') && !file.startsWith('texts/table')).map(file => readFileSync(join(root, folder, file), 'utf8'))).join('\n')
  assert.deepEqual(Object.keys(table).filter(id => !id.startsWith('cause-') && !sources.includes(`'${id}'`)), [])
})

test('a text is written in each language, with what is in it', () => {
  const text = clauses(say('paused-because', { reason: say('cause-of-platform', { cause: say('cause-muted'), words: '{reason}' }) }), words('x'))
  assert.equal(text.toString(), 'this target is paused after repeated failures (the bot is muted in this group (platform: "{reason}")): nothing was sent, try again later: x')
  assert.equal(text.in('zh-CN'), '该目标因连续失败而暂停（机器人在该群被禁言（{reason}））：没有发送，请稍后重试：x')
  const kept = JSON.stringify({ text })
  assert.deepEqual(parseTexts(kept), { text })
  assert.equal(JSON.stringify({ list: [say('no-bot-online')], other: { $text: 'no-bot-online' } }, writer('zh-CN')), '{"list":["没有机器人在线"],"other":{"$text":"no-bot-online"}}')
})

test('an answer is English unless the request names Chinese first', () => {
  for (const [query, accepted, language] of [
    ['', undefined, 'en-US'],
    ['', '*', 'en-US'],
    ['', 'zh', 'zh-CN'],
    ['', 'zh-TW,zh;q=0.9,en;q=0.8', 'zh-CN'],
    ['', 'en;q=0.5, zh-CN;q=0.9', 'zh-CN'],
    ['', 'de, en;q=0.5, zh;q=0.1', 'en-US'],
    ['', 'zh;q=0', 'en-US'],
    ['lang=zh-CN', 'en', 'zh-CN'],
    ['a=1&lang=en', 'zh', 'en-US'],
    ['lang=de', 'zh', 'zh-CN'],
  ] as const) assert.equal(languageAsked(query, accepted), language, `${query} ${accepted ?? ''}`)
})
