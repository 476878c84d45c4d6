import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { skip } from '../../support/browser'
import { useTabs } from './stage'

describe('the tab Beats', { skip, timeout: 300_000 }, () => {
  const stage = useTabs()

  const rowOf = (page: Page, name: string): Locator => page.getByRole('row', { name: new RegExp(`^${name}`) })

  test('makes a beat, shows its address and lines that call it, and its state as the job reports', async () => {
    await stage.play('beats', async page => {
      await page.getByText('A beat notices the job that did not run').waitFor()
      await page.getByRole('button', { name: 'New beat' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Name').fill('backup')
      await dialog.getByText('As in a crontab').click()
      await dialog.getByLabel('Cron pattern').fill('30 2 * *')
      await dialog.getByRole('combobox', { name: 'Target' }).fill('ops')
      await page.keyboard.press('Tab')
      assert.deepEqual(await stage.violations(page), [])
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.getByText('cron must have five fields').waitFor()
      await dialog.getByLabel('Cron pattern').fill('30 2 * * *')
      await dialog.getByRole('button', { name: 'Save' }).click()

      const ping = page.getByRole('dialog', { name: 'backup' })
      const address = await ping.locator('pre').first().innerText()
      assert.equal(await ping.locator('pre').nth(1).innerText(), `30 2 * * * backup.sh && curl -fsS -m 10 --retry 5 -o /dev/null ${address}`)
      assert.equal(await ping.locator('pre').nth(2).innerText(), `relay run --ping ${address} -- backup.sh`)
      assert.deepEqual(await stage.violations(page), [])
      await page.keyboard.press('Escape')
      await rowOf(page, 'backup').getByText('Waits for its first sign').waitFor()
      for (const [path, state] of [['/start', 'Running'], ['', 'In time'], ['/1', 'Late or failed']] as const) {
        assert.equal((await fetch(address + path)).status, 200)
        await rowOf(page, 'backup').getByText(state).waitFor()
      }
      await page.locator('#tab-overview').click()
      await page.locator('.relay-headline', { hasText: '1 beat is late or failed' }).waitFor()
      await page.getByRole('link', { name: 'backup' }).click()

      await page.getByRole('button', { name: 'Pause: backup' }).click()
      await rowOf(page, 'backup').getByText('Paused').waitFor()
      await page.getByRole('button', { name: 'Resume: backup' }).click()
      await rowOf(page, 'backup').getByText('Late or failed').waitFor()

      await page.getByRole('button', { name: 'New address: backup' }).click()
      await page.getByRole('dialog', { name: 'New address for “backup”?' }).getByRole('button', { name: 'New address' }).click()
      assert.notEqual(await ping.locator('pre').first().innerText(), address)
      assert.equal((await fetch(address)).status, 404)
      await page.keyboard.press('Escape')

      await page.getByRole('button', { name: 'Edit: backup' }).click()
      assert.equal(await dialog.getByLabel('Cron pattern').inputValue(), '30 2 * * *')
      await dialog.getByText('At intervals').click()
      await dialog.getByLabel('Every').fill('2h')
      await dialog.getByRole('button', { name: 'Save' }).click()
      // The address is shown once the beat is saved.
      await ping.locator('pre').first().waitFor()
      await page.keyboard.press('Escape')
      await rowOf(page, 'backup').getByText('every 2h, 1h of grace').waitFor()
      await page.getByRole('button', { name: 'Delete: backup' }).click()
      await page.getByRole('dialog', { name: 'Delete “backup”?' }).getByRole('button', { name: 'Delete' }).click()
      await rowOf(page, 'backup').waitFor({ state: 'detached' })
    })
  })
})
