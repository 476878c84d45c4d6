import type { ForkScope } from 'koishi'
import SQLiteDriver from 'koishi-plugin-database-sqlite'
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { serveConsole } from '../../../bot/console'
import { isObject } from '../../../src/message/parse'
import { skip } from '../../simulator/page/stage'
import { listen } from '../../support/listen'
import { freePort } from '../../support/process'
import { read, startRelay, type TestRelay } from '../../support/relay'
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
