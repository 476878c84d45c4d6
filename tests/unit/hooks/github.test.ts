import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { github } from '../../../src/hooks/sources/github'
import { objects } from '../../../src/hooks/fields'
import { assertReadable, assertSnapshot, isEvent, languages, render, requestOf } from './support'

const secret = 'a secret of sixteen or more'

const index: unknown = JSON.parse(readFileSync(require.resolve('@octokit/webhooks-examples/api.github.com/index.json'), 'utf8'))
const definitions = objects(index, Infinity).map(({ name, examples }) => ({ name: String(name), examples: objects(examples, Infinity) }))

function signed(event: string, payload: unknown) {
  const request = requestOf(payload, { 'x-github-event': event, 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958' })
  const signature = createHmac('sha256', secret).update(request.raw).digest('hex')
  return { ...request, headers: { ...request.headers, 'x-hub-signature-256': `sha256=${signature}` } }
}

describe('the examples of GitHub', () => {
  test('are all understood, and their texts can be read', async () => {
    const texts: string[] = []
    assert.equal(definitions.length, 58)
    for (const { name, examples } of definitions) {
      for (const payload of examples) {
        const request = signed(name, payload)
        assert(github.isSigned?.(request) && github.verify?.(request, secret))
        const reading = github.read(request)
        const what = `${name} ${typeof payload.action === 'string' ? payload.action : ''}`.trim()
        if (!isEvent(reading)) {
          texts.push(`== ${what}: ${reading.skipped}`)
          continue
        }
        const { branch = '', status = '', view } = reading
        assert.equal(reading.name, name)
        for (const lang of languages) {
          const text = await render(github, view, lang)
          assertReadable(text)
          texts.push(`== ${what} (${lang}) branch=${branch} status=${status}\n${text}`)
        }
      }
    }
    assertSnapshot('github', [...new Set(texts)])
  })
})
