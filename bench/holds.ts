// Measures how long a single request blocks the relay: `node --import tsx bench/holds.ts [NAME]`. The bodies are the worst
// known ones, of 1 MiB and of 10 MiB, with and without a key. Each cell shows the blocked time and the processor time of the longest turn.
// The latter is the better measure if the machine is busy with other programs.
import { endAll } from './lib/child'
import { apiKey, startRelay, type App } from './lib/apps'
import { Stage } from './lib/stage'
import { numberOf } from './lib/values'

const mebibyte = 1024 * 1024
/** How often each body is sent. The smallest result counts, because the machine may be busy with other programs. */
const rounds = 3

/** Makes a body of about `size` bytes. */
type Body = (size: number) => string

const target = '"group_id":"123456"'
const message = (text: string): string => `{${target},"msg":"${text}"}`
const link = (type: string, url: string): string => `{${target},"type":"${type}","url":"${url}"}`
const items = (item: string): string => `{${target},"messages":[${Array<string>(1000).fill(item).join(',')}]}`
const fill = (text: string, size: number): string => text.repeat(Math.floor(size / Buffer.byteLength(text)))
/** Links of the maximum length. */
const links = (tail: string): Body => size => items(`{"type":"image","url":"http://127.0.0.1:9/${fill(tail, Math.min(size / 1000, 8100))}"}`)
const hosts = (host: string): Body => () => items(`{"type":"image","url":"http://${host}/"}`)
/** `count` characters from `first` on, no two neighbours consecutive: the slowest to convert to ASCII. */
const scattered = (first: number, count: number): string =>
  Array.from({ length: count }, (_, index) => String.fromCodePoint(first + index * 7919 % 250)).join('')

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
  'a batch of videos': size => items(`{"type":"video","url":"http://127.0.0.1:9/${fill('x', Math.min(size / 1000, 8100))}"}`),
  'base64': size => link('image', `base64://${fill('A', size)}`),
  'base64 of the other alphabet': size => link('image', `base64://${fill('-_', size)}`),
  'base64 of padding': size => link('image', `base64://${fill('=', size)}A`),
  'a file of base64': size => link('file', `data:text/plain;base64,${fill('A', size)}`),
  'a media type': size => link('image', `data:${fill('x', size)}`),
  'a link': size => link('image', `http://127.0.0.1:9/${fill('x', size)}`),
  'a file ID': size => link('file', `3f0c2f4e-1111-4222-8333-444455556666/${fill('x', size)}`),
  'a text of halves of surrogate pairs': size => message(fill('\\ud800', size)),
  'a media type of halves of surrogate pairs': size => link('image', `data:${fill('\\ud800', size)};base64,QQ==`),
  'links of slashes': links('/./'.padEnd(200, '/')),
  'links of dot segments': links('a/../b/'),
  'links of dots': links('.'),
  'links of dots in the query': links('?/.'),
  'links of backslashes': links('\\\\.'),
  'links of escapes': links('%25'),
  'links of escaped dots': links('/%2ex'),
  'Chinese links': links('好'),
  'links with a user name': size => items(`{"type":"image","url":"http://${fill('@', Math.min(size / 1000, 8000))}127.0.0.1:9/"}`),
  'Chinese hosts': hosts(`${fill('好', 186)}.${fill('好', 60)}`),
  'Latin hosts': hosts(`${scattered(0xc0, 63)}.${scattered(0xc0, 62)}`),
  'hosts of symbols for words': hosts(scattered(0x3300, 80)),
  'hosts of accents': hosts(`a${fill('\u0301\u0316\u0323\u0327', 120)}.a${fill('\u0301\u0316\u0323\u0327', 120)}`),
  'hosts in ASCII': hosts(`${fill('xn--5uy.', 240)}com`),
  'hosts of escapes': hosts(encodeURIComponent(fill('好', 80))),
  'hosts of digits': hosts(fill('1:', 240)),
}

interface Hold {
  /** How long a request blocks the event loop, and the processor time of its longest turn, in milliseconds. */
  held: number
  cpu: number
  /** The status of the answer. */
  status: number
}

async function hold({ child, url }: App, body: string, headers: Record<string, string>): Promise<Hold> {
  await child.ask('watchDelay')
  await child.ask('watchTurns')
  const response = await fetch(`${url}/webhook`, { method: 'POST', body, headers: { 'x-api-key': apiKey, ...headers } })
  await response.arrayBuffer()
  const { status } = response
  return { held: numberOf(await child.ask('delay'), 'max'), cpu: numberOf(await child.ask('longestTurn'), 'cpu'), status }
}

async function run(): Promise<void> {
  const stage = await Stage.create([])
  try {
    const [, , only] = process.argv
    const app = await startRelay(stage, { config: { chatApiMaxRetries: 0, maxBodySize: 12 * mebibyte } })
    for (const [name, body] of Object.entries(bodies)) {
      if (only !== undefined && !name.includes(only)) continue
      const cells: string[] = []
      for (const size of [mebibyte, 10 * mebibyte]) {
        const text = body(size)
        for (const isKeyed of [false, true]) {
          const holds: Hold[] = []
          for (let round = 0; round < rounds; round++) {
            const headers: Record<string, string> = isKeyed ? { 'idempotency-key': `${name.replace(/\W/g, '-')}-${size}-${round}` } : {}
            holds.push(await hold(app, text, headers))
          }
          const [held, cpu] = [Math.min(...holds.map(({ held }) => held)), Math.min(...holds.map(({ cpu }) => cpu))]
          cells.push(`${held.toFixed(0)}, ${cpu.toFixed(0)} ms (${holds[0]?.status})`)
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
