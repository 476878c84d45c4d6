import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readReaction, readWord } from '../../../src/incidents/words'
import { day, hour, minute } from '../../../src/lib/time'

const actionOf = (text: string): string | undefined => readWord(text)?.action

describe('a word about an incident', () => {
  test('is the whole text, whatever its case and the blanks around it', () => {
    const words = {
      take: ['我来', ' 认领\n', 'ACK', 'Take', '\u3000我来\u3000'], resolve: ['解决', '已解决', 'Resolve'], release: ['放弃', 'release'],
      who: ['谁', 'WHO'], silence: ['静默', '静音 2h', 'Silence', 'mute 90s'],
    }
    for (const [action, texts] of Object.entries(words)) for (const text of texts) assert.equal(actionOf(text), action, text)
  })

  test('silences for an hour, or from a minute to a week', () => {
    const spans = { '静默': hour, 'mute': hour, '静默 2h': 2 * hour, '静音2h': 2 * hour, 'silence 1m': minute, 'mute 7d': 7 * day, 'mute 1W': 7 * day, 'mute 60': minute }
    for (const [text, span] of Object.entries(spans)) assert.deepEqual(readWord(text), { action: 'silence', span }, text)
    for (const text of ['mute 59s', 'mute 8d', 'mute 2x', 'mute -1h', '静默 2h 吧', 'mute 1.5h']) assert.equal(readWord(text), undefined, text)
  })

  test('is none within a sentence', () => {
    for (const text of ['', '我来看看', '解决了吗', '谁？', 'I take it', '#take', 'take\nit', `take${' '.repeat(40)}`, 'constructor']) assert.equal(readWord(text), undefined, text)
  })
})

test('a reaction has a meaning by its emoji, or by the ID that QQ gives it', () => {
  const meanings = { take: ['👀', '👌', '128064', '128076', '124'], silence: ['💤', '🔕', '128164'], resolve: ['🎉', '✅', '127881'] }
  for (const [action, emoji] of Object.entries(meanings)) for (const each of emoji) assert.equal(readReaction(each)?.action, action, each)
  for (const other of ['', '👍', '76', 'eyes', 'constructor']) assert.equal(readReaction(other), undefined)
})
