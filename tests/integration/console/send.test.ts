import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import type { LedgerEntry } from '../../../simulator/types'
import { fieldsOf } from '../../../src/lib/shape'
import { skip } from '../../support/browser'
import { temporaryFolder } from '../../support/folder'
import { apiKey, read } from '../../support/relay'
import { useTabs } from './stage'

describe('the tab Send', { skip, timeout: 300_000 }, () => {
  const stage = useTabs()

  /** Types the whole name of a target, and chooses nothing from the list. */
  async function type(page: Page, target: string): Promise<void> {
    await page.getByRole('combobox', { name: /^Target/ }).fill(target)
    await page.keyboard.press('Tab')
  }
  const textOf = (page: Page) => page.getByLabel('Text', { exact: true })
  const button = (page: Page) => page.getByRole('button', { name: 'Send', exact: true })

  test('sends once however often the button is clicked, says so, and keeps only the target', async () => {
    const { relay } = stage
    await stage.play('send', async page => {
      for (const target of ['ops', 'group:123456', '构建通知 Builds']) {
        await type(page, target)
        await textOf(page).fill(`to ${target}`)
        await button(page).dblclick()
        await page.getByText('Sent to 构建通知 Builds (group:123456).').or(page.getByText('Sent to ops.')).waitFor()
        assert.equal(await textOf(page).inputValue(), '')
        await button(page).click()
        await page.getByRole('alert').getByText('Enter a text or choose a file.').waitFor()
        assert.equal(relay.simulator.ledger.filter(({ text }) => text === `to ${target}`).length, 1)
      }
      assert.deepEqual(await stage.violations(page), [])
    })
  })

  test('does not double a message without an answer that is sent again', async () => {
    const { relay } = stage
    relay.simulator.fault({ fault: { kind: 'lost-answer' } })
    const blind = relay.simulator.fault({ fault: { kind: 'silent' }, action: /history/, times: Infinity })
    await stage.play('send', async page => {
      await type(page, 'ops')
      await textOf(page).fill('once')
      await button(page).click()
      await page.getByText('Failed: ').waitFor()
      assert.equal(await textOf(page).inputValue(), 'once')
      blind.remove()
      await button(page).click()
      await page.getByText('Sent to ops.').waitFor()
    })
    assert.equal(relay.simulator.ledger.filter(({ text }) => text === 'once').length, 1)
  })

  test('shows a preview, a failure in the words of the relay, and sends files, also a picture that chats do not show', async () => {
    const { relay } = stage
    await stage.play('send', async page => {
      await type(page, 'ops')
      await textOf(page).fill('<b>preview</b>')
      await page.getByLabel('Pictures and files').setInputFiles([
        { name: '报告.txt', mimeType: 'text/plain', buffer: Buffer.from('report') },
        { name: 'plan.svg', mimeType: 'image/svg+xml', buffer: Buffer.from('<svg/>') },
      ])
      await page.getByRole('button', { name: 'Preview' }).click()
      await page.locator('.relay-bubble', { hasText: '<b>preview</b>' }).waitFor()
      assert(!relay.simulator.ledger.some(({ text }) => text.includes('preview')))
      await type(page, 'nobody')
      await button(page).click()
      const { body } = await relay.send({ to: 'nobody', msg: 'x' })
      await page.getByText(body.msg).waitFor()
      assert.equal(await page.getByRole('button', { name: 'Open record' }).count(), 0)
      await type(page, 'ops')
      await button(page).click()
      await page.getByText('Sent to ops.').waitFor()
    })
    const sent = relay.simulator.ledger.slice(-3).map(({ text, media }) => [text, ...media.map(({ type, name }) => `${type} ${name}`)])
    assert.deepEqual(sent, [['<b>preview</b>'], ['', 'file 报告.txt'], ['', 'file plan.svg']])
  })

  test('copies what Send does as commands that do the same, files included', async () => {
    const { relay } = stage
    const folder = temporaryFolder()
    const name = 'it\'s a report, 1;2 $x.txt'
    await writeFile(join(folder, name), 'content')
    await stage.play('send', async page => {
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
      const run = async (): Promise<readonly LedgerEntry[]> => {
        await page.getByRole('button', { name: 'Copy as curl' }).click()
        await page.getByText('Copied').waitFor()
        const command = String(await page.evaluate('navigator.clipboard.readText()'))
        const count = relay.simulator.ledger.length
        const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: folder, env: { PATH: process.env.PATH, KEY: apiKey } })
        assert.match(stdout, /"code":0/)
        return relay.simulator.ledger.slice(count)
      }
      await type(page, 'ops')
      await page.getByLabel('Text', { exact: true }).fill('it\'s "quoted" & $HOME\n`line` 2 \\')
      assert.deepEqual((await run()).map(({ text }) => text), ['it\'s "quoted" & $HOME\n`line` 2 \\'])
      await page.getByLabel('Pictures and files').setInputFiles([join(folder, name)])
      const sent = await run()
      assert.deepEqual(sent.map(({ text }) => text), ['it\'s "quoted" & $HOME\n`line` 2 \\', ''])
      assert.deepEqual(sent[1]?.media.map(({ type, size }) => [type, size]), [['file', 7]])
      await page.getByRole('button', { name: 'Send', exact: true }).click()
      await page.getByText('Sent to ops.').waitFor()
      assert.deepEqual(relay.simulator.ledger.at(-1)?.media, sent[1].media)
    })
  })

  test('sends later, urgently, in a thread and with a mention, and warns of a group that the bot is not in', async () => {
    await stage.play('send', async page => {
      await type(page, 'group:99999')
      await page.getByText('The bot is not in group:99999.').waitFor()
      await type(page, 'ops')
      await page.getByText('The bot is not in').waitFor({ state: 'detached' })
      await textOf(page).fill('for later')
      await page.getByText('Urgent, time, mention, thread').click()
      await page.getByText('Urgent: send it').click()
      await page.getByLabel('Send at').fill(new Date(Date.now() + 172_800_000).toISOString().slice(0, 16))
      await page.getByLabel('Thread', { exact: true }).fill('release')
      await page.getByRole('combobox', { name: 'Mention' }).fill('all')
      await page.keyboard.press('Enter')
      assert.deepEqual(await stage.violations(page), [])
      await button(page).click()
      await page.getByText('Accepted for ops, and not sent yet.').waitFor()
      assert.equal(await page.getByLabel('Send at').inputValue(), '')
    })
    const { data: { deliveries } } = await read(await stage.relay.request('/deliveries?state=scheduled&text=later'))
    assert(Array.isArray(deliveries))
    const [made] = deliveries.map(fieldsOf)
    assert.deepEqual([made?.urgent, JSON.stringify(made?.items)], [true, '[{"type":"text","msg":"for later"}]'])
    assert.equal((await stage.relay.request(`/deliveries/${String(made?.id)}`, { method: 'DELETE' })).status, 200)
  })

  test('keeps what is being written when the bot restarts, and nothing once it was sent', async () => {
    await stage.playAlone('send', async page => {
      await type(page, 'ops')
      await textOf(page).fill('written before')
      await page.reload()
      await page.getByRole('combobox', { name: 'Target: ops' }).waitFor()
      assert.equal(await textOf(page).inputValue(), 'written before')
      await button(page).click()
      await page.getByText('Sent to ops.').waitFor()
      await page.reload()
      await page.getByRole('combobox', { name: 'Target: ops' }).waitFor()
      assert.equal(await textOf(page).inputValue(), '')
    })
  })

  test('says which of several targets a part of a message did not reach, and why', async () => {
    const fault = stage.relay.simulator.fault({ fault: { kind: 'refuse', wording: 'too fast' }, target: '777', action: /upload/, times: Infinity })
    await stage.play('send', async page => {
      await type(page, 'ops,group:777')
      await textOf(page).fill('with a file')
      await page.getByLabel('Pictures and files').setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('a') })
      await button(page).click()
      await page.getByRole('alert').getByText(/^(群 777 \()?group:777\)?: a.txt: Refused: .*too fast/).waitFor()
      await page.getByText(/^The rest was sent to (群 777 \()?group:777\)?\.$/).waitFor()
      await page.getByText('Sent to 构建通知 Builds (group:123456).').waitFor()
    })
    fault.remove()
  })
})
