import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { serve } from '../support/listen'
import { until } from '../support/until'
import { record, records } from './support/json'
import { marked, pageAt, pages, repository, versions } from './support/pages'
import { collect, has, online, Reader, Workplace } from './support/reader'

/** The recipes themselves, and the pages about systems that post, which have one for each system. */
const recipes = pages.filter(({ path }) => path === 'docs/recipes.md' || path.startsWith('docs/doors/'))
const page = pageAt('docs/recipes.md')
const [, group = ''] = /"to": "(group:\d+)"/.exec(page.text) ?? []
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAQMAAACQp+OdAAAABlBMVEUvb97/yD1rpwWgAAAAGklEQVR42mNgYPj/H4IHB2NwuYaBYTR88DIA8wL/AcYaMQYAAAAASUVORK5CYII=', 'base64')
const clientSecret = 'the-client-secret-of-sentry'

let reader: Reader
let key: string

before(async () => {
  reader = await Reader.start('npm start')
  key = await reader.key()
})
after(() => reader.stop())

/** The parts of the messages that have come into a chat while something is done. */
async function partsOf(work: () => Promise<unknown>, chat?: string): Promise<Record<string, unknown>[]> {
  const earlier = (await reader.messages(chat)).length
  await work()
  return (await reader.messages(chat)).slice(earlier).flatMap(({ parts }) => parts)
}

async function textsOf(work: () => Promise<unknown>, chat?: string): Promise<unknown[]> {
  return (await partsOf(work, chat)).map(({ text }) => text)
}

/** The text that a system brings, which is answered before its message leaves. */
async function textAfter(work: () => Promise<unknown>): Promise<unknown> {
  const earlier = (await reader.messages()).length
  await work()
  await until('the message is there', async () => (await reader.messages()).length > earlier)
  const [text, ...others] = (await reader.messages()).slice(earlier).flatMap(({ parts }) => parts).map(({ text }) => text)
  assert.deepEqual(others, [])
  return text
}

/** The block of any recipe that has this mark. */
function block(mark: string): string {
  const found = recipes.find(({ blocks }) => blocks.some(each => each.mark === mark))
  assert(found !== undefined, `no recipe has the mark ${mark}`)
  return marked(found, mark)
}

/** Runs a block as somebody does who has run the first one before it. */
function run(mark: string, { prologue = '', environment = {}, change = (script: string) => script } = {}): Promise<string> {
  const script = `${block('recipe-variables')}\n${prologue}\n${change(block(mark))}`
  return reader.place.paste(script.replaceAll('/etc/relay.env', './relay.env'), environment)
}

/** What stands under a heading of a page about systems that post (`alerts#Grafana`); behind an empty one, what is before all headings. */
function section(path: string): string {
  const [name = '', title = 'Set it up'] = path.split('#')
  const found = pageAt(`docs/doors/${name}.md`).text.split(/^##+ /m).find(each => title === '' || each.startsWith(`${title}\n`))
  assert(found !== undefined, `no recipe is called ${path}`)
  return found
}

/** The address that a recipe has its reader enter, here of the relay that runs. */
function address(text: string): string {
  const [found] = /https:\/\/relay\.example\.com[^\s`]*/.exec(text) ?? []
  assert(found !== undefined, `there is no address in ${text}`)
  return found.replace('https://relay.example.com', reader.url).replace('<key>', key)
}

/** Posts what a system really sends. */
async function post(url: string, fixture: string, headers: (body: string) => Record<string, string> = () => ({})): Promise<unknown> {
  const { headers: given, payload } = record(JSON.parse(await readFile(join(repository, `tests/fixtures/hooks/${fixture}.json`), 'utf8')))
  const body = JSON.stringify(payload)
  const all = { ...record(given), 'content-type': 'application/json', ...headers(body) }
  const response = await fetch(url, { method: 'POST', body, headers: all })
  assert.equal(response.status, 200, await response.clone().text())
  return response.json()
}

const hmac = (secret: string, body: string): string => createHmac('sha256', secret).update(body).digest('hex')
const bearer = () => ({ authorization: `Bearer ${key}` })

describe('a system that posts by itself', { timeout: 120_000 }, () => {
  let secret: string

  before(async () => {
    secret = String(record(record(JSON.parse(await run('recipe-signing-key'))).data).secret)
    await run('recipe-sentry', { change: script => script.replace('<client secret>', clientSecret) })
  })

  const systems: Record<string, [fixture: string, headers: (body: string) => Record<string, string>, said: RegExp]> = {
    'github': ['github/push', body => ({ 'x-hub-signature-256': `sha256=${hmac(secret, body)}` }), /acme\/shop/],
    'gitlab': ['gitlab/pipeline-failed', () => ({ 'x-gitlab-token': key }), /acme\/shop/i],
    'gitea': ['gitea/push', body => ({ 'x-gitea-signature': hmac(secret, body) }), /acme\/shop/],
    'gitee': ['gitee/push', () => ({ 'x-gitee-token': key }), /acme\/shop/],
    'alerts#Grafana': ['grafana/firing-one', bearer, /High CPU/],
    'alerts#Uptime Kuma': ['uptime-kuma/down', () => headersOf(section('alerts#Uptime Kuma')), /Shop/],
    'alerts#Sentry': ['sentry/event_alert', body => ({ 'sentry-hook-signature': hmac(clientSecret, body) }), /ZeroDivisionError/],
    'message#': ['message/synology', () => ({}), /offline/],
  }
  /** Those that stand in a recipe as JSON. */
  const headersOf = (text: string) => {
    const [, json = ''] = /```json\n(.*?)```/s.exec(text) ?? []
    return Object.fromEntries(Object.entries(record(JSON.parse(json))).map(([name, value]) => [name, String(value).replace('<key>', key)]))
  }
  for (const [name, [fixture, headers, said]] of Object.entries(systems)) {
    test(`is ${name}`, async () => {
      assert.match(String(await textAfter(() => post(address(section(name)), fixture, headers))), said)
    })
  }

  test('is GitHub, of which only pushes to main are wanted, and GitLab, of which only failed pipelines are', async () => {
    const [, parameters = ''] = /`(\?events=push&branch=main)`/.exec(section('github')) ?? []
    const sign = (body: string) => ({ 'x-hub-signature-256': `sha256=${hmac(secret, body)}` })
    const withToken = () => ({ 'x-gitlab-token': key })
    for (const skipped of [
      await post(address(section('github')) + parameters, 'github/release', sign),
      await post(address(section('gitlab')), 'gitlab/push', withToken),
      await post(address(section('gitlab')), 'gitlab/pipeline-success', withToken),
    ]) assert('skipped' in record(record(skipped).data), JSON.stringify(skipped))
  })

  test('is Alertmanager', async () => {
    const [receiver] = records(record(load(block('recipe-alertmanager'))).receivers)
    const [config] = records(receiver?.webhook_configs)
    const text = await textAfter(() => post(address(String(config?.url)), 'alertmanager/firing-one', bearer))
    assert.match(String(text), /InstanceDown/)
  })

  test('is Home Assistant', async () => {
    const [{ resource, method, title_param_name: title, headers } = {}] = records(record(load(block('recipe-home-assistant'))).notify)
    assert.deepEqual([method, title, record(headers).Authorization], ['POST_JSON', 'title', 'Bearer <key>'])
    const text = await textAfter(() => post(address(String(resource)), 'message/home-assistant', bearer))
    assert.equal(text, 'Home Assistant\nThe front door is open')
  })

  // shoutrrr reads `template` for itself behind `generic://` alone, and makes HTTPS of that; behind `generic+https://` it would pass the
  // parameter on, and post plain text: pkg/format/format_query.go and docs/services/generic.md of containrrr/shoutrrr.
  test('is Watchtower', async () => {
    const { WATCHTOWER_NOTIFICATION_URL: given } = record(record(load(block('recipe-watchtower'))).environment)
    const [, rest = ''] = /^generic:(.*)$/.exec(String(given)) ?? []
    const url = new URL(address(`https:${rest}`))
    assert.equal(url.searchParams.get('template'), 'json')
    url.searchParams.delete('template')
    const body = JSON.stringify({ title: 'Watchtower updates on nas', message: 'Found new shop:latest image' })
    const text = await textAfter(() => fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body }))
    assert.equal(text, 'Watchtower updates on nas\nFound new shop:latest image')
  })

  // A real one is tried in tests/integration/hooks/programs.test.ts.
  test('is Apprise', async () => {
    const { pathname, username, password } = new URL(block('recipe-apprise').replace('jsons:', 'https:').replace('<key>', key))
    const basic = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
    const text = await textAfter(() => post(reader.url + pathname, 'apprise/info', () => ({ authorization: basic })))
    assert.equal(text, '✅ Backup\nAll volumes done in 12 min')
  })

  // What notify/cqhttp.sh of acmesh-official/acme.sh asks for.
  test('is acme.sh', async () => {
    const prologue = `acme.sh() { curl -sG "$CQHTTP_APIROOT/send_private_msg" -d "access_token=$CQHTTP_TOKEN" -d "user_id=$CQHTTP_USER" --data-urlencode "message=Renew success"; }`
    assert.deepEqual(await textsOf(async () => assert.match(await run('recipe-acme', { prologue }), /"retcode":0,"status":"ok"/), '10001'), ['Renew success'])
  })
})

describe('a recipe for a shell', { timeout: 120_000 }, () => {
  before(async () => {
    const { folder } = reader.place
    await writeFile(join(folder, 'Makefile'), 'all:\n\t@echo "a & b"; echo "<c>" >&2\n')
    await writeFile(join(folder, 'report.pdf'), '%PDF-1.7\n')
    await writeFile(join(folder, 'chart.png'), png)
    await writeFile(join(folder, 'nightly.sh'), '#!/bin/sh\necho all is lost\nexit 1\n', { mode: 0o755 })
    await run('recipe-env')
    assert.equal((await stat(join(folder, 'relay.env'))).mode & 0o777, 0o600)
  })

  /** What a command of its page says. */
  const said = (mark: string): string | undefined => /(?:-d|--data-binary|msg=|"msg": )\s*"?([^"$]+)"/.exec(block(mark))?.[1]

  test('sends a line, and what a program prints', async () => {
    assert.deepEqual(await textsOf(() => run('recipe-text')), [said('recipe-text')])
    assert.deepEqual(await textsOf(() => run('recipe-pipe')), ['a & b\n<c>\n'])
  })

  test('sends a picture that the platform fetches, and one that it cannot reach', async t => {
    const url = await serve(t, (_, response) => response.setHeader('content-type', 'image/png').end(png))
    for (const mark of ['recipe-picture', 'recipe-snapshot']) {
      const [picture, ...others] = await partsOf(() => run(mark, { change: script => script.replace('https://ci.example.com', url) }))
      assert.deepEqual([picture?.type, others], ['image', []])
      assert.deepEqual(await reader.bytes(picture), png)
    }
  })

  test('sends a file, and a text with a picture', async () => {
    assert.deepEqual((await partsOf(() => run('recipe-file'))).map(({ type, name }) => [type, name]), [['file', 'report.pdf']])
    assert.deepEqual((await partsOf(() => run('recipe-form'))).map(({ type, text }) => text ?? type), [said('recipe-form'), 'image'])
  })

  test('brings the log of a cron job that fails', async () => {
    const parts = await partsOf(() => run('recipe-cron'))
    assert.deepEqual(parts.map(({ type, text, name }) => [type, text ?? name]), [['text', said('recipe-cron')], ['file', 'nightly.log']])
  })

  test('tells of a service that failed, as systemd would run it', async () => {
    const [, script = ''] = /^ExecStart=\/bin\/sh -c '(.*)'$/m.exec(block('recipe-systemd')) ?? []
    const prologue = 'journalctl() { echo "journal of $2"; }'
    assert.deepEqual(await textsOf(() => run('recipe-systemd', { prologue, change: () => script.replaceAll('%i', 'shop.service') })),
      ['shop.service failed\njournal of shop.service\n'])
  })

  test('tells of a full disk once a day', async () => {
    const prologue = 'df() { printf "%s\\n" "Filesystem 1024-blocks Used Available Capacity Mounted" "/dev/a 9 1 8 11% /" "/dev/b 9 9 0 95% /data"; }'
    const [text, ...others] = await textsOf(async () => {
      await run('recipe-disk', { prologue })
      await run('recipe-disk', { prologue })
    })
    assert.deepEqual(others, [])
    assert.match(String(text), /^\/data /)
  })
})

test('a recipe for a program sends from Python', { timeout: 120_000, skip: has('python3') ? false : 'there is no Python' }, async () => {
  await writeFile(join(reader.place.folder, 'hello.py'), block('recipe-python'))
  const texts = await textsOf(async () => assert.match(await run('recipe-variables', { change: script => `${script}\npython3 hello.py` }), /^sent/))
  assert.deepEqual(texts, [/"msg": "([^"]+)/.exec(block('recipe-python'))?.[1]])
})

describe('a recipe for keys and templates', { timeout: 120_000 }, () => {
  test('makes a key for one group, and revokes it', async () => {
    const made = String(record(record(JSON.parse(await run('recipe-key'))).data).key)
    const send = async (target: string) => {
      const response = await fetch(`${reader.url}/send/${target}`, { method: 'POST', headers: { authorization: `Bearer ${made}` }, body: 'x' })
      return response.status
    }
    assert.deepEqual([await send(group), await send('group:654321')], [200, 403])
    await run('recipe-revoke')
    assert.equal(await send(group), 401)
  })

  test('makes texts of what any system posts', async () => {
    await run('template')
    assert.equal(await textAfter(() => run('template-post')), block('template-text').trim())
    assert.match(await run('template-preview'), /shop 42/)
  })
})

describe('a recipe for when something is wrong', { timeout: 120_000 }, () => {
  test('tells why a message waits or failed, and sends again what failed', async t => {
    t.after(() => reader.mute(false))
    await reader.mute(true)
    const send = async (body: string, headers = {}): Promise<number> => {
      const response = await fetch(`${reader.url}/send/${group}`, { method: 'POST', headers: { ...bearer(), ...headers }, body })
      return response.status
    }
    assert.deepEqual([await send('failed'), await send('waits', { prefer: 'respond-async' })], [503, 202])

    if (has('jq')) assert.equal(await run('recipe-why'), block('recipe-whys'))

    await run('recipe-retry')
    const texts = () => reader.messages().then(messages => messages.slice(-2).map(({ parts }) => parts[0]?.text))
    await reader.mute(false)
    await until('both are sent', async () => (await texts()).includes('failed'))
    assert.equal((await texts()).length, 2)
  })

  test('takes everything along to another machine', async t => {
    const [old, place] = [await Workplace.open(), await Workplace.open()]
    t.after(() => Promise.all([old.close(), place.close()]))
    const first = old.runStart('npm start')
    await online(collect(first))
    await old.paste(block('recipe-variables') + block('recipe-text'))
    first.kill('SIGTERM')
    await until('it has stopped', () => first.exitCode !== null)
    await old.paste(marked(pageAt('docs/move.md'), 'recipe-move'))
    await writeFile(join(place.folder, 'relay.tgz'), await readFile(join(old.folder, 'relay.tgz')))
    await place.paste('tar xzf relay.tgz')
    await online(collect(place.runStart('npm start')))
    const listed = record(record(await place.output(`${block('recipe-variables')}\ncurl -sS -H "Authorization: Bearer $KEY" $RELAY/deliveries`)).data)
    assert.equal(records(listed.deliveries).length, 1)
  })
})

for (const { path } of recipes) {
  test(`the recipes have the same addresses in both languages: ${path}`, () => {
    const name = path.replace(/^docs\/|\.md$/g, '')
    const [english, chinese] = versions(name).map(({ text }) => text.match(/https:\/\/relay\.example\.com[^\s`，。]*/g)?.sort())
    assert.deepEqual(chinese, english)
  })
}
