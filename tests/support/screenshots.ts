// Takes the pictures of the page in Koishi's console: every tab in both languages, light and dark, on a desktop and on a phone.
// Usage: npm run screenshots [folder] [words in the names of the pictures wanted]
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { chromium, type Browser, type Page } from 'playwright-core'
import { startDemo, type Demo } from './demo'

const [folder = 'docs/images', ...words] = process.argv.slice(2)
const root = resolve(import.meta.dirname, '../..')

const languages = { en: 'en-US', zh: 'zh-CN' } as const
/** What makes a picture another one than that of a desktop in the light. */
const variants = {
  '': { width: 1280, height: 860, scheme: 'light' }, '-dark': { width: 1280, height: 860, scheme: 'dark' }, '-phone': { width: 360, height: 760, scheme: 'light' },
} as const
/** What is done on each tab before its picture is taken. */
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
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  })
  for (const [suffix, locale] of Object.entries(languages)) {
    const names = Object.keys(scenes).flatMap(scene => Object.keys(variants).map(variant => [scene, variant] as const))
      .filter(([scene, variant]) => words.length === 0 || words.every(word => `${scene}-${suffix}${variant}`.includes(word)))
    if (names.length === 0) continue
    const demo = await startDemo(locale, join(root, 'dist'))
    for (const [scene, variant] of names) await shoot(browser, demo, scene, variant, suffix, locale)
    await demo.stop()
  }
  await browser.close()
}

async function shoot(browser: Browser, { url }: Demo, scene: string, variant: string, suffix: string, locale: string): Promise<void> {
  const { width, height, scheme } = variants[variant as keyof typeof variants]
  const context = await browser.newContext({ locale, timezoneId: 'Asia/Shanghai', colorScheme: scheme, viewport: { width, height }, reducedMotion: 'reduce' })
  const page = await context.newPage()
  await page.goto(`${url}/message-relay#${scene}`)
  await page.addStyleTag({ content: ':root { --font-family: "Noto Sans CJK SC", sans-serif }' })
  await page.locator('.relay-panel > div').waitFor()
  await scenes[scene]?.(page)
  await page.evaluate('document.fonts.ready')
  await page.waitForTimeout(400)
  await page.screenshot({ path: join(folder, `console-${scene}-${suffix}${variant}.png`) })
  await context.close()
}

// The adapter keeps timers.
void main().then(() => process.exit())
