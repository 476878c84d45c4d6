// Takes the pictures that the documents show: the page in Koishi's console, and the story of an incident.
// Usage: npm run screenshots [folder]
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { launchBrowser } from './browser'
import { startDemo } from './demo'
import { pictureStory } from './story'

const [folder = 'docs/images'] = process.argv.slice(2)
const viewport = { width: 1280, height: 860 }
/** The tabs, each with what its last part to appear contains. */
const tabs = { overview: '.relay-failures li', integrations: '.relay-panel > div' }

async function main(): Promise<void> {
  await mkdir(folder, { recursive: true })
  const browser = await launchBrowser()
  for (const locale of ['zh-CN', 'en-US'] as const) {
    const { url, stop } = await startDemo(locale)
    const page = await browser.newPage({ locale, timezoneId: 'Asia/Shanghai', viewport, reducedMotion: 'reduce' })
    for (const [tab, last] of Object.entries(tabs)) {
      await page.goto(`${url}/message-relay#${tab}`)
      await page.addStyleTag({ content: ':root { --font-family: "Noto Sans CJK SC", sans-serif }' })
      await page.locator(last).first().waitFor()
      if (tab === 'overview') await page.locator('.relay-bar').nth(20).waitFor()
      await page.evaluate('document.fonts.ready')
      await page.waitForTimeout(400)
      await page.screenshot({ path: join(folder, `console-${tab}-${locale.slice(0, 2)}.png`) })
    }
    await page.close()
    await stop()
    await pictureStory(browser, locale, join(folder, locale === 'zh-CN' ? 'chat-zh.png' : 'chat.png'))
  }
  await browser.close()
}

// The adapter's timers would keep the process alive.
void main().then(() => process.exit())
