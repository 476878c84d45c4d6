import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sources } from '../../../src/hooks/sources'
import { assertReadable, assertSnapshot, isEvent, languages, readFixtures, render, renderStrictly, requestOf } from './support'

for (const source of sources) {
  describe(`what ${source.name} posts`, () => {
    const fixtures = readFixtures(source.name)

    test('makes texts that can be read', async () => {
      const texts: string[] = []
      for (const { name, request } of fixtures) {
        const reading = source.read(request)
        if (!isEvent(reading)) {
          texts.push(`== ${name}: ${reading.skipped}`)
          continue
        }
        const { branch = '', status = '', view } = reading
        for (const lang of languages) {
          const text = await render(source, view, lang)
          assertReadable(text, ['message', 'notification'].includes(reading.name))
          texts.push(`== ${name} (${lang}) event=${reading.name} branch=${branch} status=${status}\n${text}`)
        }
      }
      assertSnapshot(source.name === 'github' ? 'github-more' : source.name, texts)
    })

    test('has every field that its template asks for', () => {
      for (const { request } of fixtures) {
        const reading = source.read(request)
        if (isEvent(reading)) for (const lang of languages) renderStrictly(source, reading.view, lang)
      }
    })
  })
}

describe('what says nothing', () => {
  for (const [name, payload] of [
    ['dingtalk', { msgtype: 'text', text: { content: ' ' } }], ['dingtalk', { msgtype: 'actionCard', actionCard: {} }],
    ['dingtalk', { msgtype: 'feedCard', feedCard: { links: [] } }], ['dingtalk', { msgtype: 'constructor' }], ['dingtalk', {}],
    ['wecom', { msgtype: 'news', news: { articles: [{}] } }], ['wecom', { msgtype: 'image', image: {} }], ['wecom', { msgtype: 'file', file: { media_id: '1' } }],
    ['feishu', { msg_type: 'post', content: { post: {} } }], ['feishu', { msg_type: 'interactive', card: { elements: [] } }], ['feishu', { msg_type: 'image' }],
    ['slack', { text: ' ', blocks: [{ type: 'divider' }], attachments: [{}] }], ['discord', { content: '', embeds: [{ color: 1 }] }],
    ['apprise', { title: '', message: '', attachments: [], type: 'info' }], ['message', { title: '' }], ['uptime-kuma', { heartbeat: null, monitor: null, msg: '' }],
  ] as const) {
    test(`is refused by ${name}: ${JSON.stringify(payload)}`, () => {
      const source = sources.find(each => each.name === name)
      assert.throws(() => source?.read(requestOf(payload)), { code: 'bad-request' })
    })
  }
})
