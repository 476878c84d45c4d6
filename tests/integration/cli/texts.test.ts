import { spawn } from 'node:child_process'
import { truncate, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import type { TextId } from '../../../src/texts/table'
import { cli as table } from '../../../src/texts/table/cli'
import { temporaryFolder } from '../../support/folder'
import { listen } from '../../support/listen'
import { findProgram } from '../../support/programs'
import { Texts } from '../texts/support'
import { bundled, run } from './support'

/** Words of the command line, and the texts that it answers. */
type Row = readonly [ids: readonly TextId[], args: readonly string[], env?: Record<string, string>, stdin?: Buffer]

const folder = temporaryFolder()
const small = join(folder, 'small.txt')
const shrinking = join(folder, 'shrinking.txt')
const script = findProgram('script')
const terminal = ['cli-nothing-to-send', 'cli-progress'] as const
const send = (to: string): string[] => ['send', to, 'x', '--retry', '0']

const rows: readonly Row[] = [
  [['cli-address-wrong'], ['tail'], { RELAY_URL: 'ftp://a.example' }],
  [['cli-address-unset'], ['tail'], { RELAY_URL: '' }],
  [['cli-key-wrong'], ['tail'], { RELAY_KEY: '密钥' }],
  [['cli-key-unset'], ['tail'], { RELAY_KEY: '' }],
  [['cli-commands'], []],
  [['cli-no-such-command'], ['something']],
  [['cli-command-meant'], ['snd']],
  [['cli-options-wrong'], ['--nonsense']],
  [['cli-option-belongs'], ['tail', '--by', 'me']],
  [['cli-too-many-words'], ['tail', 'one', 'two']],
  [['cli-send-what-where'], ['send']],
  [['cli-status-of-what'], ['status']],
  [['cli-backup-where'], ['backup']],
  [['cli-run-what'], ['run']],
  [['cli-beat-or-ping'], ['run', '--', 'true']],
  [['cli-which-incident'], ['take']],
  [['cli-option-key'], ['send', 'ops', 'x', '--key', 'a b']],
  [['cli-option-seconds'], ['send', 'ops', 'x', '--wait', 'long']],
  [['cli-file-without-option'], ['send', 'ops', small, '-f', small]],
  [['cli-not-utf8'], ['send', 'ops'], {}, Buffer.from('b9b9', 'hex')],
  [['cli-no-file'], ['send', 'ops', '-f', folder]],
  [['cli-file-unreadable'], ['send', 'ops', '-f', join(folder, 'none')]],
  [['cli-file-unwritable'], ['backup', join(folder, 'none', 'backup.db')]],
  [['cli-saved'], ['backup', join(folder, 'backup.db')]],
  [['cli-file-shrank'], ['send', 'shrink', '-f', shrinking, '--retry', '2']],
  [['cli-unreachable'], send('ops'), { RELAY_URL: 'http://127.0.0.1:1' }],
  [['cli-unanswered', 'cli-connection-broke', 'cli-may-have-arrived'], send('broken')],
  [['cli-trying-again', 'cli-earlier-try'], ['send', 'broken-once', 'x', '--retry', '2']],
  [['cli-still-trying'], ['tail', 'away']],
  [['cli-no-relay'], send('no-relay')],
  [['cli-from-proxy'], send('proxy')],
  [['cli-denied'], send('denied')],
  [['cli-refused', 'cli-colon', 'cli-semicolon', 'cli-send-the-rest'], send('partly')],
  [['cli-unsent', 'cli-repeat-later'], send('unsent')],
  [['cli-repeat-the-rest'], send('some')],
  [['cli-start-not-told', 'cli-no-answer'], ['run', 'slow', '--', 'true']],
  [['cli-end-not-told'], ['run', 'unknown', '--', 'true']],
  [['cli-nobody-told'], ['run', 'job', '--', 'true'], { RELAY_URL: '' }],
  [['cli-demo-needs'], ['demo']],
  [['cli-cannot-run'], ['run', 'job', '--', 'no-such-command']],
]

describe('a text of the command line', { timeout: 120_000 }, () => {
  const texts = new Texts(table, {
    // tests/integration/bot/demo.test.ts starts it.
    demo: ['cli-demo', 'cli-demo-page', 'cli-demo-port'],
    ...!script && { terminal },
  })
  const requests = new Map<string, number>()
  const failed = { success: false, code: 502, msg: 'refused', outcome: 'refused' }
  const sent = { success: true, code: 0, msg: 'ok' }
  const envelope = (response: ServerResponse, status: number, data: object | null, outcome = ''): void => {
    response.writeHead(status, outcome === '' ? {} : { 'relay-outcome': outcome }).end(JSON.stringify({ code: status < 400 ? 0 : status, msg: 'no', data }))
  }
  /** The relay as it answers each target, the first time and later. */
  const answers: Record<string, (response: ServerResponse, times: number) => unknown> = {
    '/backup': response => response.writeHead(200, { 'content-type': 'application/vnd.sqlite3' }).end('SQLite'),
    '/send/shrink': response => truncate(shrinking, 3).finally(() => response.destroy()),
    '/send/broken': response => response.destroy(),
    '/send/broken-once': (response, times) => times === 1 ? response.destroy() : envelope(response, 400, null),
    '/deliveries': (response, times) => times === 1 ? response.destroy() : envelope(response, 401, null),
    '/send/no-relay': response => response.end('hello'),
    '/send/proxy': response => response.writeHead(413).end('too large'),
    '/send/denied': response => envelope(response, 401, null),
    '/send/partly': response => envelope(response, 200, { success: 1, results: [sent, failed] }),
    '/send/unsent': response => envelope(response, 503, null, 'unsent'),
    '/send/some': response => envelope(response, 200, { deliveries: [{ target: 'group:1', ...sent }, { target: 'group:2', ...failed, outcome: 'unsent' }] }),
    '/beats/unknown': response => envelope(response, 404, null),
    '/beats/slow': (response, times) => times === 1 ? undefined : envelope(response, 200, {}),
  }
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://a')
    const path = pathname.replace(/^(\/beats\/\w+).*/, '$1')
    const language = String(request.headers['accept-language'])
    const times = (requests.get(path + language) ?? 0) + 1
    requests.set(path + language, times)
    request.resume().once('end', () => (answers[path] ?? (each => envelope(each, 200, {})))(response, times))
  })
  let file: string
  let url: string
  before(async () => {
    [file, url] = await Promise.all([bundled('relay'), listen(server).then(port => `http://127.0.0.1:${port}`), writeFile(small, 'x')])
  })
  after(() => {
    server.closeAllConnections()
    server.close()
  })
  const localeOf = (lang: string): string => `${lang.replace('-', '_')}.UTF-8`

  describe('is printed', { concurrency: 4 }, () => {
    for (const [ids, args, env, stdin] of rows) {
      test(ids.join(', '), () => texts.meet(ids, async lang => {
        if (args.includes(shrinking)) await writeFile(shrinking, 'all of it')
        const { stdout, stderr } = await run(file, args, { PATH: process.env.PATH ?? '', RELAY_URL: url, RELAY_KEY: 'a-key', LANG: localeOf(lang), ...env }, stdin)
        return stdout + stderr
      }))
    }

    const within = async (command: string, args: readonly string[], lang: string): Promise<string> => {
      const env = { PATH: process.env.PATH ?? '', SHELL: '/bin/sh', RELAY_URL: url, RELAY_KEY: 'a-key', LANG: localeOf(lang) }
      const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
      const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
      return stdout + stderr
    }
    test('cli-input-unreadable', () => texts.meet(['cli-input-unreadable'], lang => within('sh', ['-c', `"${process.execPath}" "${file}" send ops - 0> "${join(folder, 'out')}"`], lang)))
    test(terminal.join(', '), { skip: script === undefined && 'no script on this machine' }, () => texts.meet(terminal, async lang => {
      const big = join(folder, `big-${lang}.bin`)
      await writeFile(big, Buffer.alloc(2_000_000))
      return within(script ?? '', ['-qec', ['', ` -f ${big}`].map(more => `"${process.execPath}" "${file}" send ops${more}`).join('; '), '/dev/null'], lang)
    }))
  })

  texts.complete()
})
