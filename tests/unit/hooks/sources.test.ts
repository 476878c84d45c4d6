import { describe, test } from 'node:test'
import { sources } from '../../../src/hooks/sources'
import { assertReadable, assertSnapshot, isEvent, languages, readFixtures, render, renderStrictly } from './support'

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
