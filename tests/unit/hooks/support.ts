import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { Liquid } from 'liquidjs'
import { object } from '../../../src/hooks/fields'
import { tidy } from '../../../src/hooks/plain'
import type { HookEvent, HookRequest, Reading, Source } from '../../../src/hooks/source'
import { Templates } from '../../../src/hooks/templates'
import type { Language } from '../../../src/texts/language'
import { isObject, type JsonObject } from '../../../src/lib/shape'

process.env.TZ = 'Asia/Shanghai'

export const languages: readonly Language[] = ['zh-CN', 'en-US']

const fixtures = join(__dirname, '../../fixtures/hooks')

/** The host of which the fixtures have pictures that are shown. */
const templates = new Templates(join(fixtures, 'none'), ['grafana.example.com'])

/** What becomes of an event: the text as it is sent, and what is sent after it. */
export async function render(source: Source, view: JsonObject, lang: Language): Promise<string> {
  const { text, pictures } = await templates.render(source.name, view, lang)
  const below = pictures.map(link => link.kind === 'remote' ? `(picture: ${link.url})` : `(picture: ${link.kind})`)
  return [tidy(text), ...below].filter(each => each !== '').join('\n')
}

/** Renders as strictly as it gets, to find a variable that its view does not have. */
export async function renderStrictly(source: Source, view: JsonObject, lang: Language): Promise<void> {
  const liquid = new Liquid({ strictFilters: true, strictVariables: true, ownPropertyOnly: true })
  liquid.registerFilter('time', (value: unknown) => value)
  for (const tag of ['picture', 'severity']) liquid.registerTag(tag, { parse: () => undefined, render: () => undefined })
  const { template = '' } = await templates.find(source.name) ?? {}
  assert.notEqual(template, '')
  liquid.parseAndRenderSync(template, { ...view, lang })
}

/** What a source is sent: headers and a payload each. */
export function readFixtures(source: string): { name: string, request: HookRequest }[] {
  return readdirSync(join(fixtures, source)).sort().map(file => {
    const { headers, payload } = object(JSON.parse(readFileSync(join(fixtures, source, file), 'utf8')))
    const given: [string, string][] = Object.entries(object(headers)).map(([name, each]) => [name, String(each)])
    return { name: file.replace('.json', ''), request: requestOf(payload, Object.fromEntries(given)) }
  })
}

/** A request as the engine makes it of what was posted as JSON. */
export function requestOf(payload: unknown, headers: IncomingHttpHeaders = {}): HookRequest {
  const raw = Buffer.from(JSON.stringify(payload))
  return {
    headers: { 'content-type': 'application/json', ...headers }, query: new URLSearchParams(), raw, payload: isObject(payload) ? payload : {},
  }
}

export function isEvent(reading: Reading): reading is HookEvent {
  return 'view' in reading
}

/**
 * What is wrong with a text that is to be read in a chat.
 *
 * @param isPassedOn whether somebody has written it, with lines and links as they liked
 */
export function assertReadable(text: string, isPassedOn = false): void {
  assert.doesNotMatch(text, /\[object|undefined|null|NaN|\bfalse\b|\btrue\b/, text)
  assert.doesNotMatch(text, /\*\*|^#{1,6} |\]\(|^\||<!--|```/m, text)
  assert.doesNotMatch(text.replaceAll('\n', ''), /\p{Cc}/u)
  if (isPassedOn) return
  assert.doesNotMatch(text, /^\s|\s$|\n\s*\n|[^\S\n]{2,}|[^\S\n]\n/, `blanks or empty lines: ${JSON.stringify(text)}`)
  for (const line of text.split('\n')) assert(line.length <= 300, line)
  assert((text.match(/^https?:\/\//gm) ?? []).length <= 1, `more than one link: ${text}`)
}

/**
 * Compares texts with those of an earlier time, which somebody has read and found fit for a chat.
 * With UPDATE_SNAPSHOTS=1 they are written anew, to be read again.
 */
export function assertSnapshot(name: string, texts: readonly string[]): void {
  const path = join(__dirname, 'snapshots', `${name}.txt`)
  const all = `${texts.join('\n\n')}\n`
  if (process.env.UPDATE_SNAPSHOTS === '1') writeFileSync(path, all)
  assert.equal(all, readFileSync(path, 'utf8'))
}
