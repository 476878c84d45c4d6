import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { languageOf } from '../../../src/lib/language'

describe('the language of a bot', () => {
  for (const [locales, language] of [
    [['zh-CN', 'en-US'], 'zh-CN'], [['en-US', 'zh-CN'], 'en-US'], [['zh-TW'], 'zh-CN'], [['en'], 'en-US'], [['de-DE', 'en-GB'], 'en-US'],
    [['', 'en-US'], 'en-US'], [['de-DE'], 'zh-CN'], [['english'], 'zh-CN'], [[], 'zh-CN'],
  ] as const) {
    test(`of ${locales.join(', ') || 'no locale'} is ${language}`, () => {
      assert.equal(languageOf(locales), language)
    })
  }
})
