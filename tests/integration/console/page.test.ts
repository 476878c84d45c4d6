import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { Simulator } from '../../../simulator'
import { isObject } from '../../../src/lib/shape'
import { failFiles } from '../../support/data-file'
import { skip } from '../../support/browser'
import { addForward } from '../../support/onebot'
import { read } from '../../support/relay'
import { until } from '../../support/until'
import { useStage } from './stage'

/** The places of the page, each with what is there once it is loaded. */
const places = {
  'overview': '.relay-bar', 'incidents': '.relay-incidents', 'beats': '.relay-table', 'deliveries': 'tr.record', 'send': 'form', 'integrations': '.relay-tile',
  'integrations/github': '.relay-back', 'keys': '.relay-table',
}

describe('the page', { skip, timeout: 300_000 }, () => {
  const stage = useStage({
    targets: { ops: 'group:123456', hook: { first: ['http://127.0.0.1:9/'] }, oncall: ['group:123456', 'discord:group:9'] },
    keys: [{ name: 'ci', key: 'the-secret-of-the-pipeline', targets: ['ops'], allow: ['send'] }],
    people: { 'li-lei': { onebot: 10001, name: '李雷' } },
    rotas: { week: { people: ['li-lei'], every: '1w', from: '2026-11-30T09:00+08:00' } },
    beats: { 'nightly-backup': { cron: '30 2 * * *', to: 'ops' } },
  })

  /** What the relay says of a delivery. */
  async function stateOf(id: string): Promise<unknown> {
    const { status, body } = await read(await stage.relay.request(`/deliveries/${id}`))
    return isObject(body.data) ? body.data.state : status
  }
  const arrived = (text: string): number => stage.relay.simulator.ledger.filter(entry => entry.text === text).length

  async function send(group: string, msg: string): Promise<string> {
    return (await stage.relay.send({ group_id: group, msg })).headers.get('x-request-id') ?? ''
  }

  /** Sends what fails. */
  async function fail(group: string, msg: string): Promise<string> {
    const fault = stage.relay.simulator.fault({ fault: { kind: 'refuse', wording: 'too fast' }, target: group, times: Infinity })
    const id = await send(group, msg)
    fault.remove()
    return id
  }

  /** Accepts messages that wait. */
  function accept(to: string, ...texts: string[]): Promise<string[]> {
    return Promise.all(texts.map(async msg => {
      const body = JSON.stringify({ to, msg })
      const { status, headers } = await stage.relay.request('/webhook', { method: 'POST', body, headers: { prefer: 'respond-async' } })
      assert.equal(status, 202)
      return headers.get('x-request-id') ?? ''
    }))
  }

  /** Has a group fail until its queue is paused, and then messages wait in it. */
  async function pause(group: string, ...texts: string[]): Promise<string[]> {
    const { simulator } = stage.relay
    // Its queue is shown by the name of the group, which the platform has to know.
    simulator.setRole(group, 'member')
    const gone = simulator.fault({ fault: { kind: 'not-member' }, target: group, times: Infinity })
    for (let count = 0; count < 5; count++) await send(group, 'x')
    gone.remove()
    return accept(`group:${group}`, ...texts)
  }

  /** Clicks a button, and answers the question that comes with no, then with yes. */
  async function ask(page: Page, name: string, question: string, verb: string, afterNo: () => Promise<void>): Promise<void> {
    const button = page.getByRole('button', { name }).first()
    await button.click()
    const dialog = page.getByRole('dialog', { name: question })
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'hidden' })
    await afterNo()
    await button.click()
    await dialog.getByRole('button', { name: verb }).waitFor()
    assert.deepEqual(await stage.violations(page), [])
    await dialog.getByRole('button', { name: verb }).click()
    await dialog.waitFor({ state: 'hidden' })
  }

  test('begins with three steps to the first message, and then with numbers', async () => {
    await stage.play('overview', async page => {
      await page.getByText('Ready to send').waitFor()
      await page.getByRole('heading', { name: 'Connect a bot (done)' }).waitFor()
      assert.deepEqual(await stage.violations(page), [])
      await page.getByRole('link', { name: 'Open Send' }).click()
      await page.waitForURL(/#send$/)
    })
    for (let count = 0; count < 150; count++) await send(count % 3 ? '123456' : '654321', `Build ${count} failed`)
    await stage.playAlone('overview', async page => {
      await page.getByText('Everything works').waitFor()
      await page.getByRole('link', { name: /^Delivered 100%/ }).waitFor()
      await page.getByRole('link', { name: /^Sent 150/ }).waitFor()
      await page.addInitScript(`new MutationObserver(() => {
        if ([...document.querySelectorAll('.relay-number')].some(({ innerText }) => innerText === '–')) window.wasHalf = true
      }).observe(document, { childList: true, subtree: true })`)
      await page.reload()
      await page.getByText('Everything works').waitFor()
      await page.getByRole('link', { name: /^Sent 150/ }).waitFor()
      assert.equal(await page.evaluate('window.wasHalf'), undefined)
      const headline = page.locator('.relay-headline', { hasText: 'Needs attention' })
      const failElsewhere = (): Promise<unknown> => stage.relay.send({ group_id: '123456', msg: 'x', platform: 'telegram' })
      await failElsewhere()
      await headline.getByText('messages failed in the last hour', { exact: true }).waitFor()
      for (let count = 0; count < 9; count++) await failElsewhere()
      await page.reload()
      await headline.getByText('messages failed in the last hour, only 93.7% of 24 hours delivered').waitFor()
    })
  })

  for (const [locale, colorScheme, width] of [['en-US', 'dark', 360], ['zh-CN', 'light', 1280]] as const) {
    test(`is readable, also for a screen reader: ${locale}, ${colorScheme}, ${width} px`, async () => {
      await stage.playAlone('overview', async page => {
        for (const [place, whenLoaded] of Object.entries(places)) {
          await page.evaluate(`location.hash = ${JSON.stringify(place)}`)
          await page.locator(whenLoaded).first().waitFor()
          assert.deepEqual(await stage.violations(page), [], place)
          const isTooWide = await page.evaluate(`['.relay', '.relay-panel', '.relay > .el-tabs > .el-tabs__content'].some(name => {
            const { scrollWidth, clientWidth } = document.querySelector(name)
            return scrollWidth > clientWidth
          })`)
          assert.equal(isTooWide, false, place)
        }
        assert.equal(await page.locator('#tab-overview').innerText(), locale === 'zh-CN' ? '概览' : 'Overview')
      }, { locale, colorScheme, viewport: { width, height: 800 } })
    })
  }

  test('speaks the language of the browser until somebody chooses one', async () => {
    await stage.playAlone('overview', async page => {
      // What the console has where nobody has chosen.
      await page.addInitScript(`localStorage.setItem('koishi.console.config', localStorage.getItem('chosen') ?? '{"theme":{"mode":"auto","dark":"default-dark","light":"default-light"},"locale":"zh-CN"}')`)
      await page.reload()
      await page.getByRole('button', { name: 'Language: 中文' }).click()
      await page.locator('#tab-overview', { hasText: '概览' }).waitFor()
      await page.reload()
      await page.getByRole('button', { name: '语言：English' }).click()
      await page.locator('#tab-overview', { hasText: 'Overview' }).waitFor()
    })
  })

  test('says what is on hold, why, and until when', async () => {
    const { simulator } = stage.relay
    await pause('654321')
    simulator.mute('655', true)
    await send('655', 'x')
    const [id] = await accept('group:655', 'held')
    await stage.play('overview', async page => {
      await page.getByText('Needs attention').waitFor()
      await page.locator('.relay-closed li', { hasText: '654321' }).getByText(/^resumes in \d+ s$/).waitFor()
      await page.locator('.relay-closed li', { hasText: '655' }).getByText('The bot is muted in this group').waitFor()
      await page.getByRole('link', { name: /^Waiting 1 oldest/ }).waitFor()
      assert.deepEqual(await stage.violations(page), [])
      const [way] = await accept('hook', 'to a hook')
      await page.locator('.relay-closed li', { hasText: 'hook: First choice' }).getByText('until it can be reached').waitFor()
      await stage.relay.request(`/deliveries/${way}`, { method: 'DELETE' })
    })
    await stage.playAlone(`deliveries/${id}`, async page => {
      await page.getByText(/ 前暂不发送：机器人在该群被禁言$/).waitFor()
    }, { locale: 'zh-CN' })
    simulator.mute('655', false)
    await until('it has arrived', () => arrived('held') === 1)
  })

  test('says in its language why something was not sent and why an account is offline, with the words of the platform', async () => {
    const { simulator } = stage.relay
    simulator.mute('656', true)
    await send('656', 'x')
    const id = await send('656', 'too late')
    simulator.turn('loggedOut', true)
    try {
      await stage.playAlone(`deliveries/${id}`, async page => {
        await page.locator('.relay-why', { hasText: /机器人在该群被禁言/ }).first().waitFor()
        await page.locator('#tab-overview').click()
        await page.getByText(/^账号已掉线（下线通知: 你的账号.+） · 已/).waitFor()
      }, { locale: 'zh-CN' })
    } finally {
      simulator.turn('loggedOut', false)
      simulator.mute('656', false)
    }
    await until('it is online again', async () => (await stage.relay.request('/readyz')).status === 200)
  })

  test('lists deliveries as they come, opens one beside the list by keyboard, and gives the focus back', async () => {
    await stage.play('deliveries', async page => {
      await page.locator('tr.record').first().waitFor()
      await send('123456', 'the row below')
      await send('123456', 'brand new')
      assert.equal(await page.locator('tr.record td.check', { hasText: /./ }).count(), 0)
      await page.locator('tr.record', { hasText: 'brand new' }).locator('.relay-open').focus()
      await page.keyboard.press('Enter')
      const record = page.getByRole('complementary', { name: 'Delivery' })
      await record.getByRole('heading', { name: '构建通知 Builds group:123456' }).waitFor()
      await record.getByText('The platform accepted all of it.').waitFor()
      const first = page.url()
      await page.keyboard.press('ArrowDown')
      await until('the record of the next row is open', () => page.url() !== first)
      await record.getByText('The platform accepted all of it.').waitFor()
      assert.deepEqual(await stage.violations(page), [])
      await record.getByRole('button', { name: 'Close' }).click()
      await record.waitFor({ state: 'detached' })
      await page.locator('tr.record .relay-open:focus').waitFor()
    })
  })

  test('keeps few rows in the document however many it has been through', async () => {
    await stage.play('deliveries', async page => {
      await page.locator('tr.record').first().waitFor()
      await until('the last is there', async () => {
        await page.evaluate('document.querySelector(".relay-window").scrollTo(0, 1e9)')
        return await page.locator('.relay-window table[aria-rowcount="-1"]').count() === 0
      })
      assert(await page.locator('tr.record').count() < 100)
      assert(Number(await page.locator('.relay-window table').getAttribute('aria-rowcount')) > 150)
    })
  })

  test('finds deliveries by text and state, and retries all that are found, such as the rest of what was partly sent', async () => {
    const { relay } = stage
    const broken = relay.simulator.fault({ fault: { kind: 'refuse' }, action: 'upload_group_file', target: '704', times: Infinity })
    const { headers } = await relay.send({ group_id: '704', messages: [{ msg: 'both' }, ...Array.from({ length: 21 }, () => ({ type: 'file', url: 'base64://YQ==' }))] })
    const id = headers.get('x-request-id') ?? ''
    broken.remove()
    await stage.play('deliveries', async page => {
      await page.getByLabel('Search messages').fill('both')
      await page.waitForURL(/text=both/)
      await page.getByRole('button', { name: /^Failed/ }).click()
      await page.locator('tr.record').getByText('Partly sent').waitFor()
      assert.equal(await page.locator('tr.record').count(), 1)
      await ask(page, 'Retry all', 'Retry', 'Retry', async () => assert.equal(await stateOf(id), 'failed'))
      await page.getByText('1 message queued.').waitFor()
      await page.getByRole('button', { name: /^Sent ?1$/ }).waitFor({ timeout: 5000 })
      await page.getByRole('button', { name: /^Failed ?0$/ }).waitFor()
    })
    await until('the rest has arrived', async () => await stateOf(id) === 'sent')
    assert.equal(arrived('both'), 1)
    await stage.play(`deliveries/${id}`, async page => {
      const { data } = await read(await relay.request(`/deliveries/${id}`))
      await page.getByText(`Call ${String(data.attempts)}`, { exact: true }).waitFor()
      assert.equal(await page.getByText('Call 1', { exact: true }).count(), 0)
    })
  })

  test('retries the chosen ones, and says of which it did not, and why', async () => {
    const ids = [await fail('705', 'one'), await fail('705', 'two')]
    await stage.play('deliveries?target=group:705', async page => {
      await page.locator('th.check .el-checkbox').click()
      // Somebody else was faster.
      assert.equal((await stage.relay.request(`/deliveries/${ids[0]}/retry`, { method: 'POST' })).status, 202)
      await page.getByRole('button', { name: 'Retry 2 chosen' }).click()
      await page.getByRole('dialog', { name: 'Retry 2 deliveries?' }).getByRole('button', { name: 'Retry' }).click()
      await page.getByText(/^1 message queued\. 1 skipped: /).waitFor()
    })
    await until('both have arrived', () => arrived('one') === 1 && arrived('two') === 1)
  })

  test('retries one', async () => {
    const id = await fail('700', 'again')
    await stage.play(`deliveries/${id}`, async page => {
      await page.getByText('too fast').first().waitFor()
      await ask(page, 'Retry', 'Retry this delivery?', 'Retry', async () => assert.equal(await stateOf(id), 'failed'))
      await page.getByText('Queued for another attempt.').waitFor()
      await page.getByText('The platform accepted all of it.').waitFor()
    })
    assert.equal(arrived('again'), 1)
  })

  test('withdraws what waits, which then is no more in the list', async () => {
    const [id = ''] = await pause('701', 'withdrawn')
    await stage.play(`deliveries/${id}`, async page => {
      await ask(page, 'Withdraw', 'Withdraw this delivery?', 'Withdraw', async () => assert.equal(await stateOf(id), 'queued'))
      await page.locator(`tr.record[data-id="${id}"]`).waitFor({ state: 'detached' })
    })
    assert.equal(await stateOf(id), 404)
    assert.equal(arrived('withdrawn'), 0)
  })

  test('drops what waits in a queue, and lets another one go on', async () => {
    const ids = await pause('702', 'dropped 1', 'dropped 2')
    await pause('703', 'goes on')
    // The page learns the names of chats when it is loaded.
    await stage.playAlone('overview', async page => {
      await ask(page, 'Drop: 群 702 (group:702)', 'Drop everything that waits for 群 702 (group:702)?', 'Drop', async () => {
        for (const id of ids) assert.equal(await stateOf(id), 'queued')
      })
      await page.getByText('2 messages dropped.').waitFor()
      await page.getByRole('button', { name: 'Resume: 群 703 (group:703)' }).click()
      await page.locator('.relay-closed li', { hasText: 'group:703' }).waitFor({ state: 'detached' })
    })
    for (const id of ids) assert.equal(await stateOf(id), 'failed')
    assert.equal(arrived('dropped 1'), 0)
    await until('it has arrived', () => arrived('goes on') === 1)
  })

  test('says that a chat is still closed when its queue is to go on', async () => {
    const { simulator } = stage.relay
    simulator.mute('656', true, 600)
    await send('656', 'x')
    await stage.play('overview', async page => {
      const queue = page.locator('.relay-closed li', { hasText: 'group:656' })
      await queue.getByRole('button', { name: 'Resume' }).click()
      await page.getByText(/^Not resumed\. Held until .* because the bot is muted in this group/).waitFor()
      await queue.waitFor()
      await page.getByText('Needs attention').waitFor()
      simulator.mute('656', false)
    })
  })

  test('keeps many queues short, names their account where there are several, and a data file that cannot be used', async t => {
    const { app, simulator } = stage.relay
    const other = await Simulator.start({ selfId: '20000' })
    t.after(() => other.close())
    const fork = addForward(app, other.endpoint, { selfId: '20000' })
    await until('there are two accounts', () => app.bots.filter(({ platform }) => platform === 'onebot').length === 2)
    const groups = Array.from({ length: 12 }, (_, index) => String(657 + index))
    for (const group of groups) {
      simulator.mute(group, true, 600)
      await send(group, 'x')
    }
    await stage.playAlone('overview', async page => {
      const queue = page.locator('.relay-closed li', { hasText: 'group:657' })
      await queue.getByText('onebot:10000').waitFor()
      assert.deepEqual(await stage.violations(page), [])
      const { height = 0 } = await page.locator('.relay-closed').boundingBox() ?? {}
      assert(height > 0 && height < 350, `${height} px: the accounts have to stay in view`)
      await queue.getByRole('button', { name: /^Resume: onebot:10000: .*group:657/ }).waitFor()
      const headline = page.locator('.relay-headline', { hasText: 'the relay cannot use its data file' })
      let restore = failFiles('all')
      await headline.waitFor()
      restore()
      await headline.waitFor({ state: 'detached' })
      fork.dispose()
      await queue.getByText('onebot:10000').waitFor({ state: 'detached' })
      // It can be read, and not be written.
      restore = failFiles('run')
      await send('670', 'x')
      await headline.waitFor()
      restore()
      await headline.waitFor({ state: 'detached' })
    })
    for (const group of groups) simulator.mute(group, false)
  })

  test('moves a time range on as time passes, and keeps one of one\'s own while it is changed', async () => {
    await send('715', 'an hour ago')
    await stage.playAlone('deliveries?target=group:715&range=1h', async page => {
      await page.locator('tr.record', { hasText: 'an hour ago' }).waitFor()
      await page.clock.setFixedTime(Date.now() + 7_200_000)
      await page.getByText('No delivery matches these filters.').waitFor()
      await page.getByRole('combobox', { name: 'Time range: Last hour' }).press('Enter')
      await page.getByRole('option', { name: 'From … to …' }).click()
      const from = page.getByLabel('From', { exact: true })
      await from.press('Backspace')
      await page.waitForURL(/range=custom$/)
      await from.waitFor()
      const [left, right] = await Promise.all([0, 1].map(at => page.locator('.relay-pickers .el-input__wrapper').nth(at).boundingBox()))
      assert(left && right && left.x + left.width < right.x)
    })
  })

  test('says why nothing can be found, and not that nothing matches', async () => {
    await stage.playAlone(`deliveries?target=${encodeURIComponent('值班群')}`, async page => {
      await page.getByText('操作失败：target 应为：group:<群号>').waitFor()
      assert.equal(await page.locator('.relay-empty').innerText(), '')
    }, { locale: 'zh-CN' })
  })
})
