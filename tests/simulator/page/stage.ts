import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { Simulator } from '../../../simulator'
import { launchBrowser, still } from '../../support/browser'
import { Client } from '../support'

/** What a test plays with. */
export interface Stage {
  simulator: Simulator
  bot: Client
  page: Page
  /** Connects another bot. */
  connect: () => Promise<Client>
}

let browser: Browser | undefined

/** Starts the browser before the tests of the suite it is called in, and ends it after them. */
export function withBrowser(): void {
  before(async () => {
    browser = await launchBrowser()
  })

  after(async () => {
    await browser?.close()
  })
}

/**
 * A test with a simulator, a connected bot and a page that has loaded. An error of the page's scripts fails it, and so does content
 * that its security policy blocks.
 * @param options of the browser's context; `hash` is added to the page's address
 */
export function onStage(
  name: string,
  play: (stage: Stage) => Promise<void>,
  options: BrowserContextOptions & { hash?: string } = {},
): void {
  test(name, async t => {
    assert.ok(browser)
    const simulator = await Simulator.start({})
    const { hash = '', ...contextOptions } = options
    const context = await browser.newContext({ locale: 'en-US', viewport: { width: 1100, height: 700 }, ...contextOptions })
    await context.addInitScript(still)
    const errors: string[] = []
    try {
      const connect = (): Promise<Client> => Client.connect(t, simulator.endpoint)
      const bot = await connect()
      const page = await context.newPage()
      page.setDefaultTimeout(15_000)
      page.on('pageerror', error => errors.push(String(error)))
      page.on('dialog', dialog => {
        errors.push(`dialog: ${dialog.message()}`)
        void dialog.dismiss()
      })
      page.on('console', message => {
        if (message.text().includes('Content Security Policy')) errors.push(message.text())
      })
      await page.goto(simulator.pageUrl + hash)
      await loaded(page)
      await play({ simulator, bot, page, connect })
      await bot.close()
      assert.deepEqual(errors, [])
    } finally {
      await context.close()
      await simulator.close()
    }
  })
}

/** What axe-core finds wrong with the page as it is now: a line for each element, with the rule that it breaks. */
export async function violations(page: Page): Promise<unknown> {
  if (await page.evaluate('!window.axe')) await page.evaluate(axe.source)
  return await page.evaluate(`axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(node => id + ' ' + node.target)))`)
}

/** Resolves when the page shows the chats and is connected to the simulator. */
export async function loaded(page: Page): Promise<void> {
  await page.locator('.entry').first().waitFor({ state: 'attached' })
  await page.locator('#status:not([data-kind=loading], [data-kind=offline])').waitFor()
}

/**
 * Waits for a condition of the page, a JavaScript expression: these tests are compiled without the browser's types. It is looked at
 * again with every frame, from here: `waitForFunction` evaluates text inside the page, which its security policy forbids.
 */
export async function until(page: Page, expression: string): Promise<void> {
  const deadline = Date.now() + 15_000
  while (await page.evaluate(`Boolean(${expression})`) !== true) {
    assert.ok(Date.now() < deadline, `never came true: ${expression}`)
    await page.evaluate('new Promise(frame => { requestAnimationFrame(frame) })')
  }
}
