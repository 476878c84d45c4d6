import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { request } from 'node:http'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, describe, test, type TestContext } from 'node:test'
import { text } from 'node:stream/consumers'
import { isObject } from '../../../src/lib/shape'
import { marked, pageAt } from '../../docs/support/pages'
import { temporaryFolder } from '../../support/folder'
import { serve } from '../../support/listen'
import { end, freePort } from '../../support/process'
import { DebianPrograms } from '../../support/programs'
import { apiKey, startRelay, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { group, kinds, post, texts } from './support'

/*
 * Programs as Debian has them, told nothing but what the recipes say.
 */

let relay: TestRelay
const folder = temporaryFolder()
let start = 0

/** One with signs that mean something in an address. */
const key = 'a/key@with:signs?&#+%'

/** One that Rocket.Chat could have. */
const letters = 'keyOfLetters1234567'

before(async () => {
  const keys = [key, letters].map((each, index) => ({ name: `key-${index}`, key: each, allow: ['hooks'] }))
  relay = await startRelay({ config: { targets: { ops: `group:${group}` }, keys } })
})
after(() => relay.stop())
afterEach(() => {
  relay.simulator.clear()
  start = relay.logs.length
})

/** How many hooks of this test have been answered with this status. */
function answers(status: number): number {
  return relay.logs.slice(start).filter(line => line.includes('POST /hooks/') && line.includes(` ${status} `)).length
}

/** A block of a page about systems that post, with what a reader replaces replaced. */
function documented(name: string, mark: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((found, [part, replacement]) => {
    assert(found.includes(part), `${mark} no longer has ${part}`)
    return found.replace(part, replacement)
  }, marked(pageAt(`docs/doors/${name}.md`), mark))
}

const alertmanagers = new DebianPrograms('Alertmanager', 'prometheus-alertmanager', ['prometheus-alertmanager'])

describe('Prometheus Alertmanager', { skip: alertmanagers.missing, timeout: 120_000 }, () => {
  let alerts = 0
  /** One that none of the other tests tells of: what has the same name and start is the same alert. */
  const newAlert = (instance = 'db-1') => ({
    labels: { alertname: 'HostDown', instance, severity: 'critical' },
    annotations: { summary: `${instance} [CQ:at,qq=all] is down` },
    startsAt: new Date(Date.UTC(2026, 10, 22, 1, ++alerts)).toISOString(),
    generatorURL: 'http://prometheus.example.com/graph?g0.expr=up',
  })
  const link = String.raw`\nhttp:\/\/prometheus\.example\.com\/graph\?g0\.expr=up$`
  const facts = String.raw`\nseverity=critical, instance=db-1\ndb-1 \[CQ:at,qq=all\] is down`
  const firing = new RegExp(`^🔥 告警：HostDown${facts}（[^）]+ 起）${link}`)
  const resolved = new RegExp(`^✅ 已恢复：HostDown${facts}（[^）]+ 至 [^）]+）${link}`)

  /** What the page has its reader enter. */
  async function receivers(): Promise<unknown> {
    const keyFile = join(folder, 'relay-key')
    await writeFile(keyFile, `${apiKey}\n`)
    const config = load(documented('alerts', 'recipe-alertmanager', {
      'https://relay.example.com': relay.url, '/etc/alertmanager/relay-key': keyFile,
    }))
    assert(isObject(config))
    return config.receivers
  }

  /** Starts one that tells of alerts at once, and again twice a second unless told otherwise. */
  async function run(t: TestContext, chat?: object, repeat = '500ms'): Promise<(...alerts: readonly object[]) => Promise<void>> {
    const own = temporaryFolder()
    await writeFile(join(own, 'alertmanager.yml'), JSON.stringify({
      route: { receiver: 'chat', group_by: ['alertname'], group_wait: '100ms', group_interval: '500ms', repeat_interval: repeat },
      receivers: chat ? [{ name: 'chat', ...chat }] : await receivers(),
    }))
    const port = await freePort()
    const child = spawn(alertmanagers.path('prometheus-alertmanager'), [
      `--config.file=${own}/alertmanager.yml`, `--storage.path=${own}/data`, `--web.listen-address=127.0.0.1:${port}`,
      '--web.external-url=http://alerts.example.com', '--web.route-prefix=/', '--cluster.listen-address=', '--log.level=error',
    ], { stdio: ['ignore', 'ignore', 'pipe'] })
    t.after(() => end(child))
    let complaints = ''
    child.stderr.on('data', (chunk: Buffer) => complaints += chunk.toString())
    const url = `http://127.0.0.1:${port}`
    await until('Alertmanager is ready', () => {
      assert(child.exitCode === null, `Alertmanager has ended: ${complaints}`)
      return fetch(`${url}/-/ready`).then(({ ok }) => ok, () => false)
    })
    return async (...alerts) => {
      const response = await fetch(`${url}/api/v2/alerts`, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(alerts),
      })
      assert.equal(response.status, 200, await response.text())
    }
  }

  test('tells once that an alert fires, however often it repeats that, and once that it is over', async t => {
    const tell = await run(t)
    const alert = newAlert()
    await tell(alert)
    await until('it has repeated that', () => answers(200) >= 3)
    assert.equal(texts(relay).length, 1)
    assert.match(texts(relay).join(), firing)
    assert.deepEqual(kinds(relay), ['text'])
    await tell({ ...alert, endsAt: new Date().toISOString() })
    await until('it is over', () => texts(relay).length > 1)
    assert.equal(texts(relay).length, 2)
    assert.match(texts(relay)[1] ?? '', resolved)
  })

  const others: Record<string, (url: string) => object> = {
    'Slack': url => ({ slack_configs: [{ api_url: `${url}/hooks/slack/ops/services/T0/B0/${apiKey}`, channel: '#ops' }] }),
    'Slack, with the key behind the address': url => ({ slack_configs: [{ api_url: `${url}/hooks/slack/ops?key=${apiKey}`, channel: '#ops' }] }),
    'Discord': url => ({ discord_configs: [{ webhook_url: `${url}/hooks/discord/ops/api/webhooks/1/${apiKey}` }] }),
    'Telegram': url => ({ telegram_configs: [{ api_url: `${url}/hooks/push/ops`, bot_token: apiKey, chat_id: -1001 }] }),
    'a webhook': url => ({ webhook_configs: [{ url: `${url}/hooks/alertmanager/ops?key=${apiKey}` }] }),
  }
  for (const [receiver, configure] of Object.entries(others)) {
    test(`with a receiver for ${receiver} tells of each change once`, async t => {
      const tell = await run(t, configure(relay.url), '1h')
      const [first, second] = [newAlert(), newAlert('db-2')]
      await tell(first)
      await until('the first is told', () => texts(relay).length > 0)
      assert.match(texts(relay)[0] ?? '', /HostDown/)
      await tell(first, second)
      // What is taken for a failure is repeated before anything else.
      await until('the second is told', () => texts(relay).some(each => /db-2|FIRING:2/.test(each)))
      assert.equal(texts(relay).length, 2, texts(relay).join('\n'))
      assert(!texts(relay).join().includes(apiKey))
    })
  }

  test('comes again with what could not be accepted, and that is sent once', async t => {
    await relay.reload({ chatQueueLimit: 0 })
    t.after(() => relay.reload())
    const tell = await run(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 2000 } })
    assert.equal((await post(relay, `message/group:${group}`, { text: 'slow' }, { isHasty: true })).data.state, 'queued')
    await tell(newAlert())
    await until('it was turned away twice', () => answers(503) >= 2)
    await until('it has come again, and again', () => answers(200) >= 3)
    const [slow, told, ...others] = texts(relay)
    assert.deepEqual([slow, others], ['slow', []])
    assert.match(told ?? '', firing)
  })
})

const apprises = new DebianPrograms('Apprise', 'apprise', ['apprise'])

describe('Apprise', { skip: apprises.missing, timeout: 120_000 }, () => {
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

  /** The address of the page, for a relay without TLS. */
  function address({ schema = 'json', key = apiKey, path = 'apprise/ops' } = {}): string {
    return documented('message', 'recipe-apprise', {
      'jsons://': `${schema}://`, '<key>': key, 'relay.example.com': new URL(relay.url).host, 'apprise/group:123456': path,
    }).trim()
  }

  /** Calls it as in a shell; gives whether it says that it was sent. */
  async function call(url: string, ...parameters: readonly string[]): Promise<boolean> {
    const child = spawn(apprises.path('apprise'), ['-vv', ...parameters, url], { stdio: ['ignore', 'ignore', 'pipe'] })
    const complaints = await text(child.stderr)
    await until('it has ended', () => child.exitCode !== null)
    assert(child.exitCode === 0 || child.exitCode === 1, complaints)
    return child.exitCode === 0
  }

  test('sends a title, a text and attachments: pictures, and of others the name', async () => {
    const picture = join(folder, 'chart.png')
    const file = join(folder, 'report.pdf')
    await writeFile(picture, Buffer.from(pixel, 'base64'))
    await writeFile(file, '%PDF-1.7\n')
    assert(await call(address(), '-t', '备份', '-b', 'All 3 volumes [CQ:at,qq=all]\n<b>done</b> & well', '-a', picture, '-a', file))
    assert.deepEqual([texts(relay), kinds(relay)], [['备份\nAll 3 volumes [CQ:at,qq=all]\n<b>done</b> & well\n附件：report.pdf'], ['text', 'image']])
  })

  test('sends a text alone, with a key that has to be encoded, and only the types that its address asks for', async () => {
    const url = `${address({ path: `apprise/group:${group}`, key: encodeURIComponent(key) })}?-status=failure`
    assert.deepEqual([await call(url, '-n', 'info', '-b', 'fine'), await call(url, '-n', 'failure', '-b', 'broken')], [true, true])
    assert.deepEqual(texts(relay), ['❌ broken'])
  })

  for (const path of ['message/ops', 'apprise/ops']) {
    test(`sends a form to ${path}`, async () => {
      // With an attachment Apprise 1.2 fails by itself: it reads from a file that it has closed.
      assert(await call(address({ schema: 'form', path }), '-t', 'Backup', '-b', 'done & well'))
      assert.deepEqual(texts(relay), ['Backup\ndone & well'])
    })
  }

  // A program that can name a host only has one of its own, whose proxy adds the path.
  const forms: Record<string, [url: string, path: string]> = {
    'json by PUT': [`json://relay:${apiKey}@HOST/hooks/apprise/ops?method=put`, ''],
    'form by GET': [`form://relay:${apiKey}@HOST/hooks/message/ops?method=get`, ''],
    'apprise': [`apprise://relay:${apiKey}@HOST/hooks/apprise/ops/any`, ''],
    'apprise, with the key as token': [`apprise://HOST/hooks/apprise/ops/${apiKey}`, ''],
    'gotify': [`gotify://HOST/hooks/push/ops/${apiKey}`, ''],
    'mmost': [`mmost://HOST/hooks/slack/ops/${apiKey}`, ''],
    'hassio': [`hassio://HOST/hooks/message/ops/${apiKey}`, ''],
    'bark': [`bark://HOST/${apiKey}`, '/hooks/push/ops'],
    'ntfy': [`ntfy://relay:${apiKey}@HOST/ops`, '/hooks/message'],
    'rocket': [`rocket://any/${letters}@HOST`, '/hooks/slack/ops'],
    'pushjet': [`pjet://relay:${apiKey}@HOST/any`, '/hooks/message/ops'],
    'signal': [`signal://relay:${apiKey}@HOST/12345678901/12345678901`, '/hooks/message/ops'],
  }
  for (const [form, [url, path]] of Object.entries(forms)) {
    test(`sends a text once to an address with ${form}`, async t => {
      const host = new URL(path === ''
        ? relay.url
        : await serve(t, (incoming, outgoing) => {
            const { method, headers } = incoming
            incoming.pipe(request(relay.url + path + String(incoming.url), { method, headers }, answer => {
              answer.pipe(outgoing.writeHead(answer.statusCode ?? 500, answer.headers))
            }))
          })).host
      assert(await call(url.replace('HOST', host), '-t', 'Backup', '-b', 'done & well'))
      const [told = '', ...more] = texts(relay)
      assert.match(told, /^(?:# )?Backup\s+done & well$/)
      assert.deepEqual(more, [])
    })
  }

  test('says that it failed where the relay does not read what it sends', async () => {
    assert.equal(await call(`xml://relay:${apiKey}@${new URL(relay.url).host}/hooks/apprise/ops`, '-b', 'done'), false)
    assert.deepEqual(texts(relay), [])
  })

  test('says that it failed with a wrong key', async () => {
    assert.equal(await call(address({ key: 'wrong' }), '-b', 'done'), false)
    assert.deepEqual(texts(relay), [])
  })
})
