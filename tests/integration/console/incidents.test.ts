import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { skip } from '../../support/browser'
import { until } from '../../support/until'
import { useStage } from './stage'

describe('the tab Incidents', { skip, timeout: 300_000 }, () => {
  const stage = useStage({
    people: { 'li-lei': { onebot: 10001, name: '李雷' } },
    targets: {
      ops: { to: 'group:123456', ack: { escalate: [{ after: '5m', mention: 'all' }] } },
      dba: { to: 'group:654321', ack: { from: 'info' } },
    },
  })

  async function alarm(to: string, msg: string, severity = 'critical'): Promise<void> {
    assert.equal((await stage.relay.send({ to, msg, severity, thread: msg })).status, 200)
  }
  const rowOf = (page: Page, title: string): Locator => page.locator('.relay-incidents li', { hasText: title })
  /** Waits for what the chat is told. */
  const told = (text: RegExp): Promise<void> => until(String(text), () => stage.relay.simulator.ledger.some(entry => text.test(entry.text)))

  test('takes, silences, releases and resolves what is unresolved, in the name of whoever sits there, and tells the chat', async () => {
    await alarm('ops', 'db-1 is down')
    await stage.playAlone('incidents', async page => {
      const row = rowOf(page, 'db-1 is down')
      await row.getByText(/^Nobody has taken it for \d+ s$/).waitFor()
      await row.getByText(/^ops, \w+, 1 message, next step in 4 min \d+ s$/).waitFor()
      assert.deepEqual(await stage.violations(page), [])

      await row.getByRole('button', { name: 'Take: db-1 is down' }).click()
      const dialog = page.getByRole('dialog', { name: 'What is your name?' })
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await row.getByText('Nobody has taken it').waitFor()
      await row.getByRole('button', { name: 'Take: db-1 is down' }).click()
      await dialog.getByRole('textbox').fill('李雷')
      assert.deepEqual(await stage.violations(page), [])
      await dialog.getByRole('button', { name: 'Remember' }).click()
      await row.getByText(/^李雷 has it since .*, open for \d+ s$/).waitFor()
      await told(/李雷 .*\d\d:\d\d/)

      await page.reload()
      await page.getByRole('button', { name: 'You act as 李雷' }).waitFor()
      await row.getByRole('combobox', { name: 'Silence: db-1 is down' }).press('Enter')
      await page.getByRole('option', { name: 'For 4 hours' }).click()
      await row.getByText(/^Silent until .*, 李雷 has it, open for \d+ s$/).waitFor()
      const again = new URLSearchParams({ text: 'still down', severity: 'critical', thread: 'db-1 is down' }).toString()
      assert.equal((await stage.relay.request(`/hooks/message/ops?${again}`)).status, 200)
      await row.getByText(/, 2 messages$/).waitFor()

      await row.getByRole('link', { name: 'db-1 is down' }).press('Enter')
      const details = page.getByRole('dialog', { name: 'Incident' })
      await details.getByText(/^李雷 took it$/).waitFor()
      await details.getByText(/, on this page$/).first().waitFor()
      await details.getByText(/^李雷 silenced it, until /).waitFor()
      assert.deepEqual(await stage.violations(page), [])
      await details.getByRole('button', { name: 'Release: db-1 is down' }).click()
      await details.getByText(/^李雷 released it$/).waitFor()
      await details.getByRole('button', { name: 'Release: db-1 is down' }).click()
      await details.getByText('Nobody has taken it').waitFor()
      await details.getByRole('button', { name: 'Resolve: db-1 is down' }).click()
      await details.getByText(/^Resolved .* after \d+ s/).waitFor()
      assert.equal(await details.getByRole('button', { name: 'Take' }).count(), 0)
      await page.keyboard.press('Escape')
      await details.waitFor({ state: 'detached' })
      await page.locator('.relay-incidents a:focus', { hasText: 'db-1 is down' }).waitFor()
      await page.getByText('Nothing is unresolved.').waitFor()
    })
  })

  test('comes to know what begins and ends elsewhere, and filters by state and target', async () => {
    await stage.playAlone('incidents', async page => {
      await alarm('dba', 'disk is full', 'info')
      await alarm('ops', 'api-2 is slow', 'warning')
      await rowOf(page, 'disk is full').getByText('Info').waitFor()
      await page.getByRole('combobox', { name: 'Target: Any target' }).press('Enter')
      await page.getByRole('option', { name: 'dba' }).click()
      await rowOf(page, 'api-2 is slow').waitFor({ state: 'detached' })
      await page.waitForURL(/#incidents\?target=dba$/)
      await alarm('dba', 'disk is full', 'ok')
      await page.getByText('Nothing is unresolved.').waitFor()
      await page.getByText('Resolved', { exact: true }).first().click()
      await rowOf(page, 'disk is full').getByRole('link').click()
      await page.getByText('Its source reports the end').waitFor()
      await page.getByRole('link', { name: '1 message' }).click()
      await page.locator('tr.record', { hasText: 'disk is full' }).nth(1).waitFor()
    })
  })

  test('puts first what nobody has taken, and the worst of it', async () => {
    await alarm('dba', 'cpu is hot', 'info')
    await stage.playAlone('incidents', async page => {
      await rowOf(page, 'cpu is hot').waitFor()
      assert.deepEqual(await page.locator('.relay-incidents li strong').allInnerTexts().then(all => all.slice(0, 2)), ['api-2 is slow', 'cpu is hot'])
      await rowOf(page, 'cpu is hot').getByRole('button', { name: 'Resolve' }).click()
      await page.getByRole('dialog', { name: 'What is your name?' }).getByRole('textbox').fill('Han')
      await page.keyboard.press('Enter')
      await page.getByText('Unresolved: 1').waitFor()
    })
  })

  test('is summed up on the overview, until somebody takes it', async () => {
    await stage.playAlone('overview', async page => {
      await page.locator('.relay-headline', { hasText: 'nobody has taken 1 incident' }).waitFor()
      await page.getByText(/^Nobody has taken it for/).waitFor()
      assert.deepEqual(await stage.violations(page), [])
      await page.getByRole('link', { name: 'api-2 is slow' }).click()
      await page.getByRole('dialog', { name: 'Incident' }).getByRole('button', { name: 'Take' }).click()
      await page.getByRole('dialog', { name: 'What is your name?' }).getByRole('textbox').fill('Han')
      await page.keyboard.press('Enter')
      await page.keyboard.press('Escape')
      await page.locator('#tab-overview').click()
      await page.locator('.relay-headline', { hasText: 'Everything works' }).waitFor()
      await page.getByText(/^Han has it since/).waitFor()
    })
  })

  test('is readable on a phone at night, also for a screen reader', async () => {
    await stage.playAlone('incidents', async page => {
      await rowOf(page, 'api-2 is slow').getByText('Han 在看').waitFor()
      assert.deepEqual(await stage.violations(page), [])
      await rowOf(page, 'api-2 is slow').getByRole('link').click()
      await page.getByText('Han 认领', { exact: true }).waitFor()
      assert.deepEqual(await stage.violations(page), [])
      const isTooWide = await page.evaluate(`['.relay-record-body', '.relay > .el-tabs > .el-tabs__content'].some(name => {
        const { scrollWidth, clientWidth } = document.querySelector(name)
        return scrollWidth > clientWidth
      })`)
      assert.equal(isTooWide, false)
    }, { locale: 'zh-CN', colorScheme: 'dark', viewport: { width: 360, height: 800 } })
  })
})
