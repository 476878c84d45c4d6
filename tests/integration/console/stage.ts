import type { ForkScope } from 'koishi'
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { after, before } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { serveConsole } from '../../../bot/console'
import { launchBrowser, still } from '../../support/browser'
import { freePort } from '../../support/process'
import { startRelay, type RelayOptions, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

const build = resolve(__dirname, '../../../dist')

type Play = (page: Page) => Promise<void>

/** On the page: what it looks at again after two seconds it looks at again sooner. */
const hasten = `
  const start = window.setTimeout
  window.setTimeout = (run, delay, ...rest) => start(run, delay === 2000 ? 300 : delay, ...rest)
`

/** The page in a real browser, beside the relay that it shows. */
export interface Stage {
  relay: TestRelay
  /** Plays on a tab of the page that the tests share, because it takes long to load. No script may fail. */
  play: (tab: string, act: Play) => Promise<void>
  /** The same on a page that is loaded for this test, for what another test would notice. */
  playAlone: (tab: string, act: Play, options?: BrowserContextOptions) => Promise<void>
  /** What axe finds wrong with the page and its dialogs, without what is the console's own. */
  violations: (page: Page) => Promise<string[]>
}

/** A time of the day in UTC, so many hours from now. */
const clockIn = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16)

/** The settings of the relay that the tests of the tabs share. */
const tabs: RelayOptions['config'] = {
  targets: {
    ops: 'group:123456',
    night: { to: 'group:123456', quiet: { from: clockIn(-1), to: clockIn(1), zone: 'UTC' } },
    flapping: { to: 'group:654321', digest: 2 },
    oncall: { first: ['group:404', 'http://127.0.0.1:9/', 'group:123456'], after: 1 },
  },
  keys: [
    { name: 'ci', key: 'the-secret-of-the-pipeline', targets: ['ops'], allow: ['send'] },
    { name: 'old', key: 'the-secret-of-the-hooks', targets: ['ops'], allow: ['hooks'] },
    { name: 'past', key: 'the-secret-of-last-year', allow: ['send'], expires: '2020-01-31', rate: 30, from: ['10.0.0.0/8', '192.0.2.1'] },
  ],
  chatApiMaxRetries: 0,
  chatApiTimeout: 2,
}

/** What the tests of the tabs share, and how many files of this process are not through with it. */
let tabStage: ReturnType<typeof makeStage> | undefined
let started: Promise<void> | undefined
let users = 0

/** One stage for the tests of all tabs, since it takes longer to start than they take. What they make there has different names. */
export function useTabs(): Stage {
  const { stage, start, stop } = tabStage ??= makeStage(tabs)
  users++
  before(() => started ??= start())
  after(async () => {
    if (--users === 0) await stop()
  })
  return stage
}

/** Serves the page for the tests of a file, to be used once they run. */
export function useStage(config: RelayOptions['config']): Stage {
  const { stage, start, stop } = makeStage(config)
  before(start)
  after(stop)
  return stage
}

function makeStage(config: RelayOptions['config']): { stage: Stage, start: () => Promise<void>, stop: () => Promise<void> } {
  let relay: TestRelay | undefined
  let console: ForkScope | undefined
  let browser: Browser | undefined
  let url = ''
  let axe = ''
  let shared: Page | undefined

  /** Loads the page in a context of its own, and plays on it until the end, or the first error. */
  async function open(tab: string, act: Play, options: BrowserContextOptions = {}): Promise<Page> {
    assert(browser)
    const context = await browser.newContext({ locale: 'en-US', viewport: { width: 1280, height: 900 }, ...options })
    const settings = { theme: { mode: 'auto', dark: 'default-dark', light: 'default-light' }, locale: options.locale ?? 'en-US' }
    await context.addInitScript(`localStorage.setItem('koishi.console.config', ${JSON.stringify(JSON.stringify(settings))})`)
    await context.addInitScript(still)
    await context.addInitScript(hasten)
    const page = await context.newPage()
    page.setDefaultTimeout(20_000)
    return await playOn(page, async () => {
      await page.goto(`${url}/message-relay#${tab}`)
      await page.locator('.relay-panel > div').waitFor()
      await act(page)
    })
  }

  /** The page is closed where something fails, so that the next test has one as it should be. */
  async function playOn(page: Page, act: Play): Promise<Page> {
    const errors: string[] = []
    const listen = (error: Error): void => void errors.push(String(error))
    page.on('pageerror', listen)
    try {
      await act(page)
      assert.deepEqual(errors, [])
    } catch (error) {
      await page.context().close()
      throw error
    }
    page.off('pageerror', listen)
    return page
  }

  async function start(): Promise<void> {
    assert(existsSync(build), 'run npm run build')
    axe = await readFile(createRequire(__filename).resolve('axe-core/axe.min.js'), 'utf8')
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    relay = await startRelay({
      config,
      // An account that is logged in again is known to be by the next heartbeat.
      simulator: { heartbeatInterval: 500 },
      setup(app) {
        console = app.plugin(ctx => serveConsole(ctx, { host: '127.0.0.1', port }, build))
      },
    })
    browser = await launchBrowser()
  }

  async function stop(): Promise<void> {
    await browser?.close()
    await until('nobody is connected', () => Object.keys(relay?.app.console.clients ?? {}).length === 0)
    console?.dispose()
    await relay?.stop()
  }

  const stage: Stage = {
    get relay() {
      assert(relay, 'the relay is started before the first test')
      return relay
    },
    async play(tab, act) {
      const page = shared
      shared = undefined
      const again = async (page: Page): Promise<void> => {
        // What another test was told would be taken for what this one waits for.
        await page.evaluate(`document.querySelectorAll('.el-message').forEach(each => each.remove()); location.hash = ''`)
        await page.locator('#pane-overview .relay-panel > div').waitFor()
        await page.evaluate(`location.hash = ${JSON.stringify(tab)}`)
        await page.locator(`#pane-${tab.replace(/\W.*/, '')} .relay-panel > div`).waitFor()
        await act(page)
      }
      shared = page ? await playOn(page, () => again(page)) : await open(tab, act)
    },
    async playAlone(tab, act, options) {
      await (await open(tab, act, options)).context().close()
    },
    async violations(page) {
      if (await page.evaluate('!window.axe')) await page.evaluate(axe)
      const places = `document.querySelectorAll('.relay, .el-dialog, .el-drawer, .el-message-box')`
      const find = `axe.run(${places}, { resultTypes: ['violations'] }).then(({ violations }) => {
        return violations.flatMap(each => each.nodes.map(node => each.id + ' ' + node.html))
      })`
      const result: unknown = await page.evaluate(find)
      assert(Array.isArray(result))
      return result.map(String)
    },
  }
  return { stage, start, stop }
}
