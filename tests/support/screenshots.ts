// Takes the screenshots of the page in Koishi's console: every tab in both languages, light and dark, on a desktop and on a phone.
// Usage: npm run screenshots [folder] [words in the names of the screenshots]
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from './browser'
import { startDemo, type Demo } from './demo'

const [folder = 'docs/images', ...words] = process.argv.slice(2)
const root = resolve(__dirname, '../..')

interface Look { locale: 'zh-CN' | 'en-US', width: number, height: number, colorScheme: 'light' | 'dark' }
/** The variants of each screenshot. Their names end the names of the files. */
const looks: Readonly<Record<string, Look>> = {
  'zh': { locale: 'zh-CN', width: 1280, height: 860, colorScheme: 'light' },
  'zh-dark': { locale: 'zh-CN', width: 1280, height: 860, colorScheme: 'dark' },
  'zh-phone': { locale: 'zh-CN', width: 360, height: 760, colorScheme: 'light' },
  'en': { locale: 'en-US', width: 1280, height: 860, colorScheme: 'light' },
}
/** What happens on each tab before its screenshot. */
const scenes: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  overview: async page => {
    await page.locator('.relay-bar').nth(20).waitFor()
    await page.locator('.relay-failures li').first().waitFor()
  },
  deliveries: async page => {
    await page.locator('tr.record').first().waitFor()
  },
  record: async page => {
    await page.goto(page.url().replace('#record', '#deliveries'))
    await page.locator('tr.record').nth(2).waitFor()
    await page.locator('tr.record', { hasText: '91 %' }).first().click()
    await page.locator('.relay-picture').waitFor()
  },
  send: async page => {
    await page.locator('.relay-panel textarea').first().waitFor()
  },
  integrations: async page => {
    await page.locator('.relay-panel > div').waitFor()
  },
  keys: async page => {
    await page.locator('.relay-panel table').first().waitFor()
  },
}

async function main(): Promise<void> {
  await mkdir(folder, { recursive: true })
  const browser = await launchBrowser()
  for (const locale of ['zh-CN', 'en-US'] as const) {
    const wanted = Object.entries(looks).filter(([, look]) => look.locale === locale)
      .flatMap(([suffix, look]) => Object.entries(scenes).map(([scene, act]) => ({ scene, act, look, name: `console-${scene}-${suffix}` })))
      .filter(({ name }) => words.every(word => name.includes(word)))
    if (wanted.length === 0) continue
    const demo = await startDemo(locale, join(root, 'dist'))
    for (const shot of wanted) await shoot(browser, demo, shot)
    await demo.stop()
  }
  await browser.close()
}

interface Shot { scene: string, act: (page: Page) => Promise<void>, look: Look, name: string }

async function shoot(browser: Browser, { url }: Demo, { scene, act, look, name }: Shot): Promise<void> {
  const { locale, width, height, colorScheme } = look
  const context = await browser.newContext({ locale, timezoneId: 'Asia/Shanghai', colorScheme, viewport: { width, height }, reducedMotion: 'reduce' })
  const page = await context.newPage()
  await page.goto(`${url}/message-relay#${scene}`)
  await page.addStyleTag({ content: ':root { --font-family: "Noto Sans CJK SC", sans-serif }' })
  await page.locator('.relay-panel > div').waitFor()
  await act(page)
  await page.evaluate('document.fonts.ready')
  await page.waitForTimeout(400)
  await page.screenshot({ path: join(folder, `${name}.png`) })
  await context.close()
}

// The adapter's timers would keep the process alive.
void main().then(() => process.exit())
