import assert from 'node:assert/strict'
import { test } from 'node:test'
import { languages, type Language } from '../../../src/texts/language'
import { table, type TextId } from '../../../src/texts/table'
import type { TestRelay } from '../../support/relay'

/** What a text looks like with whatever values it has, within what surrounds it. */
function patternOf(id: TextId, language: Language): RegExp {
  const text = table[id][language === 'zh-CN' ? 1 : 0]
  const parts = text.split(/\{\w+\}/).map(part => part.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
  return new RegExp(parts.join('[^]*?'))
}

/** The texts of one table that answers were seen to say, in both languages. */
export class Texts {
  private readonly met = new Set<string>()

  /**
   * Adds a test, which has to be the last of its file, that each text of a table was met.
   *
   * @param texts the table
   * @param others those that no answer says, by the reason why not
   */
  constructor(private readonly texts: object, private readonly others: Readonly<Record<string, readonly TextId[]>>) {}

  /** Checks that something says these texts, in both languages. @param read reads it in the language, which is a value of `?lang` */
  async meet(ids: readonly TextId[], read: (lang: Language) => string | Promise<string>): Promise<void> {
    for (const language of languages) {
      // Most answers are JSON.
      const answer = (await read(language)).replaceAll('\\"', '"')
      for (const id of ids) assert.match(answer, patternOf(id, language), `${id} in ${language}`)
    }
    for (const id of ids) this.met.add(id)
  }

  /** Checks that the answer to a request says these texts. The request is sent once in each language. */
  async ask(relay: Pick<TestRelay, 'request'>, ids: readonly TextId[], path: string, init: RequestInit = {}): Promise<void> {
    await this.meet(ids, async lang => (await relay.request(`${path}${path.includes('?') ? '&' : '?'}lang=${lang}`, init)).text())
  }

  /** Adds the test that each text of the table was met by the tests above, and none that answers are said never to have. */
  complete(): void {
    test('each of them was met', () => {
      const others = Object.values(this.others).flat()
      assert.deepEqual(Object.keys(this.texts).filter(id => !this.met.has(id)).sort(), [...others].sort())
    })
  }
}
