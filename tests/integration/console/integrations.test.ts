import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { fieldsOf } from '../../../src/lib/shape'
import { skip } from '../../support/browser'
import { read } from '../../support/relay'
import { until } from '../../support/until'
import { useTabs } from './stage'

describe('the tab Integrations', { skip, timeout: 300_000 }, () => {
  const stage = useTabs()

  /** Types the whole name of a target. */
  async function choose(page: Page, target: string): Promise<void> {
    await page.getByLabel('Target', { exact: true }).fill(target)
    await page.keyboard.press('Tab')
  }
  const valueOf = (page: Page, name: string): Promise<string> => page.getByLabel(name, { exact: true }).and(page.locator('pre')).innerText()

  async function post(url: string, body: object, headers: Record<string, string> = {}): Promise<number> {
    const { status } = await fetch(url, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } })
    return status
  }

  test('makes a target and a key, shows the finished address and secret, and what comes there', async () => {
    await stage.play('integrations', async page => {
      await page.getByRole('link', { name: 'GitHub', exact: true }).click()
      await page.getByText('Choose a target and a key').waitFor()
      await page.getByRole('button', { name: 'New target' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Name').fill('builds')
      await dialog.getByRole('combobox', { name: 'Chats' }).fill('构建通知 Builds')
      await page.keyboard.press('Tab')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Create key' }).click()
      await page.getByText('Key “github” created.').waitFor()
      await page.getByRole('combobox', { name: 'API key: github' }).waitFor()
      await page.getByRole('heading', { name: 'Waiting for the first call …' }).waitFor()
      const made = (await read(await stage.relay.request('/keys'))).data.keys
      assert(Array.isArray(made) && made.map(fieldsOf).some(({ name, sources }) => name === 'github' && String(sources) === 'github'))
      const [address, secret] = [await valueOf(page, 'Payload URL'), await valueOf(page, 'Secret')]
      assert.equal(address, `${stage.relay.url}/hooks/github/builds`)

      const call = (event: string, payload: object, key = secret): Promise<number> => {
        const signature = `sha256=${createHmac('sha256', key).update(JSON.stringify(payload)).digest('hex')}`
        return post(address, payload, { 'x-github-event': event, 'x-github-delivery': randomUUID(), 'x-hub-signature-256': signature })
      }
      const repository = { full_name: 'acme/shop', html_url: 'https://github.com/acme/shop' }
      assert.equal(await call('ping', { zen: 'Keep it logically awesome.', repository }), 200)
      await page.getByRole('heading', { name: 'A call has arrived, and it made no message' }).waitFor()
      await page.getByText('It reached the relay: ping events produce no message.').waitFor()
      const open = (number: number, title: string): Promise<number> => call('issues', {
        action: 'opened', repository, sender: { login: 'lena' },
        issue: { number, title, html_url: `https://github.com/acme/shop/issues/${number}`, user: { login: 'lena' } },
      })
      assert.equal(await open(7, 'The cart rounds twice'), 200)
      await page.getByRole('heading', { name: 'It works: a call has arrived' }).waitFor()
      await page.locator('.relay-bubble', { hasText: 'The cart rounds twice' }).waitFor()
      assert.equal(await open(8, 'The cart is empty'), 200)
      await page.locator('.relay-bubble', { hasText: 'The cart is empty' }).waitFor()
      await until('it is in the chat', () => stage.relay.simulator.ledger.some(({ text }) => text.includes('The cart rounds twice')))
      assert.deepEqual(await stage.violations(page), [])
    })
  })

  test('builds an address that selects events, and sends a test to the target', async () => {
    await stage.play('integrations/gitlab', async page => {
      await choose(page, 'ops')
      await page.getByRole('combobox', { name: 'API key' }).press('Enter')
      await page.getByRole('option', { name: 'old' }).click()
      for (const [name, option] of [['Only these events', 'pipeline'], ['Only these results', 'Failure']] as const) {
        await page.getByRole('combobox', { name }).press('Enter')
        await page.getByRole('option', { name: option }).click()
        await page.keyboard.press('Escape')
      }
      await page.getByLabel('Only these branches').fill('main, release/*')
      await page.getByRole('combobox', { name: 'Language' }).press('Enter')
      await page.getByRole('option', { name: '中文' }).click()
      assert.equal(await valueOf(page, 'URL'), `${stage.relay.url}/hooks/gitlab/ops?events=pipeline&status=failure&branch=main,release/*&lang=zh-CN`)
      assert.deepEqual(await stage.violations(page), [])
      await page.getByRole('button', { name: 'Send a test' }).click()
      await page.getByText(/^Sent to ops/).waitFor()
    })
    assert(stage.relay.simulator.ledger.some(({ text }) => text === 'This is a test: messages from GitLab will arrive here.'))
  })

  test('says when and why a call was refused, and nothing of the calls of others', async () => {
    const { url } = stage.relay
    const body = { zen: 'Design for failure.' }
    await stage.play('integrations/gitea', async page => {
      await page.getByRole('heading', { name: 'Waiting for the first call …' }).waitFor()
      await page.getByText('As soon as Gitea').waitFor()
      assert.equal(await post(`${url}/hooks/gitlab/ops`, body, { 'x-gitlab-token': 'wrong' }), 401)
      for (const [query, headers, reason] of [
        ['', { 'x-gitea-signature': '00'.repeat(32) }, 'Wrong signature'],
        ['?key=a-wrong-key', {}, 'Wrong API key'],
        ['', {}, 'No API key'],
      ] as const) {
        assert.equal(await post(`${url}/hooks/gitea/ops${query}`, body, headers), 401)
        const line = page.getByRole('status').filter({ hasText: reason })
        await line.waitFor()
        assert.match(await line.innerText(), /^\d\d:\d\d:\d\d .*: (?:Wrong|No) /)
        await page.getByRole('heading', { name: 'A call was refused' }).waitFor()
      }
      assert(!(await page.content()).includes('a-wrong-key'))
      assert.deepEqual(await stage.violations(page), [])
    })
  })

  test('tells on the overview which call was refused or made no message last, until one makes a message', async () => {
    const body = { action: 'opened', number: 1, issue: { number: 1, title: 'The cart is full' } }
    const call = (event: string, secret = 'the-secret-of-the-hooks'): Promise<number> => (
      post(`${stage.relay.url}/hooks/gitea/ops?key=${secret}`, body, { 'x-gitea-event': event, 'x-gitea-delivery': randomUUID() })
    )
    assert.equal(await call('fork', 'a-wrong-key'), 401)
    await stage.play('overview', async page => {
      const list = page.locator('.relay-section', { hasText: 'Last calls without a message' })
      const row = list.getByRole('listitem').filter({ has: page.getByRole('link', { name: /^Gitea/ }) })
      await row.getByText('Wrong API key').waitFor()
      assert.deepEqual(await stage.violations(page), [])
      assert.equal(await call('fork'), 200)
      await row.getByText('It reached the relay: fork events produce no message.').waitFor()
      assert.equal(await call('issues'), 200)
      await row.waitFor({ state: 'detached' })
    })
  })

  test('says where a key goes that only its owner knows, and that a call with it was refused', async () => {
    await stage.play('integrations/slack', async page => {
      await choose(page, 'ops')
      await page.getByRole('combobox', { name: 'API key' }).press('Enter')
      await page.getByRole('option', { name: 'old' }).click()
      await page.getByText('Only you know the key “old”').waitFor()
      assert.equal(await valueOf(page, 'Webhook URL'), `${stage.relay.url}/hooks/slack/ops?key=<key>`)
      await page.getByRole('heading', { name: /^Waiting for the/ }).waitFor()
      await page.getByText('As soon as Slack calls').waitFor()
      await until('the call was refused', async () => {
        assert.equal(await post(`${stage.relay.url}/hooks/slack/group:654321?key=the-secret-of-the-hooks`, { text: 'x' }), 403)
        return await page.getByRole('heading', { name: 'A call was refused' }).isVisible()
      })
      await page.getByText('this key may not send to group:654321').waitFor()
    })
  })

  test('edits a template beside what it makes of the last payload, and the next message uses it', async () => {
    const { relay } = stage
    const address = `${relay.url}/hooks/message/ops?key=the-secret-of-the-hooks`
    assert.equal(await post(address, { title: 'Disk', message: 'is full' }), 200)
    await stage.play('integrations/message', async page => {
      await page.getByRole('button', { name: 'Edit template' }).click()
      await page.locator('.relay-bubble', { hasText: 'is full' }).waitFor()
      const template = page.getByLabel('Template (Liquid)')
      await template.fill('{% if %}')
      await page.getByRole('alert').waitFor()
      await template.fill('ALERT {{ title }}: {{ text }}')
      await page.locator('.relay-bubble', { hasText: 'ALERT Disk: is full' }).waitFor()
      assert.deepEqual(await stage.violations(page), [])
      assert.equal(relay.simulator.ledger.filter(({ text }) => text.includes('ALERT')).length, 0)
      await page.getByRole('button', { name: 'Save template' }).click()
      await page.getByText('Template saved.').waitFor()
      assert.equal(await post(address, { title: 'Disk', message: 'is empty' }), 200)
      await page.locator('.relay-bubble', { hasText: 'ALERT Disk: is empty' }).first().waitFor()
      await page.getByRole('button', { name: 'Back to built-in' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Back to built-in' }).click()
      await page.getByText('The built-in template is used again.').waitFor()
    })
    assert.equal(await post(address, { title: 'Disk', message: 'is fine' }), 200)
    await until('all are in the chat', () => relay.simulator.ledger.some(({ text }) => text.includes('is fine')))
    assert.deepEqual(relay.simulator.ledger.filter(({ text }) => text.includes('ALERT')).map(({ text }) => text), ['ALERT Disk: is empty'])
  })

  test('offers a template for a source that has posted without one', async () => {
    const { relay } = stage
    const address = `${relay.url}/hooks/sonarr/ops?key=the-secret-of-the-hooks`
    assert.equal(await post(address, { eventType: 'Download', series: { title: 'Severance' }, apiKey: 'x' }), 200)
    await stage.play('integrations', async page => {
      await page.getByRole('link', { name: 'sonarr: write a template' }).click()
      await page.locator('.relay-bubble', { hasText: /^eventType: Download\s+series.title: Severance$/ }).waitFor()
      const template = page.getByLabel('Template (Liquid)')
      assert.equal(await template.inputValue(), 'eventType: {{ eventType }}\nseries.title: {{ series.title }}')
      await template.fill('{{ title }}')
      await page.getByText('No message: its template gives no text').waitFor()
      await template.fill('{{ series.title }}: {{ eventType }}')
      await page.locator('.relay-bubble', { hasText: 'Severance: Download' }).waitFor()
      await page.getByRole('button', { name: 'Save template' }).click()
      await page.getByText('Choose a target and a key').waitFor()
      assert.deepEqual(await stage.violations(page), [])
    })
    assert.equal(await post(address, { eventType: 'Upgrade', series: { title: 'Severance' } }), 200)
    await until('the template is used', () => relay.simulator.ledger.some(({ text }) => text === 'Severance: Upgrade'))
    assert(relay.simulator.ledger.some(({ text }) => text === 'eventType: Download\nseries.title: Severance'))
  })

  test('takes a template for another system, whose address then works', async () => {
    const { relay } = stage
    await stage.play('integrations', async page => {
      await page.getByRole('button', { name: 'Your own template' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Name of the source').fill('de ploys')
      await dialog.getByRole('button', { name: 'Continue' }).click()
      await dialog.getByText('Enter a name of letters').waitFor()
      await dialog.getByLabel('Name of the source').fill('deploys')
      await dialog.getByRole('button', { name: 'Continue' }).click()
      await page.getByLabel('Template (Liquid)').fill('{{ app }} {{ version }} is out')
      await page.getByRole('button', { name: 'Save template' }).click()
      await choose(page, 'ops')
      await page.getByRole('button', { name: 'Create key' }).click()
      assert.equal(await post(await valueOf(page, 'Webhook URL'), { app: 'shop', version: 42 }), 200)
      await page.locator('.relay-bubble', { hasText: 'shop 42 is out' }).first().waitFor()
    })
    assert(relay.simulator.ledger.some(({ text }) => text === 'shop 42 is out'))
  })
})
