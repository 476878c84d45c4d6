import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { fieldsOf } from '../../../src/lib/shape'
import { skip } from '../../support/browser'
import { read } from '../../support/relay'
import { until } from '../../support/until'
import { useTabs } from './stage'

describe('on the page, when and by which way messages leave', { skip, timeout: 300_000 }, () => {
  const stage = useTabs()

  /** @returns the ID of the delivery */
  async function send(body: Record<string, unknown>): Promise<string> {
    const response = await stage.relay.request('/webhook', { method: 'POST', body: JSON.stringify(body) })
    assert(response.ok, await response.clone().text())
    return response.headers.get('x-request-id') ?? ''
  }
  /** What the relay tells of something. */
  const ask = async (path: string): Promise<Record<string, unknown>> => fieldsOf((await read(await stage.relay.request(path))).body.data)
  const open = (page: Page, id: string) => page.evaluate(`location.hash = ${JSON.stringify(`deliveries/${id}`)}`)

  test('is set for a name, shown beside it, and kept when another part is changed', async () => {
    await stage.play('keys', async page => {
      const row = page.getByRole('row', { name: /^disk/ })
      const dialog = page.getByRole('dialog')
      const wayOf = (place: number) => dialog.getByRole('combobox', { name: place === 1 ? /^First choice/ : new RegExp(`^Fallback ${place - 1}`) })
      const named = async (): Promise<unknown> => {
        const { targets } = await ask('/targets')
        assert(Array.isArray(targets))
        return targets.find(each => fieldsOf(each).name === 'disk')
      }
      await page.getByRole('button', { name: 'New target' }).click()
      await dialog.getByLabel('Name').fill('disk')
      await dialog.getByText('Try in order').click()
      await dialog.getByRole('button', { name: 'Save' }).click()
      assert.equal(await dialog.getByText('Enter an address, or remove this one.').count(), 2)
      await dialog.locator('.relay-ways li:first-child input:focus').waitFor()
      await wayOf(1).fill('https://ops.example.com/hook')
      await page.keyboard.press('Tab')
      await dialog.getByLabel('Secret for signatures').fill('a secret of the receiver')
      await wayOf(2).fill('group:123456')
      await page.keyboard.press('Tab')
      await dialog.getByRole('button', { name: 'Add a fallback' }).click()
      await wayOf(3).fill('private:10001')
      await page.keyboard.press('Tab')
      await dialog.getByRole('button', { name: 'Up: Fallback 1' }).click()
      await dialog.getByLabel('Seconds until the next fallback').fill('60')
      await dialog.getByText('Digest and quiet hours').click()
      await dialog.getByLabel('Seconds between messages').fill('30')
      const { y = -1 } = await page.locator('.el-dialog').boundingBox() ?? {}
      assert(y >= 0, 'its title can be scrolled to')
      await dialog.getByLabel('Quiet from').fill('22:00')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.getByText('Enter two different times').waitFor()
      await dialog.getByLabel('Quiet until').fill('08:00')
      assert.deepEqual(await stage.violations(page), [])
      await dialog.getByRole('button', { name: 'Save' }).click()
      await row.getByText('构建通知 Builds (group:123456) → https://ops.example.com/hook').waitFor()
      const made = {
        name: 'disk', first: ['group:123456', { url: 'https://ops.example.com/hook', secret: true }, 'private:10001'], after: 60, when_unknown: 'stop',
        digest: 30, quiet: { from: '22:00', to: '08:00', zone: Intl.DateTimeFormat().resolvedOptions().timeZone }, source: 'made',
      }
      assert.deepEqual(await named(), made)
      await row.getByText(`next fallback after 60 s, at most one message in 30 s, quiet 22:00–08:00 (${made.quiet.zone})`).waitFor()

      await page.getByRole('button', { name: 'Edit: disk' }).click()
      await dialog.getByRole('button', { name: 'Remove: Fallback 2' }).click()
      await dialog.getByText('Also try the next one').click()
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.waitFor({ state: 'detached' })
      assert.deepEqual(await named(), { ...made, first: made.first.slice(0, 2), when_unknown: 'next' })
    })
  })

  test('warns of a way that is gone', async () => {
    const put = (name: string, body: unknown): Promise<Response> => stage.relay.request(`/targets/${name}`, { method: 'PUT', body: JSON.stringify(body) })
    await put('shift', 'group:123456')
    await put('rescue', { first: ['shift', 'group:654321'] })
    await stage.play('keys', async page => {
      await page.getByRole('button', { name: 'Delete: shift' }).click()
      const dialog = page.getByRole('dialog', { name: 'Delete “shift”?' })
      await dialog.getByText('rescue will skip it').waitFor()
      await dialog.getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('row', { name: /^rescue/ }).getByText('Skipped: shift no longer leads to one chat.').waitFor()
      assert.deepEqual(await stage.violations(page), [])
    })
  })

  test('is told of what waits for its time', async () => {
    const night = await send({ to: 'night', msg: 'Backup done' })
    const later = await send({ to: 'group:123456', msg: 'Release at ten', send_at: 3600 })
    const sooner = await send({ to: 'group:654321', msg: 'Standup', send_at: 600 })
    await stage.play('overview', async page => {
      await page.getByRole('heading', { name: 'Scheduled' }).waitFor()
      const waiting = page.locator('.relay-section', { has: page.getByRole('heading', { name: 'Scheduled' }) }).getByRole('listitem')
      await waiting.getByText('2 messages, next at').waitFor()
      assert.match(await waiting.first().innerText(), /group:654321/)
      await stage.relay.request(`/deliveries/${sooner}`, { method: 'DELETE' })
      assert.deepEqual(await stage.violations(page), [])
      await open(page, '')
      await page.locator('tr.record', { hasText: 'Backup done' }).getByText('HTTP API').waitFor()
      await page.locator('tr.record', { hasText: 'Backup done' }).getByText(/^Quiet hours until \d\d:\d\d/i).filter({ visible: true }).waitFor()
      await page.getByRole('button', { name: /^Waiting ?1$/ }).click()
      await page.locator('tr.record', { hasText: 'Release at ten' }).waitFor({ state: 'detached' })
      await page.getByRole('button', { name: /^Waiting ?1$/ }).click()
      await page.getByRole('button', { name: /^Scheduled ?1$/ }).click()
      await page.locator('tr.record', { hasText: 'Backup done' }).waitFor({ state: 'detached' })
      await page.locator('tr.record', { hasText: 'Release at ten' }).waitFor()
      await open(page, night)
      await page.getByText('Quiet hours: it leaves at').waitFor()
      await open(page, later)
      await page.getByText('It waits for its time.').waitFor()
      await page.getByText('Scheduled for', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'Withdraw' }).click()
      await page.getByRole('dialog', { name: 'Withdraw this delivery?' }).getByRole('button', { name: 'Withdraw' }).click()
      await until('it is gone', async () => (await stage.relay.request(`/deliveries/${later}`)).status === 404)
    })
  })

  test('is told of threads, ways and digests', async () => {
    await send({ to: 'group:123456', msg: 'db-1 is down', thread: 'db-1' })
    const answer = await send({ to: 'group:123456', msg: 'db-1 is up', thread: 'db-1' })
    stage.relay.simulator.fault({ fault: { kind: 'not-member' }, target: '404', times: Infinity })
    const rescued = await send({ to: 'oncall', msg: 'The disk is full' })
    await send({ to: 'flapping', msg: 'web-1 is down' })
    const members = [await send({ to: 'flapping', msg: 'web-2 is down' }), await send({ to: 'flapping', msg: 'web-3 is down' })]
    const stateOf = async (id: string): Promise<unknown> => (await ask(`/deliveries/${id}`)).state
    for (const id of [rescued, ...members]) await until('it was sent', async () => await stateOf(id) === 'sent')
    await stage.play('deliveries', async page => {
      await open(page, answer)
      await page.getByText('Answered its first message').waitFor()
      await open(page, rescued)
      await page.getByRole('heading', { name: 'Tried before' }).waitFor()
      await page.getByText('group:404').waitFor()
      await page.getByText('oncall: Fallback 1 (http:group:oncall/2)').waitFor()
      await open(page, members[0] ?? '')
      await page.getByRole('link', { name: 'Left in a digest of 2 messages' }).click()
      await page.getByRole('heading', { name: 'Stands for 2 messages' }).waitFor()
      await page.locator('dt:text-is("Caller") + dd:text-is("–")').waitFor()
      assert.deepEqual(await stage.violations(page), [])
      await page.getByRole('link', { name: 'Message 2' }).click()
      await page.waitForURL(new RegExp(`#deliveries/${members[1]}$`))
    })
  })

  test('is told by Send, which does not call sent what waits', async () => {
    await stage.play('send', async page => {
      await page.getByRole('combobox', { name: /^Target/ }).fill('night')
      await page.keyboard.press('Tab')
      await page.getByLabel('Text', { exact: true }).fill('Backup done')
      await page.getByRole('button', { name: 'Preview' }).click()
      await page.getByText(/^Quiet hours: it leaves at/).waitFor()
      await page.getByRole('button', { name: 'Send', exact: true }).click()
      await page.getByText('Accepted for night, and not sent yet. Quiet hours: it leaves at').waitFor()
      assert.equal(await page.getByText('Sent to').count(), 0)
    })
  })

  test('keeps the secret of a way whose address is chosen again', async () => {
    const body = JSON.stringify({ first: [{ url: 'https://ops.example.com/hook', secret: 'a secret' }, 'group:123456'] })
    assert.equal((await stage.relay.request('/targets/pager', { method: 'PUT', body })).status, 201)
    await stage.play('keys', async page => {
      await page.getByRole('button', { name: 'Edit: pager' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('combobox', { name: /^First choice/ }).fill('https://ops.example.com/hook')
      await page.keyboard.press('Tab')
      await dialog.getByText('Leave empty to keep the present one.').waitFor()
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.waitFor({ state: 'detached' })
    })
    const { targets } = await ask('/targets')
    assert(Array.isArray(targets))
    const { first } = fieldsOf(targets.find(each => fieldsOf(each).name === 'pager'))
    assert.deepEqual(first, [{ url: 'https://ops.example.com/hook', secret: true }, 'group:123456'])
  })
})
