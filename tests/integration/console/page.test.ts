import type { ForkScope } from 'koishi'
import { load } from 'js-yaml'
import SQLiteDriver from 'koishi-plugin-database-sqlite'
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { serveConsole } from '../../../bot/console'
import type { LedgerEntry } from '../../../simulator/types'
import { parseKeys, type Key } from '../../../src/access/keys'
import { parseNames } from '../../../src/message/names'
import { isObject } from '../../../src/message/parse'
import { skip } from '../../simulator/page/stage'
import { listen } from '../../support/listen'
import { freePort } from '../../support/process'
import { apiKey, read, startRelay, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

const tabs = ['now', 'deliveries', 'send', 'connect', 'keys'] as const
const config = {
  targets: { ops: 'group:123456', oncall: ['group:123456', 'discord:group:9'] },
  keys: [{ name: 'ci', key: 'the-secret-of-the-pipeline', targets: ['ops'], allow: ['send'] }],
}
const build = resolve(import.meta.dirname, '../../../dist')

describe('the page', { skip, timeout: 300_000 }, () => {
  let relay: TestRelay
  /** The console, with the page. */
  let page: ForkScope
  let browser: Browser
  let url: string
  let axe: string

  before(async () => {
    assert(existsSync(build), 'run npm run build')
    axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    relay = await startRelay({
      config,
      setup(app) {
        app.plugin(SQLiteDriver, { path: ':memory:' })
        page = app.plugin(ctx => serveConsole(ctx, { host: '127.0.0.1', port }, build))
      },
    })
    await until('the database is there', () => relay.app.get('database') !== undefined)
    for (let count = 0; count < 150; count++) await relay.send({ group_id: count % 3 ? '123456' : '654321', msg: `Build ${count} failed` })
    const executablePath = process.env.CHROMIUM_PATH || '/usr/bin/chromium'
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'] })
  })
  after(async () => {
    await browser.close()
    await until('nobody is connected', () => Object.keys(relay.app.console.clients).length === 0)
    page.dispose()
    await relay.stop()
  })

  /** Plays on the page, in which no script may fail. */
  async function play(tab: string, act: (page: Page) => Promise<void>, options: BrowserContextOptions = {}): Promise<void> {
    const context = await browser.newContext({ locale: 'en-US', viewport: { width: 1280, height: 800 }, ...options })
    const settings = { theme: { mode: 'auto', dark: 'default-dark', light: 'default-light' }, locale: options.locale ?? 'en-US' }
    await context.addInitScript(`localStorage.setItem('koishi.console.config', ${JSON.stringify(JSON.stringify(settings))})`)
    const errors: string[] = []
    try {
      const page = await context.newPage()
      page.setDefaultTimeout(20_000)
      page.on('pageerror', error => errors.push(String(error)))
      await page.goto(`${url}/message-relay#${tab}`)
      await page.locator('.relay-panel > div').waitFor()
      await act(page)
      assert.deepEqual(errors, [])
    } finally {
      await context.close()
    }
  }

  /** What axe finds wrong with the page, without what is the console's own. */
  async function violations(page: Page): Promise<string[]> {
    await page.evaluate(axe)
    const result: unknown = await page.evaluate('axe.run(".relay").then(({ violations }) => violations.flatMap(each => each.nodes.map(node => each.id + " " + node.html)))')
    assert(Array.isArray(result))
    return result.map(String)
  }

  for (const [locale, colorScheme, width] of [['en-US', 'light', 1280], ['en-US', 'dark', 360], ['zh-CN', 'light', 360], ['zh-CN', 'dark', 1280]] as const) {
    test(`can be read by everybody: ${locale}, ${colorScheme}, ${width} px`, async () => {
      await play('now', async page => {
        for (const tab of tabs) {
          await page.locator(`#relay-tab-${tab}`).click()
          await page.locator(`#relay-panel[aria-labelledby=relay-tab-${tab}] > div`).waitFor()
          if (tab === 'deliveries') await page.locator('tr.record').first().waitFor()
          assert.deepEqual(await violations(page), [], tab)
          assert.equal(await page.evaluate('document.querySelector(".relay").scrollWidth > document.querySelector(".relay").clientWidth'), false, tab)
        }
        assert.equal(await page.locator('#relay-tab-now').innerText(), locale === 'zh-CN' ? '概览' : 'Now')
      }, { locale, colorScheme, viewport: { width, height: 800 } })
    })
  }

  test('goes from tab to tab by keyboard, and its address says where it is', async () => {
    await play('now', async page => {
      await page.locator('#relay-tab-now').focus()
      for (const tab of ['deliveries', 'send', 'connect', 'keys', 'now']) {
        await page.keyboard.press('ArrowRight')
        await page.locator(`#relay-tab-${tab}[aria-selected=true]:focus`).waitFor()
        await page.waitForURL(new RegExp(`#${tab}$`))
      }
    })
  })

  test('shows what is paused or held, and why, and bots', async () => {
    const gone = relay.simulator.fault({ fault: { kind: 'not-member' }, target: '654321', times: Infinity })
    for (let count = 0; count < 5; count++) await relay.send({ group_id: '654321', msg: 'x' })
    gone.remove()
    relay.simulator.mute('655', true)
    await relay.send({ group_id: '655', msg: 'x' })
    const body = JSON.stringify({ group_id: '655', msg: 'held' })
    const { headers } = await relay.request('/webhook', { method: 'POST', body, headers: { prefer: 'respond-async' } })
    await play('now', async page => {
      await page.getByText('onebot:10000', { exact: true }).waitFor()
      await page.locator('.relay-queues li', { hasText: '654321' }).getByText(/^Paused until/).waitFor()
      await page.locator('.relay-queues li', { hasText: '655' }).getByText(/^Waits because the bot is muted in this group/).waitFor()
    })
    await play(`deliveries/${headers.get('x-request-id')}`, async page => {
      await page.getByRole('dialog').getByText(/^等待中：机器人在该群被禁言/).waitFor()
    }, { locale: 'zh-CN' })
    relay.simulator.mute('655', false)
  })

  test('lists deliveries as they come, opens one by keyboard, and gives the focus back to the page', async () => {
    await play('deliveries', async page => {
      await page.locator('tr.record').first().waitFor()
      const id = (await relay.request('/webhook', { method: 'POST', body: JSON.stringify({ to: 'ops', msg: 'just now' }) })).headers.get('x-request-id')
      assert(id)
      await page.locator('tr.record').nth(1).waitFor()
      await page.locator('tr.record button').first().focus()
      await until('the new one is the first', async () => {
        const answer: unknown = await page.evaluate('document.querySelector("tr.record [aria-label]").getAttribute("aria-label")')
        return String(answer).includes('group:123456')
      })
      await page.keyboard.press('Enter')
      const dialog = page.getByRole('dialog')
      await dialog.waitFor()
      await page.waitForURL(/#deliveries\/[0-9a-f-]{36}$/)
      assert.deepEqual(await violations(page), [])
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
      await page.waitForURL(/#deliveries$/)
    })
  })

  test('keeps few rows in the document however many it has been through', async () => {
    await play('deliveries', async page => {
      await page.locator('tr.record').first().waitFor()
      await until('the last is there', async () => {
        await page.evaluate('document.querySelector(".relay-window").scrollTo(0, 1e9)')
        return await page.locator('.relay-window table[aria-rowcount="-1"]').count() === 0
      })
      assert(await page.locator('tr.record').count() < 100)
      assert(Number(await page.locator('.relay-window table').getAttribute('aria-rowcount')) > 150)
    })
  })

  test('previews and sends, with a file', async () => {
    await play('send', async page => {
      await page.getByLabel('Target').fill('ops')
      await page.getByLabel('Text', { exact: true }).fill('<b>from</b> the page')
      await page.getByLabel('Pictures and files').setInputFiles({ name: '报告.txt', mimeType: 'text/plain', buffer: Buffer.from('report') })
      const count = relay.simulator.ledger.length
      await page.getByRole('button', { name: 'Preview' }).click()
      await page.locator('.relay-said', { hasText: '<b>from</b> the page' }).waitFor()
      assert.equal(relay.simulator.ledger.length, count)
      await page.getByRole('button', { name: 'Send', exact: true }).click()
      await page.getByText(/^It arrived/).waitFor()
      const sent = relay.simulator.ledger.slice(count)
      assert.deepEqual(sent.map(({ text }) => text), ['<b>from</b> the page', ''])
      assert.equal(sent[1]?.media[0]?.name, '报告.txt')
    })
  })

  test('copies what Send does as commands that do the same, files included', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'relay-page-'))
    const name = 'it\'s a report, 1;2 $x.txt'
    await writeFile(join(folder, name), 'content')
    try {
      await play('send', async page => {
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
        const run = async (): Promise<readonly LedgerEntry[]> => {
          await page.getByRole('button', { name: 'Copy as curl' }).click()
          await page.getByText('Copied').waitFor()
          const command = String(await page.evaluate('navigator.clipboard.readText()'))
          const count = relay.simulator.ledger.length
          const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: folder, env: { PATH: process.env.PATH, KEY: apiKey } })
          assert.match(stdout, /"code":0/)
          return relay.simulator.ledger.slice(count)
        }
        await page.getByLabel('Target').fill('ops')
        await page.getByLabel('Text', { exact: true }).fill('it\'s "quoted" & $HOME\n`line` 2 \\')
        assert.deepEqual((await run()).map(({ text }) => text), ['it\'s "quoted" & $HOME\n`line` 2 \\'])
        await page.getByLabel('Pictures and files').setInputFiles([join(folder, name)])
        const sent = await run()
        assert.deepEqual(sent.map(({ text }) => text), ['it\'s "quoted" & $HOME\n`line` 2 \\', ''])
        assert.deepEqual(sent[1]?.media.map(({ type, size }) => [type, size]), [['file', 7]])
        await page.getByRole('button', { name: 'Send', exact: true }).click()
        await page.getByText(/^It arrived/).waitFor()
        assert.deepEqual(relay.simulator.ledger.at(-1)?.media, sent[1].media)
      })
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('tells on a phone whom each delivery is for and what it says', async () => {
    await play('deliveries', async page => {
      const row = page.locator('tr.record', { hasText: 'Build 149 failed' }).first()
      const text = row.locator('.relay-narrow', { hasText: 'Build 149 failed' })
      await text.waitFor()
      const { width = 0 } = await text.boundingBox() ?? {}
      assert(width > 150)
    }, { viewport: { width: 360, height: 800 } })
  })

  test('calls groups and people by their names', async () => {
    await play('deliveries', async page => {
      await page.locator('tr.record', { hasText: '构建通知 Builds group:123456' }).first().waitFor()
      await page.locator('tr.record', { hasText: 'group:123456' }).first().click()
      await page.getByRole('dialog').getByRole('heading', { name: '构建通知 Builds group:123456' }).waitFor()
    })
  })

  test('keeps up what somebody looks at far down, and leaves it where it is', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse', wording: 'too fast' }, target: '710', times: Infinity })
    const id = (await relay.send({ group_id: '710', msg: 'far down' })).headers.get('x-request-id') ?? ''
    relay.simulator.clearFaults()
    for (let count = 0; count < 150; count++) await relay.send({ group_id: '711', msg: `above ${count}` })
    await play('deliveries', async page => {
      const row = page.locator('tr.record', { hasText: 'far down' })
      await page.locator('tr.record').first().waitFor()
      await until('it can be seen', async () => {
        if (await row.count() > 0) return true
        await page.evaluate('document.querySelector(".relay-window").scrollBy(0, 400)')
        return false
      })
      await row.scrollIntoViewIfNeeded()
      await row.getByText('Failed').waitFor()
      const top = (await row.boundingBox())?.y
      await relay.send({ group_id: '711', msg: 'one more' })
      assert.equal((await relay.request(`/deliveries/${id}/retry`, { method: 'POST' })).status, 202)
      await row.getByText('Sent', { exact: true }).waitFor()
      assert.equal((await row.boundingBox())?.y, top)
    })
  })

  test('offers a key for each of several targets', async () => {
    await play('connect', async page => {
      await page.getByLabel('Target').fill('group:1, ops')
      await page.getByRole('button', { name: 'Make a key for it' }).click()
      const { key, warnings } = await offeredKeys(page)
      assert.deepEqual(warnings, [])
      assert.deepEqual(key?.view?.targets, ['group:1', 'ops'])
      await page.locator('pre', { hasText: `"${relay.url}/send/group:1,ops"` }).waitFor()
    })
  })

  describe('its buttons', () => {
    /** What the relay says of a delivery. */
    async function stateOf(id: string): Promise<unknown> {
      const { status, body } = await read(await relay.request(`/deliveries/${id}`))
      return isObject(body.data) ? body.data.state : status
    }
    const arrived = (text: string): number => relay.simulator.ledger.filter(entry => entry.text === text).length

    /** Has a group fail until its queue is paused, and then messages wait in it. */
    async function pause(group: string, ...texts: string[]): Promise<string[]> {
      // Its queue is shown by the name of the group, which the platform has to know.
      relay.simulator.setRole(group, 'member')
      const gone = relay.simulator.fault({ fault: { kind: 'not-member' }, target: group, times: Infinity })
      for (let count = 0; count < 5; count++) await relay.send({ group_id: group, msg: 'x' })
      gone.remove()
      return Promise.all(texts.map(async msg => {
        const body = JSON.stringify({ group_id: group, msg })
        const { status, headers } = await relay.request('/webhook', { method: 'POST', body, headers: { prefer: 'respond-async' } })
        assert.equal(status, 202)
        return headers.get('x-request-id') ?? ''
      }))
    }

    /** Clicks a button, and answers the question that comes with no, then with yes. */
    async function ask(page: Page, name: string, question: string, afterNo: () => Promise<void>): Promise<void> {
      const button = page.getByRole('button', { name }).first()
      await button.click()
      const dialog = page.getByRole('dialog', { name: question })
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await dialog.waitFor({ state: 'detached' })
      await afterNo()
      await button.click()
      assert.deepEqual(await violations(page), [])
      await dialog.locator('.el-button--danger').click()
      await dialog.waitFor({ state: 'detached' })
    }

    test('send again what failed', async () => {
      relay.simulator.fault({ fault: { kind: 'refuse', wording: 'too fast' }, target: '700', times: Infinity })
      const id = (await relay.send({ group_id: '700', msg: 'again' })).headers.get('x-request-id') ?? ''
      relay.simulator.clearFaults()
      assert.equal(await stateOf(id), 'failed')
      await play(`deliveries/${id}`, async page => {
        await page.getByRole('dialog').getByText('too fast').first().waitFor()
        await ask(page, 'Send again', 'Send this again?', async () => {
          assert.equal(await stateOf(id), 'failed')
          assert.equal(arrived('again'), 0)
        })
        await page.getByText('The platform took all of it.').waitFor()
      })
      assert.equal(await stateOf(id), 'sent')
      assert.equal(arrived('again'), 1)
    })

    test('send again all that the filters show, such as the rest of what was partly sent', async () => {
      const broken = relay.simulator.fault({ fault: { kind: 'refuse' }, action: 'upload_group_file', target: '704', times: Infinity })
      const { headers } = await relay.send({ group_id: '704', messages: [{ msg: 'both' }, { type: 'file', url: 'base64://YQ==' }] })
      const id = headers.get('x-request-id') ?? ''
      broken.remove()
      await play('deliveries', async page => {
        await page.getByText('Filters').click()
        await page.getByLabel('State').selectOption('failed')
        await page.getByLabel('Target', { exact: true }).fill('group:704')
        await page.getByLabel('Target', { exact: true }).blur()
        await page.locator('tr.record').getByText('Partly sent').waitFor()
        await ask(page, 'Send all of these again', 'Send again all that these filters show?', async () => assert.equal(await stateOf(id), 'failed'))
        await page.getByText('1 message queued.').waitFor()
      })
      await until('the rest has arrived', async () => await stateOf(id) === 'sent')
      assert.equal(arrived('both'), 1)
    })

    test('withdraw what waits, which then is no more in the list', async () => {
      const [id = ''] = await pause('701', 'withdrawn')
      await play(`deliveries/${id}`, async page => {
        await ask(page, 'Withdraw', 'Withdraw this?', async () => assert.equal(await stateOf(id), 'queued'))
        await page.getByText('It is withdrawn').waitFor()
        await page.getByRole('button', { name: 'Close' }).click()
        await page.locator('tr.record', { hasText: 'withdrawn' }).waitFor({ state: 'detached' })
      })
      assert.equal(await stateOf(id), 404)
      assert.equal(arrived('withdrawn'), 0)
    })

    test('drop what waits in a queue', async () => {
      const ids = await pause('702', 'dropped 1', 'dropped 2')
      await play('now', async page => {
        const name = 'Drop 2 messages: 群 702 (group:702)'
        await ask(page, name, 'Drop everything that waits for 群 702 (group:702)?', async () => {
          for (const id of ids) assert.equal(await stateOf(id), 'queued')
        })
        await page.getByRole('button', { name }).waitFor({ state: 'detached' })
      })
      for (const id of ids) assert.equal(await stateOf(id), 'failed')
      assert.equal(relay.simulator.ledger.filter(({ target }) => target.id === '702').length, 0)
    })

    test('let a queue go on', async () => {
      const [id = ''] = await pause('703', 'goes on')
      await play('now', async page => {
        await page.getByRole('button', { name: 'Resume sending: 群 703 (group:703)' }).click()
        await page.locator('.relay-queues li', { hasText: 'group:703' }).waitFor({ state: 'detached' })
      })
      await until('it has arrived', () => arrived('goes on') === 1)
      assert.equal(await stateOf(id), 'sent')
    })
  })

  test('tells how to connect something, shows what its template makes, and its first message', async () => {
    await play('connect', async page => {
      await page.getByLabel('What is to call').selectOption('message')
      await page.getByLabel('Target').fill('ops')
      await page.locator('pre', { hasText: `${relay.url}/hooks/message/ops?key=<key>` }).waitFor()
      await page.getByRole('button', { name: 'Make a key for it' }).click()
      await page.locator('pre', { hasText: 'key: sha256:' }).waitFor()
      await page.getByRole('button', { name: 'Take the last real one', exact: true }).click()
      await page.getByText(/^Nothing that came from it is kept/).waitFor()
      await page.getByLabel('A payload (JSON)').fill('{"title":"Disk","message":"is full"}')
      await page.getByRole('button', { name: 'See the message' }).click()
      await page.locator('.relay-said', { hasText: 'is full' }).waitFor()
      await page.getByText('Nothing has come yet').waitFor()
      assert.equal((await relay.request('/hooks/message/ops', { method: 'POST', body: '{"message":"first"}', headers: { 'content-type': 'application/json' } })).status, 200)
      await page.getByRole('heading', { name: 'It has arrived' }).waitFor()
      const count = relay.simulator.ledger.length
      await page.getByRole('button', { name: 'Take the last real one', exact: true }).click()
      await page.getByText(/^This came at /).waitFor()
      assert.equal(await page.getByLabel('A payload (JSON)').inputValue(), '{\n  "message": "first"\n}')
      await page.locator('.relay-timeline', { hasText: 'first' }).waitFor()
      assert.equal(relay.simulator.ledger.length, count)
    })
  })

  test('shows what each of several targets would get, or why it would not', async () => {
    await play('connect', async page => {
      await page.getByLabel('What is to call').selectOption('message')
      await page.getByLabel('Target').fill('oncall')
      await page.getByLabel('A payload (JSON)').fill('{"message":"is full"}')
      await page.getByRole('button', { name: 'See the message' }).click()
      await page.getByText('To 构建通知 Builds (group:123456) through onebot:10000', { exact: true }).waitFor()
      assert.deepEqual(await page.locator('.relay-said').allInnerTexts(), ['is full'])
      await page.getByText('To group:9', { exact: true }).waitFor()
      assert.match(await page.getByRole('alert').innerText(), /\bbot\b/)
      assert.deepEqual(await violations(page), [])
    })
  })

  test('sees the first message also where the clock of the browser is ahead, and none from before', async () => {
    const post = async (message: string): Promise<void> => {
      const { status } = await relay.request('/hooks/slack/ops', { method: 'POST', body: JSON.stringify({ text: message }), headers: { 'content-type': 'application/json' } })
      assert.equal(status, 200)
    }
    await post('from before')
    await play('now', async page => {
      await page.clock.setFixedTime(Date.now() + 120_000)
      await page.locator('#relay-tab-connect').click()
      await page.getByLabel('What is to call').selectOption('slack')
      await page.getByText('Nothing has come yet').waitFor()
      await post('the first')
      await page.getByRole('heading', { name: 'It has arrived' }).waitFor()
      assert.deepEqual(await page.locator('.relay-said').allInnerTexts(), ['the first'])
    })
  })

  /** What is to be added to the settings, as they would read it. */
  async function offeredKeys(page: Page): Promise<{ entry: unknown, key: Key | undefined, warnings: string[] }> {
    const lines = load(await page.locator('pre', { hasText: '- name:' }).innerText())
    assert(Array.isArray(lines) && lines.length === 1)
    const entry: unknown = lines[0]
    assert(isObject(entry))
    const filled = Object.entries(entry).map(([name, value]) => [name, String(value).startsWith('${{ env.') ? 'what the variable holds' : value])
    const { keys, warnings } = parseKeys([Object.fromEntries(filled)], apiKey, parseNames(config.targets).names)
    return { entry, key: keys[0], warnings }
  }

  test('has Sentry sign with the secret that it chooses itself', async () => {
    await play('connect', async page => {
      await page.getByLabel('What is to call').selectOption('sentry')
      await page.getByLabel('Target').fill('ops')
      await page.getByText('Sentry chooses the secret itself').waitFor()
      assert.equal(await page.getByRole('button', { name: 'Make a key for it' }).count(), 0)
      const { entry, key, warnings } = await offeredKeys(page)
      assert.deepEqual(entry, { name: 'sentry', secret: '${{ env.SENTRY_CLIENT_SECRET }}', targets: ['ops'], allow: ['hooks'] })
      assert.deepEqual(warnings, [])
      assert.equal(key?.secrets.length, 1)
    })
  })

  test('makes no key that is refused, or that may do what nobody chose', async () => {
    await play('keys', async page => {
      const make = page.getByRole('button', { name: 'Make a key' })
      const name = page.getByLabel('Name')
      await name.fill(' console ')
      await page.getByRole('checkbox', { name: 'send messages' }).uncheck()
      await make.click()
      await page.getByText('is what this page is called').waitFor()
      await page.getByText('Choose at least one').waitFor()
      assert.equal(await name.getAttribute('aria-invalid'), 'true')
      assert.deepEqual(await violations(page), [])
      assert.equal(await page.locator('pre').count(), 0)
      await name.fill('console-2')
      await page.getByText('is what this page is called').waitFor({ state: 'detached' })
      await make.click()
      assert.equal(await page.locator('pre').count(), 0)
      await page.getByRole('checkbox', { name: 'upload files' }).check()
      await make.click()
      const { key, warnings } = await offeredKeys(page)
      assert.deepEqual(warnings, [])
      assert.deepEqual(key?.view?.allow, ['upload'])
    })
  })

  test('makes a key once', async () => {
    await play('keys', async page => {
      await page.getByRole('row', { name: /^ci/ }).waitFor()
      await page.getByLabel('Name').fill('new one')
      await page.getByRole('button', { name: 'Make a key' }).click()
      const lines = page.locator('pre', { hasText: '- name: "new one"' })
      assert.match(await lines.innerText(), /key: sha256:[0-9a-f]{64}/)
      const key = await page.locator('pre').first().innerText()
      await page.getByRole('button', { name: 'I have copied it' }).click()
      assert(!(await page.content()).includes(key))
    })
  })

  test('is reached by no page of another origin', async () => {
    const stranger = createServer((_request, response) => response.setHeader('content-type', 'text/html').end('<title>stranger</title>'))
    const port = await listen(stranger)
    const page = await browser.newPage()
    try {
      const script = `new Promise(resolve => {
        const socket = new WebSocket(${JSON.stringify(url.replace('http', 'ws'))} + '/status')
        socket.onopen = () => resolve('open')
        socket.onerror = () => resolve('refused')
      })`
      await page.goto(`http://127.0.0.1:${port}/`)
      assert.equal(await page.evaluate(script), 'refused')
      await page.goto(`${url}/`)
      assert.equal(await page.evaluate(script), 'open')
    } finally {
      await page.close()
      stranger.close()
    }
  })
})
