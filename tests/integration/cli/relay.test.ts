import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, request, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { temporaryFolder } from '../../support/folder'
import { listen, serve } from '../../support/listen'
import { freePort } from '../../support/process'
import { findProgram } from '../../support/programs'
import { apiKey } from '../../support/relay'
import { until } from '../../support/until'
import { group, useStored } from '../deliveries/support'
import { bundled, run, type Ended } from './support'

type Respond = (status: number, headers: Record<string, string>, msg: string, data?: object) => void

describe('the command line', { timeout: 180_000 }, () => {
  const keys = [{ name: 'narrow', key: 'the-secret-of-narrow', targets: ['group:1'] }]
  let file: string
  const folder = temporaryFolder()

  const targets = { ops: `group:${group}`, both: [`group:${group}`, 'private:10001'], pager: { to: `group:${group}`, ack: { from: 'warning' } } }
  const relay = useStored({ config: { keys, targets, chatApiTimeout: 0.3, chatApiMaxRetries: 0 } })
  before(async () => {
    file = await bundled('relay')
  })

  const cli = (args: readonly string[], env: Record<string, string> = {}, stdin?: string | Buffer): Promise<Ended> =>
    run(file, args, { RELAY_URL: relay.url, RELAY_KEY: apiKey, ...env }, stdin)

  test('sends a text, and prints the outcome and the delivery', async () => {
    const { code, stdout, stderr } = await cli(['send', 'ops', 'all is well'])
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
    assert.match(stdout, /^sent [0-9a-f-]{36}\n$/)
    assert.deepEqual(relay.texts(), ['all is well'])
  })

  test('takes the text from standard input, without the line end of echo', async () => {
    assert.equal((await cli(['send', 'ops'], {}, 'one\n\n')).code, 0)
    assert.equal((await cli(['send', 'ops', '-'], {}, '第二\r\n')).code, 0)
    assert.equal((await cli(['send', 'ops'], {}, 'x')).code, 0)
    assert.deepEqual(relay.texts(), ['one\n', '第二', 'x'])
    assert.equal((await cli(['send', 'ops'], {}, '')).code, 64)
  })

  test('says how to convert a text that is not UTF-8, and sends no file without it', async () => {
    const gbk = Buffer.from('b9b9bdacaab0dc', 'hex')
    const { code, stderr } = await cli(['send', 'ops', '-', '-f', file], {}, gbk)
    assert.equal(code, 64)
    assert.match(stderr, /not UTF-8: convert it \(chcp 65001/)
    // As `tail -c` cuts it.
    assert.equal((await cli(['send', 'ops'], {}, Buffer.from('构建失败').subarray(1, -1))).code, 0)
    assert.deepEqual(relay.texts(), ['建失'])
  })

  test('sends files by type under their names, and a text with them', async () => {
    await writeFile(join(folder, 'chart.png'), 'a picture')
    await writeFile(join(folder, '报告 "1".txt'), 'all is well')
    const { code, stdout } = await cli(['send', 'ops', 'see', '-f', join(folder, 'chart.png'), '-f', join(folder, '报告 "1".txt'), '--json'])
    assert.equal(code, 0, stdout)
    const { outcome, data } = JSON.parse(stdout) as { outcome: string, data: { total: number } }
    assert.deepEqual([outcome, data.total], ['sent', 3])
    const [message, upload] = relay.simulator.ledger
    assert.deepEqual([message?.text.startsWith('see'), message?.media.map(({ type }) => type)], [true, ['image']])
    assert.match(upload?.media[0]?.name ?? '', /^报告 .*1.*\.txt$/)
  })

  test('passes thread, urgency and time on', async () => {
    let asked = ''
    const url = await answering((respond, path) => {
      asked = path
      respond(200, { 'relay-outcome': 'sent' }, 'ok')
    })
    assert.equal((await cli(['send', 'ops,group:1', 'x', '--thread', 'a&b', '--urgent', '--at', '2026-11-20T18:00:00+08:00'], { RELAY_URL: url })).code, 0)
    assert.equal(asked, '/send/ops,group%3A1?thread=a%26b&urgent=1&send_at=2026-11-20T18%3A00%3A00%2B08%3A00')
    assert.equal((await cli(['send', 'ops', 'first', '--thread', 'a&b', '--urgent'])).code, 0)
    assert.equal((await relay.list()).filter(({ urgent }) => urgent === true).length, 1)
    const { code, stdout } = await cli(['send', 'ops', 'third', '--at', '2999-01-01T00:00:00+08:00'])
    assert.deepEqual([code, stdout], [64, ''])
    assert.equal((await cli(['send', 'ops', 'third', '--at', '3600', '--json'])).code, 0)
    assert.equal((await relay.list())[0]?.state, 'scheduled')
  })

  test('ends with 0 and what was accepted, where it waits for less than it takes', async () => {
    relay.simulator.fault({ fault: { kind: 'muted' }, times: Infinity })
    const { code, stdout } = await cli(['send', 'group:7', 'later', '--wait', '0'])
    assert.equal(code, 0)
    assert.match(stdout, /^accepted [0-9a-f-]{36}\n$/)
    assert.equal((await cli(['status', stdout.trim().slice(9)])).code, 0)
    await relay.ask(`/deliveries/${stdout.trim().slice(9)}`, 'DELETE')
  })

  test('ends with 1 where it was refused', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    const { code, stdout, stderr } = await cli(['send', 'group:5', 'no', '--json'])
    assert.equal(code, 1)
    assert.match(stderr, /^relay: refused: the platform refused the message/)
    const { data } = JSON.parse(stdout) as { data: { delivery_id: string } }
    const shown = await cli(['status', data.delivery_id])
    assert.equal(shown.code, 1)
    assert.match(shown.stdout, /^\S+Z failed group:5 /)
    relay.simulator.fault({ action: /upload/, fault: { kind: 'refuse' }, times: Infinity })
    for (const to of ['group:5', 'group:5,group:6']) {
      const partly = await cli(['send', to, 'yes', '-f', __filename])
      assert.equal(partly.code, 1)
      assert.match(partly.stderr, /^relay: refused: .*; the rest has arrived, so send only this again\n$/)
    }
  })

  test('ends with 2 where nothing was sent, or no connection was made', async () => {
    const unsent = await cli(['send', 'ops', 'no', '--retry', '0'], { RELAY_URL: await answering(t => t(503, { 'relay-outcome': 'unsent' }, 'no bot is online')) })
    assert.equal(unsent.code, 2)
    assert.match(unsent.stderr, /^relay: unsent: no bot is online; repeat it later with --key \S+, and it will not come twice\n$/)
    const { code, stderr } = await cli(['send', 'ops', 'no', '--retry', '1'], { RELAY_URL: `http://127.0.0.1:${await freePort()}` })
    assert.equal(code, 2)
    assert.match(stderr, /cannot reach the relay \(connect ECONNREFUSED .*\); trying again in 1 s\n.*relay: unsent: cannot reach/s)
  })

  test('ends with 3 where it was not answered, or the connection broke', async () => {
    relay.simulator.fault({ fault: { kind: 'silent' } })
    relay.simulator.fault({ action: /history/, fault: { kind: 'refuse' }, times: Infinity })
    const { code, stderr } = await cli(['send', 'group:6', 'perhaps', '--key', 'mine'])
    assert.equal(code, 3, stderr)
    assert.match(stderr, /^relay: unanswered: .* --key mine,/)
    const broken = await cli(['send', 'ops', 'perhaps', '--retry', '0'], { RELAY_URL: await losing(Infinity) })
    assert.equal(broken.code, 3, broken.stderr)
  })

  test('sends once although the first answer is lost', async () => {
    const { code, stderr } = await cli(['send', 'ops', 'once'], { RELAY_URL: await losing(1) })
    assert.equal(code, 0)
    assert.match(stderr, /^relay: the connection to the relay broke .*; trying again in 1 s\n$/)
    assert.deepEqual(relay.texts(), ['once'])
  })

  test('asks again after 409 and 503, when it is told to', async () => {
    const answers = [[409, 'still under way'], [503, 'paused']] as const
    let tries = 0
    const url = await answering(respond => {
      const [status, msg] = answers[tries++] ?? [200, 'ok']
      respond(status, status === 200 ? { 'relay-outcome': 'sent' } : { 'retry-after': '0' }, msg)
    })
    const { code, stderr } = await cli(['send', 'ops', 'x'], { RELAY_URL: url })
    assert.deepEqual([code, tries], [0, 3])
    assert.equal(stderr, 'relay: still under way; trying again in 1 s\nrelay: paused; trying again in 1 s\n')
  })

  test('waits a second at least, whatever a proxy gives as Retry-After, and ends if that is longer than it may repeat', async () => {
    const given = ['0', '0.001', '-5', 'Thu, 01 Jan 1970 00:00:00 GMT', 'soon', '']
    await Promise.all(given.map(async after => {
      const asked: number[] = []
      const url = await answering(respond => respond(asked.push(performance.now()) > 1 ? 200 : 429, { 'retry-after': after, 'relay-outcome': 'sent' }, 'busy'))
      assert.equal((await cli(['send', 'ops', 'x'], { RELAY_URL: url })).code, 0)
      assert((asked[1] ?? 0) - (asked[0] ?? 0) >= 950, after)
    }))
    for (const after of ['61', '99999999999', 'Fri, 01 Jan 2100 00:00:00 GMT']) {
      let tries = 0
      const url = await answering(respond => respond(++tries > 1 ? 400 : 503, { 'retry-after': after, 'relay-outcome': 'unsent' }, 'busy'))
      assert.deepEqual([(await cli(['send', 'ops', 'x'], { RELAY_URL: url })).code, tries], [2, 1], after)
    }
  })

  test('asks again while the relay starts anew, and for the targets of which the first request is under way', async () => {
    let tries = 0
    const url = await answering((respond, _path, response) => {
      const entry = { target: 'group:1', delivery_id: 'a', success: true, message_ids: ['1'] }
      const waits = { target: 'group:2', success: false, code: 409, msg: 'under way', retry_after: 1 }
      if (++tries === 1) respond(503, { 'relay-outcome': 'unsent' }, 'the relay is stopping')
      else if (tries === 2) response.writeHead(502).end('<html>')
      else respond(200, {}, 'ok', { deliveries: [entry, tries === 3 ? waits : { ...entry, target: 'group:2' }] })
    })
    const { code, stdout, stderr } = await cli(['send', 'group:1,group:2', 'x'], { RELAY_URL: url })
    assert.deepEqual([code, tries], [0, 4], stderr)
    assert.equal(stdout, 'sent group:1 a\nsent group:2 a\n')
    assert.match(stderr, /^relay: the relay is stopping; .*\n.*it answered \(502 .*\n.*group:2: under way; trying again in \d s\n$/)
  })

  test('a failure of a later try does not say that an earlier one did nothing', async () => {
    const path = join(folder, 'shrinks.txt')
    for (const [status, headers] of [[401, {}], [413, {}], [503, { 'relay-outcome': 'unsent' }], [0, {}]] as const) {
      await writeFile(path, 'all of it')
      let tries = 0
      const url = await answering((respond, _path, response) => {
        if (tries++ > 0) respond(status, headers, 'no')
        else void truncate(path, status ? undefined : 3).finally(() => response.destroy())
      })
      const { code, stderr } = await cli(['send', 'ops', 'x', ...status ? [] : ['-f', path], '--key', 'mine', '--retry', '2'], { RELAY_URL: url })
      assert.equal(code, 3, `${status}: ${stderr}`)
      assert.match(stderr, /an earlier try got no answer; the last one: .*; it may have arrived; repeat it with --key mine,/)
    }
  })

  test('status does not call a message unsent where it was not told', async () => {
    for (const url of ['http://127.0.0.1:1', await answering(respond => respond(503, { 'relay-outcome': 'unsent' }, 'the relay cannot use its data file'))]) {
      const { code, stdout, stderr } = await cli(['status', 'x'], { RELAY_URL: url })
      assert.deepEqual([code, stdout], [3, ''])
      assert.match(stderr, /^relay: (?:cannot reach the relay \(.+\)|the relay cannot use its data file)\n$/)
    }
    assert.equal((await cli(['status', 'x'], { RELAY_KEY: 'wrong' })).code, 77)
  })

  test('a body that came too slowly is unsent, and no wrong usage', async () => {
    const url = await answering(respond => respond(408, {}, 'the request body arrived too slowly'))
    assert.equal((await cli(['send', 'ops', 'x', '--retry', '0'], { RELAY_URL: url })).code, 2)
  })

  test('takes targets with blanks behind the commas', async () => {
    const { code, stdout, stderr } = await cli(['send', 'ops, private:10001', 'x'])
    assert.equal(code, 0, stderr)
    assert.equal(stdout.trim().split('\n').length, 2)
  })

  test('takes an unknown command for no text, and names the one that it is near', async () => {
    for (const [args, told] of [
      [['snd', 'ops', 'hello'], /^relay: there is no command "snd": did you mean relay send\? Otherwise see relay --help\n$/],
      [['sned', 'ops', '--urgent'], /did you mean relay send\?/], [['Status', 'x', 'y'], /did you mean relay status\?/], [['tial'], /did you mean relay tail\?/],
      [['ops', 'hello'], /^relay: there is no command "ops": the commands are send, status, tail, backup, incidents, take, silence, resolve, release, run, demo, see/],
    ] as const) {
      const { code, stdout, stderr } = await cli(args)
      assert.deepEqual([code, stdout], [64, ''])
      assert.match(stderr, told)
    }
    assert.deepEqual(relay.simulator.ledger, [])
  })

  test('ends with 64 for wrong usage and wrong requests', async () => {
    for (const args of [[], ['sned'], ['send'], ['send', 'ops', 'a', 'b'], ['send', 'ops', 'a', '--wait', 'x'], ['status', 'x', '--urgent'], ['--nonsense'], ['send', 'nobody', 'a'], ['send', 'ops', '-f', folder], ['send', 'ops', '-f', '/none'], ['send', 'ops', '-f', file, file], ['status', 'no-such']]) {
      const { code, stdout, stderr } = await cli(args)
      assert.deepEqual([code, stdout], [64, ''], args.join(' '))
      assert.match(stderr, /^relay: .+\n$/)
    }
    for (const env of [['RELAY_URL', ''], ['RELAY_KEY', ''], ['RELAY_URL', 'ftp://x'], ['RELAY_KEY', '密钥']] as const) {
      const { code, stderr } = await cli(['send', 'ops', 'a'], { [env[0]]: env[1] })
      assert.equal(code, 64)
      assert(!stderr.includes('密钥'))
    }
    assert.equal((await cli(['send', 'ops', 'a'], { RELAY_URL: `${relay.url}/elsewhere` })).code, 64)
  })

  test('ends with 77 where the key is wrong or may not do it, without naming it', async () => {
    const [stranger, narrow] = [await cli(['send', 'ops', 'a', '--api-key', 'wrong-key']), await cli(['send', 'ops', 'a'], { RELAY_KEY: 'the-secret-of-narrow' })]
    assert.deepEqual([stranger.code, narrow.code], [77, 77])
    assert.match(stranger.stderr, /^relay: the API key is wrong or expired/m)
    assert.match(narrow.stderr, /^relay: this key may not send to /)
    assert(!/wrong-key|secret/.test(stranger.stderr + narrow.stderr))
  })

  test('the outcome of several targets is the worst of them', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse' }, target: '10001' })
    const { code, stdout, stderr } = await cli(['send', 'both', 'x'])
    assert.equal(code, 1)
    assert.match(stdout, new RegExp(`^sent group:${group} \\S+\nrefused private:10001 \\S+\n$`))
    assert.match(stderr, /^relay: refused: private:10001: the platform refused/)
  })

  test('says how to send the rest, and not that nothing was sent, where a part arrived', async () => {
    const { code, stdout, stderr } = await cli(['send', `group:${group},discord:group:3`, 'x', '--key', 'mine', '--retry', '0'])
    assert.equal(code, 2)
    assert.match(stdout, /^sent \S+ \S+\nunsent \S+ \S+\n$/)
    assert.match(stderr, /; repeat it with --key mine, and it goes only where nothing has arrived\n$/)
    assert.equal((await cli(['send', `group:${group},discord:group:3`, 'x', '--key', 'mine', '--retry', '0'])).code, 2)
    assert.deepEqual(relay.texts(), ['x'])
    const data = { success: 1, results: [{ index: 0, success: true }, { index: 1, success: false, msg: 'no bot is online', outcome: 'unsent' }] }
    const batch = await cli(['send', 'ops', 'x'], { RELAY_URL: await answering(respond => respond(200, {}, 'ok', data)) })
    assert.deepEqual([batch.code, batch.stderr], [2, 'relay: unsent: no bot is online; the rest has arrived, so send only this again\n'])
  })

  test('names an answer that is not from a relay', async t => {
    const ask = async (status: number, page = '<html>'): Promise<Ended> => {
      const url = await serve(t, (request, response) => void request.resume().once('end', () => response.writeHead(status).end(page)))
      return await cli(['send', 'ops', 'x', '--retry', '0'], { RELAY_URL: url })
    }
    for (const [status, expected] of [[200, 64], [301, 64], [401, 77], [403, 77], [404, 64], [413, 64], [502, 3]] as const) {
      const { code, stderr } = await ask(status)
      assert.equal(code, expected, stderr)
      assert.match(stderr, new RegExp(`${status}.*not (?:that of|from) (?:a|the) relay`))
    }
    // As some gateways tell that somebody is not logged in.
    assert.equal((await ask(200, '{"code": 401, "msg": "log in", "data": null}')).code, 64)
  })

  test('keeps its exit code where nobody reads what it prints', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse' }, times: Infinity })
    const child = spawn(process.execPath, [file, 'send', 'group:5', 'no', '--json'], { env: { RELAY_URL: relay.url, RELAY_KEY: apiKey } })
    child.stdout.destroy()
    await once(child, 'close')
    assert.equal(child.exitCode, 1)
  })

  test('tail prints the last ten deliveries, then each new one, and each change of its state', async t => {
    const ids: unknown[] = []
    for (let index = 0; index < 11; index++) ids.push((await relay.post({ to: 'ops', msg: `${index}` })).data.delivery_id)
    const child = spawn(process.execPath, [file, 'tail', 'ops'], { env: { RELAY_URL: relay.url, RELAY_KEY: apiKey } })
    t.after(() => child.kill())
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => text += chunk)
    await until('the last one is printed', () => text.includes(`${String(ids.at(-1))} "10"\n`))
    // The ID of its delivery is as old as its request.
    const upload = request(`${relay.url}/send/ops/slow.txt`, { method: 'PUT', headers: { 'x-api-key': apiKey, 'content-length': 2 } })
    upload.write('x')
    const id = await relay.queue('soon', { send_at: 3 })
    await until('it is printed', () => text.includes(` scheduled group:${group} ${id}`))
    await until('its change is printed', () => text.includes(` sent group:${group} ${id}`))
    const next = await relay.queue(`after  the\nupload began ${'字'.repeat(60)}`)
    await until('it is printed', () => text.includes(` sent group:${group} ${next} "after the upload began ${'字'.repeat(37)}…"\n`))
    upload.end('y')
    const [response] = await once(upload, 'response') as [IncomingMessage]
    const { data } = await json(response) as { data: { delivery_id: string } }
    await until('the upload is printed', () => text.includes(` sent group:${group} ${data.delivery_id} "[file slow.txt]"`))
    const printed = text.trim().split('\n').map(line => line.split(' ')[3])
    assert.deepEqual(printed.filter(each => each !== next), [...ids.slice(1), id, id, data.delivery_id], text)
  })

  test('shows on a terminal how far a big file is, and nowhere else', async t => {
    const big = join(folder, 'big.bin')
    await writeFile(big, Buffer.alloc(3_000_000))
    const url = await answering(t => t(200, { 'relay-outcome': 'sent' }, 'ok'))
    assert.equal((await cli(['send', 'ops', '-f', big], { RELAY_URL: url })).stderr, '')
    const script = findProgram('script')
    if (!script) {
      t.skip('no script on this machine')
      return
    }
    const command = [process.execPath, file, 'send', 'ops', '-f', big].join(' ')
    // Asynchronous, because this process answers it.
    const child = spawn(script, ['-qec', command, '/dev/null'], { env: { RELAY_URL: url, RELAY_KEY: apiKey, PATH: '/usr/bin:/bin', SHELL: '/bin/sh' } })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => text += chunk)
    await once(child, 'close')
    assert.match(text, /\rrelay: \d+% of 3\.0 MB.*\rrelay: 100% of 3\.0 MB/s)
  })

  test('saves a backup, which takes the place of one before, and leaves that alone if it gets none', async () => {
    const backup = join(folder, 'backup.db')
    await writeFile(backup, 'the one before')
    for (const [code, env] of [[77, { RELAY_KEY: 'the-secret-of-narrow' }], [64, { RELAY_URL: await answering(t => t(200, {}, 'ok')) }]] as const) {
      assert.equal((await cli(['backup', backup], env)).code, code)
    }
    const broken = await answering((_, path, response) => {
      assert.equal(path, '/backup')
      response.writeHead(200, { 'content-type': 'application/vnd.sqlite3', 'content-length': 1000 }).write('SQLite', () => response.destroy())
    })
    const { code, stderr } = await cli(['backup', backup], { RELAY_URL: broken })
    assert.deepEqual([code, await readFile(backup, 'utf8')], [3, 'the one before'])
    assert.match(stderr, /^relay: the connection to the relay broke before it answered/)
    const saved = await cli(['backup', backup])
    assert.deepEqual({ ...saved, stdout: '' }, { code: 0, stdout: '', stderr: '' })
    assert.match(saved.stdout, /backup\.db: \d+\.\d MB; it holds API keys and messages, so guard it\n$/)
    assert.match(await readFile(backup, 'latin1'), /^SQLite format 3\0/)
    assert.equal((await stat(backup)).mode & 0o777, 0o600)
    assert.deepEqual(JSON.parse((await cli(['backup', backup, '--json'])).stdout), { file: backup, size: (await stat(backup)).size })
    assert.deepEqual((await readdir(folder)).filter(name => name.startsWith('backup')), ['backup.db'])
    const unwritable = await cli(['backup', join(folder, 'none', 'backup.db')])
    assert.equal(unwritable.code, 64)
    assert.match(unwritable.stderr, /^relay: cannot write .*backup\.db \(ENOENT\)\n$/)
    assert.equal((await cli(['backup'])).code, 64)
  })

  test('lists incidents, and takes, silences, releases and resolves one', async () => {
    for (const [thread, msg] of [['a', '磁盘已满\u0007'], ['b', 'the backup failed']]) await relay.post({ to: 'pager', msg, severity: 'critical', thread })
    const listed = await cli(['incidents', 'pager'])
    assert.deepEqual([listed.code, listed.stderr], [0, ''])
    assert.match(listed.stdout, /^\w{5}  open {6}critical  \S+Z  pager  the backup failed\n\w{5}  open {6}critical  \S+Z  pager  磁盘已满 \n$/)
    const id = listed.stdout.slice(0, 5)
    const states: unknown[] = []
    for (const args of [['take', id, '--by', '李雷'], ['take', id], ['silence', id, '2h'], ['release', id], ['release', id], ['resolve', id]]) {
      const { code, stdout, stderr } = await cli(args)
      assert.deepEqual([code, stderr], [0, ''])
      states.push(stdout.replace(/ {2}\S+Z/, '').slice(7, -1))
    }
    const about = 'critical  pager'
    assert.deepEqual(states, [
      `taken     ${about}  李雷  the backup failed`, `taken     ${about}  李雷  the backup failed`, `silenced  ${about}  李雷  the backup failed`,
      `taken     ${about}  李雷  the backup failed`, `open      ${about}  the backup failed`, `resolved  ${about}  the backup failed`,
    ])
    const { incidents } = JSON.parse((await cli(['incidents', '--json'])).stdout) as { incidents: { id: string }[] }
    assert(incidents.length === 1 && incidents[0]?.id !== id)
    for (const [args, code, problem] of [
      [['take'], 64, 'which incident? Write relay take <incident>'], [['take', 'none/..'], 64, 'no such incident'], [['take', id, '2h'], 64, 'too many words'],
      [['silence', id, 'long'], 64, 'until must be'], [['incidents', '--by', 'me'], 64, '--by belongs to take'], [['incidents', 'group:1'], 64, 'target must be'],
    ] as const) {
      const ended = await cli(args)
      assert.deepEqual([ended.code, ended.stderr.startsWith(`relay: ${problem}`)], [code, true], ended.stderr)
    }
    assert.equal((await cli(['take', id], { RELAY_KEY: 'the-secret-of-narrow' })).code, 77)
  })

  test('tells its version and its help', async () => {
    assert.match((await cli(['--version'])).stdout, /^\d+\.\d+\.\d+\n$/)
    assert.match((await cli(['send', '--help'])).stdout, /^Usage:/)
  })

  test('speaks Chinese in a Chinese locale, and so does the relay', async () => {
    const chinese = { LANG: 'zh_CN.UTF-8' }
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    const refused = await cli(['send', 'group:5', 'no'], chinese)
    assert.deepEqual([refused.code, refused.stdout], [1, `refused ${String((await relay.list())[0]?.id)}\n`])
    assert.match(refused.stderr, /^relay: 被拒绝：平台拒绝了这条消息/)
    let asked: unknown
    const url = await answering((respond, _path, _response, headers) => {
      asked = headers['accept-language']
      respond(503, { 'relay-outcome': 'unsent' }, '没有机器人在线')
    })
    const unsent = await cli(['send', 'ops', 'x', '--retry', '0', '--key', 'mine'], { ...chinese, RELAY_URL: url })
    assert.deepEqual([unsent.stderr, asked], ['relay: 未发出：没有机器人在线；请稍后用 --key mine 重发，不会重复\n', 'zh-CN'])
    for (const [args, told] of [
      [['snd'], /^relay: 没有 "snd" 这个命令：是不是 relay send？/], [['ops'], /可用的命令有 send、status、/],
      [['incidents', '--by', 'me'], /--by 只能用于 take、/],
      [['--nonsense'], /^relay: 选项有误（Unknown option '--nonsense'.*）：/], [['send', 'ops', '-f', '/none'], /^relay: 无法读取 \/none（ENOENT）\n$/],
    ] as const) {
      const { code, stderr } = await cli(args, chinese)
      assert.deepEqual([code, told.test(stderr)], [64, true], stderr)
    }
    const [help, inChinese] = [await cli(['--help']), await cli(['--help'], chinese)]
    const named = (text: string): string[] => [...text.matchAll(/--[a-z-]+|^ {2}relay [a-z|]+/gm)].map(String)
    assert.deepEqual(named(inChinese.stdout), named(help.stdout))
    for (const [env, start] of [
      [{ LC_ALL: 'C', ...chinese }, 'Usage'], [{ LC_ALL: '', LC_MESSAGES: 'zh_TW', LANG: 'en_US' }, '用法'], [{ LC_MESSAGES: 'en_US', ...chinese }, 'Usage'],
    ] as const) assert.equal((await cli(['-h'], env)).stdout.slice(0, start.length), start)
  })

  /** A server that answers each request like this. */
  async function answering(
    answer: (respond: Respond, path: string, response: ServerResponse, headers: IncomingHttpHeaders) => void,
  ): Promise<string> {
    const server = createHttpServer((request, response) => {
      const respond: Respond = (status, headers, msg, data) => {
        response.writeHead(status, headers).end(JSON.stringify({ code: status < 400 ? 0 : status, msg, data: data ?? null }))
      }
      request.resume().once('end', () => answer(respond, request.url ?? '', response, request.headers))
    })
    after(() => server.close())
    return `http://127.0.0.1:${await listen(server)}`
  }

  /** A way to the relay on which the first answers are lost. */
  async function losing(count: number): Promise<string> {
    let lost = 0
    const proxy = createServer(client => {
      const server = connect(Number(new URL(relay.url).port), '127.0.0.1')
      client.on('error', () => server.destroy()).on('close', () => server.destroy()).pipe(server)
      server.on('error', () => client.destroy()).on('data', (chunk: Buffer) => lost++ < count ? client.destroy() : client.write(chunk))
    })
    after(() => proxy.close())
    return `http://127.0.0.1:${await listen(proxy)}`
  }
})
