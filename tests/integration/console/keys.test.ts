import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { fieldsOf, type JsonObject } from '../../../src/lib/shape'
import { skip } from '../../support/browser'
import { read } from '../../support/relay'
import { until } from '../../support/until'
import { useTabs } from './stage'

describe('the tab Keys and targets', { skip, timeout: 300_000 }, () => {
  const stage = useTabs()

  const rowOf = (page: Page, name: string) => page.getByRole('row', { name: new RegExp(`^${name}`) })
  /** The first text that is shown to be copied. */
  const shown = (page: Page) => page.getByRole('dialog').locator('pre').first().innerText()

  async function send(key: string, target: string): Promise<number> {
    const { status } = await fetch(`${stage.relay.url}/send/${target}`, { method: 'POST', body: 'hello', headers: { authorization: `Bearer ${key}` } })
    return status
  }

  test('makes a key that works at once, replaces it, and revokes it after a question', async () => {
    await stage.play('keys', async page => {
      await rowOf(page, 'ci').getByText('In the settings', { exact: true }).waitFor()
      assert.equal(await rowOf(page, 'ci').getByRole('button').count(), 0)

      await page.getByRole('button', { name: 'New key' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('button', { name: 'Create key' }).click()
      await dialog.getByText('Enter a name.').waitFor()
      await dialog.getByLabel('Name').fill('nightly')
      await dialog.getByLabel('Targets').fill('group:123456')
      await page.keyboard.press('Tab')
      assert.deepEqual(await stage.violations(page), [])
      await dialog.getByRole('button', { name: 'Create key' }).click()
      await dialog.getByText('Copy it now').waitFor()
      const first = await shown(page)
      assert.deepEqual(await stage.violations(page), [])
      await page.keyboard.press('Escape')
      await page.evaluate('location.hash = "overview"')
      await page.locator('#pane-overview .relay-panel > div').waitFor()
      assert.equal(await shown(page), first)
      await page.evaluate('location.hash = "keys"')
      await dialog.getByRole('button', { name: 'Done' }).click()
      await dialog.waitFor({ state: 'detached' })
      assert(!(await page.content()).includes(first))
      assert.deepEqual([await send(first, 'group:123456'), await send(first, 'group:654321')], [200, 403])

      const rotate = async (grace?: string): Promise<string> => {
        await page.getByRole('button', { name: 'Rotate: nightly' }).click()
        await dialog.getByText('In 24 hours').waitFor()
        if (grace !== undefined) {
          await dialog.getByRole('combobox').press('Enter')
          await page.getByRole('option', { name: grace }).click()
        }
        await dialog.getByRole('button', { name: 'Rotate key' }).click()
        await dialog.getByText('Copy it now').waitFor()
        return await shown(page)
      }
      const later = await rotate()
      assert.deepEqual([await send(first, 'group:123456'), await send(later, 'group:123456')], [200, 200])
      await dialog.getByRole('button', { name: 'Done' }).click()
      const second = await rotate('At once')
      assert.deepEqual([await send(first, 'group:123456'), await send(second, 'group:123456')], [401, 200])
      await dialog.getByRole('button', { name: 'Done' }).click()

      await page.getByRole('button', { name: 'Revoke: nightly' }).click()
      await page.getByRole('dialog', { name: 'Revoke “nightly”?' }).getByRole('button', { name: 'Cancel' }).click()
      assert.equal(await send(second, 'group:123456'), 200)
      await page.getByRole('button', { name: 'Revoke: nightly' }).click()
      await page.getByRole('dialog', { name: 'Revoke “nightly”?' }).getByRole('button', { name: 'Revoke' }).click()
      await page.getByText('Key “nightly” revoked.').waitFor()
      assert.equal(await send(second, 'group:123456'), 401)
      await rowOf(page, 'nightly').waitFor({ state: 'detached' })
    })
  })

  test('shows the new secret of a key that is rotated, beside the new key', async () => {
    await stage.play('keys', async page => {
      await page.getByRole('button', { name: 'New key' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Name').fill('signing')
      await dialog.getByText('Integrations (/hooks)').click()
      await dialog.getByText('More limits').click()
      await dialog.getByText('With a secret for signatures').click()
      await dialog.getByLabel('Only these sources').fill('github, gitea')
      await dialog.getByRole('button', { name: 'Create key' }).click()
      await dialog.getByText('with sources, allow must have hooks').waitFor()
      await dialog.getByText('Send messages').click()
      await dialog.getByRole('button', { name: 'Create key' }).click()
      const secret = dialog.getByLabel('Secret', { exact: true })
      const first = await secret.innerText()
      await dialog.getByRole('button', { name: 'Done' }).click()
      await rowOf(page, 'signing').getByText('only through github, gitea').waitFor()
      await page.getByRole('button', { name: 'Rotate: signing' }).click()
      await dialog.getByRole('button', { name: 'Rotate key' }).click()
      assert.notEqual(await secret.innerText(), first)
      assert.notEqual(await shown(page), await secret.innerText())
      await dialog.getByRole('button', { name: 'Done' }).click()
    })
  })

  test('shows what limits a key, and all of it on a phone, where lists are not wider than the screen', async () => {
    const to = Array.from({ length: 12 }, (_, at) => `group:${700_000 + at}`)
    assert.equal((await stage.relay.request('/targets/many', { method: 'PUT', body: JSON.stringify({ to }) })).status, 201)
    await stage.playAlone('keys', async page => {
      await rowOf(page, 'past').getByText('up to 30 a minute, only from 10.0.0.0/8, 192.0.2.1').waitFor()
      assert((await page.getByRole('region', { name: 'API keys' }).boundingBox())?.height === 480, 'a long list does not push the targets away')
      const widthOf = async (name: string): Promise<number> => (await page.locator(name).first().boundingBox())?.width ?? Infinity
      const state = rowOf(page, 'past').locator('.relay-state', { hasText: 'expired' })
      const { x = Infinity, width = 0 } = await state.boundingBox() ?? {}
      assert(x + width < 360)
      await page.getByRole('button', { name: 'New key' }).click()
      await page.getByRole('dialog').getByLabel('Targets').press('Enter')
      await page.getByRole('option', { name: /^many/ }).getByText('group:700011').waitFor()
      assert(await widthOf('.relay-popper:visible') <= 360)
      assert(await widthOf('.el-dialog') <= 360)
    }, { viewport: { width: 360, height: 800 } })
  })

  test('makes a key that lasts until the end of a day where the browser is', async () => {
    await stage.playAlone('keys', async page => {
      await page.getByRole('button', { name: 'New key' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Name').fill('until')
      await dialog.getByLabel('Expires').fill('2020-01-31')
      await dialog.getByRole('button', { name: 'Create key' }).click()
      await dialog.getByText('This day is over.').waitFor()
      await dialog.getByLabel('Expires').fill('2030-01-31')
      await dialog.getByRole('button', { name: 'Create key' }).click()
      await dialog.getByRole('button', { name: 'Done' }).click()
      await rowOf(page, 'until').getByText('Jan 31, 2030, 23:59:59').waitFor()
    }, { timezoneId: 'America/Los_Angeles' })
  })

  test('makes a target that callers can use at once, changes it, and deletes it after a question', async () => {
    const { relay } = stage
    const key = 'the-secret-of-the-pipeline'
    await stage.play('keys', async page => {
      await rowOf(page, 'ops').getByText('In the settings', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'New target' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Name').fill('alarms')
      await dialog.getByRole('combobox', { name: 'Chats' }).fill('Ops 值班群')
      await page.keyboard.press('Tab')
      assert.deepEqual(await stage.violations(page), [])
      await dialog.getByRole('button', { name: 'Save' }).click()
      await page.getByText('Target “alarms” saved.').waitFor()
      await rowOf(page, 'alarms').getByText('Ops 值班群 (group:654321)').waitFor()
      await relay.send({ to: 'alarms', msg: 'to the first' })

      await page.getByRole('button', { name: 'Edit: alarms' }).click()
      await dialog.getByRole('combobox', { name: 'Chats' }).fill('group:123456')
      await page.keyboard.press('Tab')
      await dialog.getByLabel('Bot').press('Enter')
      await page.getByRole('option', { name: 'onebot:10000' }).click()
      await dialog.getByRole('button', { name: 'Save' }).click()
      await rowOf(page, 'alarms').getByText('构建通知 Builds (onebot:10000:group:123456)').waitFor()
      await page.getByRole('button', { name: 'Edit: alarms' }).click()
      await dialog.getByText('onebot:10000', { exact: true }).waitFor()
      await dialog.getByRole('combobox', { name: 'Bot: onebot:10000' }).waitFor()
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.waitFor({ state: 'detached' })
      await relay.send({ to: 'alarms', msg: 'to both' })
      await until('both have it', () => relay.simulator.ledger.filter(({ text }) => text === 'to both').length === 2)
      assert.equal(relay.simulator.ledger.filter(({ text }) => text === 'to the first').length, 1)

      await page.getByRole('button', { name: 'Delete: alarms' }).click()
      await page.getByRole('dialog', { name: 'Delete “alarms”?' }).getByRole('button', { name: 'Delete' }).click()
      await rowOf(page, 'alarms').waitFor({ state: 'detached' })
      assert.equal((await relay.send({ to: 'alarms', msg: 'x' })).status, 404)
      assert.equal(await send(key, 'ops'), 200)
    })
  })

  test('makes people, a rota and a target that calls it, lets somebody stand in, and deletes nothing that is in use', async () => {
    const { relay } = stage
    await stage.play('keys', async page => {
      const dialog = page.getByRole('dialog')
      const save = async (): Promise<void> => {
        assert.deepEqual(await stage.violations(page), [])
        await dialog.getByRole('button', { name: 'Save' }).click()
        await dialog.waitFor({ state: 'detached' })
      }
      const choose = async (field: string, ...options: string[]): Promise<void> => {
        await dialog.getByLabel(field, { exact: true }).first().press('Enter')
        for (const name of options) await page.locator('.relay-popper:visible').getByRole('option', { name }).click()
        await page.keyboard.press('Tab')
      }
      for (const [name, called, account] of [['li-lei', '李雷', '10001'], ['han-mei', '韩梅梅', '10002']] as const) {
        await page.getByRole('button', { name: 'New person' }).click()
        await dialog.getByRole('button', { name: 'Save' }).click()
        await dialog.getByText('Enter a name.').waitFor()
        await dialog.getByLabel('Name').fill(name)
        await dialog.getByLabel('Shown as').fill(called)
        await dialog.getByLabel('Account on onebot').fill(account)
        await save()
        await rowOf(page, name).getByText(`onebot:${account}`).waitFor()
      }

      await page.getByRole('button', { name: 'New rota' }).click()
      await dialog.getByLabel('Name').fill('week')
      await choose('People', '李雷', '韩梅梅')
      await dialog.getByLabel('First turn begins').fill('2026-11-02T09:00')
      await save()
      await rowOf(page, 'week').getByText('李雷 → 韩梅梅').waitFor()
      await page.getByRole('button', { name: 'Edit: week' }).click()
      assert.equal(await dialog.getByLabel('First turn begins').inputValue(), '2026-11-02T09:00')
      await save()

      const now = await rowOf(page, 'week').locator('strong').innerText()
      const other = now === '李雷' ? '韩梅梅' : '李雷'
      await page.getByRole('button', { name: 'Swap: week' }).click()
      await choose('Who', other)
      await save()
      await rowOf(page, 'week').locator('strong', { hasText: other }).waitFor()
      await rowOf(page, 'week').getByText(`${other} stands in from`).waitFor()

      await page.getByRole('button', { name: 'New target' }).click()
      await dialog.getByLabel('Name').fill('watch')
      await dialog.getByRole('combobox', { name: 'Chats' }).fill('group:123456')
      await page.keyboard.press('Tab')
      await dialog.getByText('On duty: @ and incidents').click()
      await choose('Call by @: Critical', 'week')
      await dialog.getByText('Somebody has to take it').click()
      await choose('Who may take it', 'week', '李雷')
      await dialog.getByLabel('Remind whoever').fill('4h')
      for (const [step, after] of ['5m', '30m'].entries()) {
        await dialog.getByRole('button', { name: 'Add a step' }).click()
        await dialog.getByLabel('After', { exact: true }).nth(step).fill(after)
      }
      await choose('Call by @', 'week')
      await dialog.getByRole('combobox', { name: 'In another chat' }).nth(1).fill('private:10001')
      await page.keyboard.press('Tab')
      await dialog.getByLabel('Repeat every').fill('1h')
      await save()
      await page.getByRole('button', { name: 'Edit: watch' }).click()
      await save()
      const { targets } = await dataOf('/targets')
      assert(Array.isArray(targets))
      const { mention, ack } = fieldsOf(targets.find(target => fieldsOf(target).name === 'watch'))
      assert.deepEqual([mention, ack], [{ critical: ['week'] }, {
        from: 'warning', who: ['week', 'li-lei'], remind: 14_400,
        escalate: [{ after: 300, mention: ['week'] }, { after: 1800, to: 'private:10001', again: 3600 }],
      }])

      const remove = async (name: string): Promise<void> => {
        await page.getByRole('button', { name: `Delete: ${name}` }).click()
        await page.getByRole('dialog', { name: `Delete “${name}”?` }).getByRole('button', { name: 'Delete' }).click()
      }
      await remove('week')
      await page.getByText('this rota is used by the name "watch"').waitFor()
      for (const name of ['watch', 'week', 'li-lei', 'han-mei']) {
        await remove(name)
        await rowOf(page, name).waitFor({ state: 'detached' })
      }
    })

    async function dataOf(path: string): Promise<JsonObject> {
      return fieldsOf((await read(await relay.request(path))).body.data)
    }
  })
})
