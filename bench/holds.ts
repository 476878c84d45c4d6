// Measures how long a single request keeps the relay from doing anything else: `node --import tsx bench/holds.ts`. Its bodies are the
// worst that are known, of 1 MiB and of 10 MiB.
import { endAll } from './lib/child'
import { apiKey, startRelay, type App } from './lib/apps'
import { Stage } from './lib/stage'
import { numberOf } from './lib/values'

const mebibyte = 1024 * 1024
/** How often each body is sent; the least of its holds counts, because the machine may be busy with something else. */
const rounds = 3

/** A body of about so many bytes. */
type Body = (size: number) => string

const target = '"group_id":"123456"'
const message = (text: string): string => `{${target},"msg":"${text}"}`
const link = (type: string, url: string): string => `{${target},"type":"${type}","url":"${url}"}`
const items = (item: string): string => `{${target},"messages":[${Array<string>(1000).fill(item).join(',')}]}`
const fill = (text: string, size: number): string => text.repeat(Math.floor(size / Buffer.byteLength(text)))

const bodies: Readonly<Record<string, Body>> = {
  'empty objects': size => `{${target},"messages":[${fill('{},', size)}{}]}`,
  'open brackets': size => fill('[', size),
  'open brackets in an extra field': size => `{${target},"msg":"x","more":${fill('[', size)}`,
  '20,000 long names': size => `{${target},"msg":"x"${Array.from({ length: 19_990 }, (_, index) => `,"${index}${fill('n', size / 20_000)}":0`).join('')}}`,
  'one name': size => `{${target},"msg":"x","${fill('n', size)}":0}`,
  'one number': size => `{${target},"msg":"x","more":${fill('9', size)}}`,
  'a text': size => message(fill('x', size)),
  'a Chinese text': size => message(fill('好', size)),
  'a text of escapes': size => message(fill('\\u597d', size)),
  'a text of quotes': size => message(fill('\\"', size)),
  'a text of line breaks': size => message(`x${fill('\\r\\n', size)}x`),
  'a text of blanks': size => message(fill(' ', size)),
  'a text of markup': size => message(fill('<[CQ:&amp;', size)),
  'a batch of texts': size => items(`{"msg":"${fill('x', size / 1000)}"}`),
  'a batch of wrong items': () => items('{"type":"image","url":"x"}'),
  'a batch of videos': size => items(`{"type":"video","url":"http://127.0.0.1:9/${fill('x', size / 1000)}"}`),
  'base64': size => link('image', `base64://${fill('A', size)}`),
  'base64 of the other alphabet': size => link('image', `base64://${fill('-_', size)}`),
  'base64 of padding': size => link('image', `base64://${fill('=', size)}A`),
  'a file of base64': size => link('file', `data:text/plain;base64,${fill('A', size)}`),
  'a media type': size => link('image', `data:${fill('x', size)}`),
  'a link': size => link('image', `http://127.0.0.1:9/${fill('x', size)}`),
  'a link of slashes': size => link('file', `http://127.0.0.1:9/./${fill('/', size)}`),
  'a link of dot segments': size => link('file', `http://127.0.0.1:9/${fill('a/../b/', size)}`),
  'a link of dots': size => link('file', `http://127.0.0.1:9/${fill('.', size)}`),
  'a link of escapes': size => link('file', `http://127.0.0.1:9/${fill('%25', size)}`),
  'a Chinese link': size => link('file', `http://127.0.0.1:9/${fill('好', size)}`),
  'a batch of Chinese hosts': size => items(`{"type":"image","url":"http://${fill('好.', Math.min(size / 1000, 3000))}com/"}`),
}

/** How long a request holds the event loop, in milliseconds, and how it is answered. */
async function hold({ child, url }: App, body: string, headers: Record<string, string>): Promise<{ held: number, status: number }> {
  await child.ask('watchDelay')
  const response = await fetch(`${url}/webhook`, { method: 'POST', body, headers: { 'x-api-key': apiKey, ...headers } })
  await response.arrayBuffer()
  return { held: numberOf(await child.ask('delay'), 'max'), status: response.status }
}

async function run(): Promise<void> {
  const stage = await Stage.create([])
  try {
    const app = await startRelay(stage, { config: { chatApiMaxRetries: 0, maxBodySize: 12 * mebibyte } })
    const only = process.argv[2]
    for (const [name, body] of Object.entries(bodies)) {
      if (only !== undefined && !name.includes(only)) continue
      const cells: string[] = []
      for (const size of [mebibyte, 10 * mebibyte]) {
        const text = body(size)
        for (const isKeyed of [false, true]) {
          let best = { held: Infinity, status: 0 }
          for (let round = 0; round < rounds; round++) {
            const headers: Record<string, string> = isKeyed ? { 'idempotency-key': `${name.replace(/\W/g, '-')}-${size}-${round}` } : {}
            const result = await hold(app, text, headers)
            if (result.held < best.held) best = result
          }
          cells.push(`${best.held.toFixed(0)} ms (${best.status})`)
        }
      }
      process.stdout.write(`| ${name} | ${cells.join(' | ')} |\n`)
    }
    await app.end()
  } finally {
    await endAll()
    await stage.remove()
  }
}

run().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
  process.exitCode = 1
})
