// Plays the story of an incident on the simulator's page, for the first picture of the README.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { record } from '../docs/support/json'
import { repository } from '../docs/support/pages'
import { Reader } from '../docs/support/reader'
import { until } from './until'

/** Members of the simulator's group, as they are on duty. */
const people = { 'zh-CN': { account: '10001', name: '小明', word: '我来' }, 'en-US': { account: '10002', name: 'Alice', word: 'ack' } }

/** @param path of the picture */
export async function pictureStory(browser: Browser, locale: 'zh-CN' | 'en-US', path: string): Promise<void> {
  const { account, name, word } = people[locale]
  const settings = {
    people: { owner: { onebot: account, name } },
    targets: { ops: { to: 'group:123456', lang: locale, mention: 'owner', ack: { escalate: [{ after: 60, mention: 'owner' }] } } },
  }
  const variables = Object.entries(settings).map(([setting, value]) => `WEBHOOK_${setting.toUpperCase()}='${JSON.stringify(value)}'`)
  const reader = await Reader.start(`TZ=Asia/Shanghai ${variables.join(' ')} npm start`)
  try {
    const key = await reader.key()
    const report = async (status: 0 | 1): Promise<void> => {
      const { payload } = record(JSON.parse(await readFile(join(repository, `tests/fixtures/hooks/uptime-kuma/down.json`), 'utf8')))
      const { heartbeat, ...rest } = record(payload)
      // Uptime Kuma writes UTC without saying so.
      const time = new Date().toISOString().replace('T', ' ').slice(0, -1)
      const body = JSON.stringify({ ...rest, heartbeat: { ...record(heartbeat), time, status, msg: status === 1 ? '200 - OK' : 'connect ECONNREFUSED' } })
      const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } }
      await fetch(`${reader.url}/hooks/uptime-kuma/ops?key=${key}`, init)
    }
    const has = (count: number): Promise<void> => until(`there are ${count} messages`, async () => (await reader.messages()).length >= count, 90_000)
    await report(0)
    await has(2)
    await reader.say(word, account, (await reader.messages()).at(-1)?.id)
    await has(4)
    await report(1)
    await has(5)
    const viewport = { width: 900, height: 860 }
    const page = await browser.newPage({ locale, timezoneId: 'Asia/Shanghai', viewport, reducedMotion: 'reduce' })
    await page.goto(reader.page)
    await page.evaluate('document.fonts.ready')
    await page.waitForTimeout(800)
    await page.screenshot({ path })
    await page.close()
  } finally {
    await reader.stop()
  }
}
