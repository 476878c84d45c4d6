import assert from 'node:assert/strict'
import { describe } from 'node:test'
import { skip } from '../support/browser'
import { isRecord, text } from './support'
import { loaded, onStage, until, violations, withBrowser } from './page/stage'

/** 2 × 3 pixels. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA2iEnWAAAAEElEQVR4nGNQmNAARAwoFABIpQchRxFYDAAAAABJRU5ErkJggg=='

const group = '123456'
const otherGroup = '654321'

const atEnd = '(log => log.scrollHeight - log.scrollTop - log.clientHeight < 2)(document.getElementById("log"))'

/** A voice message of so many seconds in which nothing is heard: WAV, 8 kHz, 8 bits. */
function silence(seconds: number): Buffer {
  const samples = Buffer.alloc(8000 * seconds, 0x80)
  const header = Buffer.from('524946460000000057415645666d74201000000001000100401f0000401f0000010008006461746100000000', 'hex')
  header.writeUInt32LE(36 + samples.length, 4)
  header.writeUInt32LE(samples.length, 40)
  return Buffer.concat([header, samples])
}

describe('the page of the simulator', { skip, timeout: 300_000 }, () => {
  withBrowser()

  onStage('a sent text appears once, on the other side than what is typed here, letter for letter', async ({ bot, page }) => {
    const markup = '<img src=x onerror=alert(1)><script>alert(2)</script> [CQ:at,qq=1] &amp; <b>bold</b>'
    await bot.send(group, 'line one\n  indented   wide')
    const bubble = page.locator('#messages .message.theirs .text')
    await bubble.waitFor()
    assert.equal(await bubble.count(), 1)
    assert.equal(await bubble.innerText(), 'line one\n  indented   wide')
    assert.equal(await page.locator('#messages .day').innerText(), 'Today')
    assert.match(await page.locator('#messages .head time').innerText(), /^\d\d:\d\d$/)
    assert.match(await page.locator(`[data-chat="group-${group}"] .entry-last`).innerText(), /line one indented wide$/)
    await bot.send(group, markup)
    await bubble.nth(1).waitFor()
    assert.equal(await bubble.nth(1).textContent(), markup)
    assert.ok((await page.locator('.entry-last').first().textContent())?.includes('<img src=x onerror=alert(1)>'))
    assert.equal(await page.locator('#messages .text *, .entry-last *').count(), 0)
  })

  onStage('a file is a card with its name, its size and a link that downloads it', async ({ bot, page }) => {
    const content = Buffer.alloc(1536, 'x')
    await bot.call('upload_group_file', {
      group_id: Number(group), file: `base64://${content.toString('base64')}`, name: '报告 <b>1</b>.txt',
    })
    await page.locator('#messages .file').waitFor()
    assert.equal(await page.locator('.file-name').textContent(), '报告 <b>1</b>.txt')
    assert.equal(await page.locator('.file-size').textContent(), '1.5 KB')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download 报告 <b>1</b>.txt' }).click(),
    ])
    const chunks: Buffer[] = []
    for await (const chunk of await download.createReadStream()) {
      assert.ok(chunk instanceof Buffer)
      chunks.push(chunk)
    }
    assert.deepEqual(Buffer.concat(chunks), content)
  })

  onStage('a picture that is elsewhere is not loaded, and the page says why and where', async ({ bot, page }) => {
    const asked: string[] = []
    page.on('request', request => asked.push(new URL(request.url()).hostname))
    await bot.send(group, { type: 'image', data: { file: 'https://pictures.example/a.png?sign=1' } })
    const note = page.locator('#messages .unfetched')
    await note.waitFor()
    assert.match(await note.innerText(), /^Image · a\.png\s+Not loaded: the simulator fetches nothing from other machines\./)
    const link = note.getByRole('link', { name: 'https://pictures.example/a.png?sign=1' })
    assert.equal(await link.getAttribute('href'), 'https://pictures.example/a.png?sign=1')
    assert.equal(await page.locator('#messages .picture').count(), 0)
    assert.match(await page.locator('.entry-last').first().innerText(), /\[Image\]$/)
    assert.deepEqual([...new Set(asked)].filter(host => host !== '127.0.0.1'), [])
  })

  onStage('addresses in a text are links, whatever else looks like one is text', async ({ bot, page }) => {
    const text = '见 https://ci.example/a_(b)?c=d&e#f。or (http://x.example/y), HTTPS://Z.example! '
      + 'javascript:alert(1) file:///etc/passwd data:text/html,x ftp://x.example http:// https://] www.x.example'
    await bot.send(group, text)
    const paragraph = page.locator('#messages .text')
    await paragraph.waitFor()
    assert.equal(await paragraph.textContent(), text)
    const links = paragraph.getByRole('link')
    assert.deepEqual(await links.allTextContents(), ['https://ci.example/a_(b)?c=d&e#f', 'http://x.example/y', 'HTTPS://Z.example'])
    for (const link of await links.all()) {
      assert.equal(await link.getAttribute('rel'), 'noopener noreferrer')
      assert.equal(await link.getAttribute('target'), '_blank')
      assert.match(String(await link.getAttribute('href')), /^https?:\/\//)
    }
  })

  onStage('a message that the bot takes back disappears', async ({ simulator, bot, page }) => {
    for (const text of ['first', 'oops', 'last']) await bot.send(group, text)
    await page.locator('#messages .message').nth(2).waitFor()
    await bot.call('delete_msg', { message_id: simulator.ledger[1]?.messageId })
    await page.locator('#messages .text').filter({ hasText: 'oops' }).waitFor({ state: 'detached' })
    await bot.call('delete_msg', { message_id: simulator.ledger[2]?.messageId })
    await page.locator(`[data-chat="group-${group}"] .entry-last`).filter({ hasText: 'first' }).waitFor()
    await bot.send(otherGroup, 'nobody reads this')
    const badge = page.locator(`[data-chat="group-${otherGroup}"] .badge`)
    await badge.filter({ hasText: /^1$/ }).waitFor()
    await bot.call('delete_msg', { message_id: simulator.ledger[3]?.messageId })
    await badge.waitFor({ state: 'hidden' })
    await bot.send(group, 'next')
    await page.locator('#messages .text').filter({ hasText: 'next' }).waitFor()
    assert.deepEqual(await page.locator('#messages .text').allInnerTexts(), ['first', 'next'])
  })

  onStage('a chat\'s switches are turned, shown and undone', async ({ simulator, bot, page }) => {
    await bot.send(group, 'before')
    await page.locator('#messages .message').waitFor()
    const menu = page.locator('#chat-trouble summary')
    await menu.click()
    const longer = (): number => Math.round(((simulator.switches[0]?.until ?? 0) - Date.now()) / 60_000)
    await page.getByRole('checkbox', { name: /^Muted/ }).check()
    await page.locator('#switched').filter({ hasText: /^Switched on here: Muted until (\w+, \w+ \d+ )?\d\d:\d\d\.$/ }).waitFor()
    await menu.filter({ hasText: /^Trouble \(1\)$/ }).waitFor()
    assert.deepEqual([simulator.switches.map(({ name, target }) => [name, target?.id]), longer()], [[['muted', group]], 10])
    await page.getByRole('combobox', { name: 'How long the bot is muted' }).selectOption({ label: '1 h' })
    await simulator.until(() => longer() === 60)
    await page.getByRole('combobox', { name: 'How long the bot is muted' }).selectOption({ label: '24 h' })
    const tomorrow = new Intl.DateTimeFormat('en', { weekday: 'long' }).format(Date.now() + 24 * 3_600_000)
    await page.locator('#switched').filter({ hasText: new RegExp(`^Switched on here: Muted until ${tomorrow}, .*\\d\\d:\\d\\d\\.$`) }).waitFor()
    await page.keyboard.press('Escape')
    await until(page, '!document.getElementById("chat-trouble").open && document.activeElement.matches("#chat-trouble summary")')
    await assert.rejects(bot.send(group, 'not heard'), /"result\\+": 120/)
    await page.locator('#refusal').filter({ hasText: 'Refused: a message to the group Builds.' }).waitFor()
    await page.locator('#refusal-why').filter({ hasText: /^1200 发送失败，你已被禁言$/ }).waitFor()
    await page.locator('#refusal-close').click()
    await page.locator('#refusal').waitFor({ state: 'hidden' })
    await page.locator(`[data-chat="group-${otherGroup}"]`).click()
    await until(page, 'document.getElementById("switched").textContent === ""')
    simulator.mute(group, false)
    await page.locator(`[data-chat="group-${group}"]`).click()
    await menu.filter({ hasText: /^Trouble$/ }).waitFor()
    await bot.send(group, 'after')
    await page.locator('#messages .text').filter({ hasText: 'after' }).waitFor()
  })

  onStage('a send to nobody is shown, and the page makes the platform accept it', async ({ bot, page }) => {
    await assert.rejects(bot.send('999999', 'hello'), /"result\\+": 110/)
    await page.locator('#refusal').filter({ hasText: 'Refused: a message to the group 999999. It does not exist here.' }).waitFor()
    await page.reload()
    await loaded(page)
    await page.locator('#refusal').filter({ hasText: '999999' }).waitFor()
    await page.locator('#all-trouble summary').click()
    await page.getByRole('checkbox', { name: /^Accept any target/ }).check()
    await page.locator('#all-trouble summary').filter({ hasText: '(1)' }).waitFor()
    await page.locator('#refusal-what').filter({ hasText: /999999\.$/ }).waitFor()
    await bot.send('999999', 'hello')
    await page.locator('[data-chat="group-999999"] .entry-last').filter({ hasText: 'hello' }).waitFor()
  })

  onStage('the notice of a refusal goes away by itself, unless the reader is at it', async ({ bot, page }) => {
    const notice = page.locator('#refusal')
    await page.clock.install()
    await assert.rejects(bot.send('999999', 'hello'))
    await notice.waitFor()
    await page.locator('#refusal-close').focus()
    await page.clock.runFor(30_000)
    assert.equal(await notice.isVisible(), true)
    await page.locator('#text').focus()
    await page.clock.runFor(30_000)
    await notice.waitFor({ state: 'hidden' })
    await assert.rejects(bot.send('999999', 'again'))
    await notice.waitFor()
  })

  onStage('names are in the language of the page, also after it was changed', async ({ simulator, bot, page }) => {
    await bot.send(group, { type: 'at', data: { qq: '10001' } }, text(' down'))
    simulator.say({ group, user: '10003', text: 'up' })
    const shown = async (names: RegExp): Promise<void> => {
      for (const place of ['#chat-list', '#conversation']) await page.locator(place).filter({ hasText: names }).waitFor()
    }
    const chinese = /\p{Script=Han}/u
    await shown(/Builds/)
    await page.locator('#messages .name').filter({ hasText: 'On call' }).waitFor()
    const english = await page.locator('main').innerText()
    for (const name of ['Builds', 'Ops', 'Xiao Ming', 'Simulated bot', '@Xiao Ming down']) assert.ok(english.includes(name), name)
    assert.ok(!chinese.test(english), english)
    await page.locator('#text').fill('a draft')
    await page.locator('#language').click()
    await shown(/构建通知 Builds/)
    for (const name of ['运维值班', '模拟机器人']) await page.locator('#messages .name').filter({ hasText: name }).waitFor()
    await page.locator('#speaker option').filter({ hasText: '小明' }).waitFor({ state: 'attached' })
    assert.equal(await page.locator('#text').inputValue(), 'a draft')
    await bot.send(otherGroup, 'new')
    await page.locator('#chat-list').filter({ hasText: '模拟机器人: new' }).waitFor()
  })

  onStage('on a narrow screen, the composer is one line', async ({ page }) => {
    const middles = await page.evaluate(`[...document.querySelectorAll('#speaker, #text, #send')].map(node => {
      const { top, height } = node.getBoundingClientRect()
      return top + height / 2
    })`)
    assert.ok(Array.isArray(middles) && middles.length === 3 && new Set(middles).size === 1, String(middles))
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320)
    const [speaker, box] = [page.getByRole('combobox', { name: 'Speak as' }), page.locator('#text')]
    await speaker.waitFor()
    assert.ok(((await box.boundingBox())?.width ?? 0) > 90)
  }, { viewport: { width: 320, height: 600 }, hash: `#group-${group}` })

  onStage('the bot coming and going is shown, and so is that it is cut off and let in again', async ({ bot, page, connect }) => {
    await page.locator('#status[data-kind=connected]').waitFor()
    assert.equal(await page.locator('#composer-note').isVisible(), false)
    await bot.close()
    await page.locator('#status[data-kind=waiting]').waitFor()
    assert.equal(await page.locator('#status').innerText(), 'No bot connected')
    assert.equal(await page.locator('#composer-note').isVisible(), true)
    await page.locator('#all-trouble summary').click()
    const offline = page.getByRole('checkbox', { name: /^Offline/ })
    await offline.check()
    await page.locator('#status[data-kind=switchedOff]').waitFor()
    await page.locator('#switched').filter({ hasText: 'Offline' }).waitFor()
    await assert.rejects(connect(), /503/)
    await offline.uncheck()
    await page.locator('#status[data-kind=waiting]').waitFor()
    await connect()
    await page.locator('#status[data-kind=connected]').waitFor()
  })

  onStage('speaking as a member reaches the bot exactly as typed', async ({ bot, page }) => {
    await page.locator('#speaker').selectOption({ label: 'Alice' })
    const box = page.locator('#text')
    assert.equal(await box.getAttribute('aria-label'), 'Message as Alice')
    await box.fill('#ping ')
    await box.press('Shift+Enter')
    await box.pressSequentially('two <b> ')
    await box.press('Enter')
    const event = await bot.frame(frame => frame.post_type === 'message')
    assert.equal(String(event.user_id), '10002')
    assert.equal(String(event.group_id), group)
    assert.deepEqual(event.message, [text('#ping \ntwo <b> ')])
    await page.locator('#messages .message.own').waitFor()
    assert.equal(await page.locator('#messages .own .text').textContent(), '#ping \ntwo <b> ')
    assert.equal(await page.locator('#messages .own .name').innerText(), 'Alice')
    await until(page, 'document.getElementById("text").value === "" && document.activeElement.id === "text"')
    // While an input method composes, Enter does not send.
    await box.fill('ni')
    await box.dispatchEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true })
    await box.fill('你好')
    await box.press('Enter')
    await page.locator('#messages .own').nth(1).waitFor()
    assert.deepEqual(await page.locator('#messages .own .text').allTextContents(), ['#ping \ntwo <b> ', '你好'])
  })

  onStage('a member answers a message and reacts to it, and another one does', async ({ simulator, bot, page }) => {
    await bot.send(group, 'down')
    const id = simulator.ledger[0]?.messageId
    const message = page.locator('#messages .theirs')
    await message.hover()
    await message.getByRole('button', { name: 'Reply' }).click()
    await page.locator('#composer-quoted').filter({ hasText: /^Reply to Simulated bot: down$/ }).waitFor()
    await page.locator('#text').fill('我来')
    await page.keyboard.press('Enter')
    const said = await bot.frame(frame => frame.post_type === 'message')
    assert.deepEqual(said.message, [{ type: 'reply', data: { id: String(id) } }, { type: 'at', data: { qq: '10000' } }, text(' 我来')])
    await page.locator('#messages .own .quote-text').filter({ hasText: 'down' }).waitFor()
    await page.locator('#composer-quote').waitFor({ state: 'hidden' })

    const notice = async (user: number, isAdded: boolean): Promise<void> => {
      await bot.frame(({ notice_type: type, user_id: from, is_add: isAdd }) => type === 'group_msg_emoji_like' && from === user && isAdd === isAdded)
    }
    await message.getByRole('button', { name: 'React' }).click()
    await message.getByRole('button', { name: '👀' }).click()
    await notice(10001, true)
    await until(page, 'document.activeElement.matches(".theirs [data-tool=react]")')
    await page.locator('#speaker').selectOption({ label: 'Alice' })
    const chip = message.locator('.reaction[data-emoji]')
    assert.equal(await chip.getAttribute('aria-label'), '👀 1: Xiao Ming')
    await chip.click()
    await notice(10002, true)
    await chip.filter({ hasText: '👀 2' }).waitFor()
    await chip.click()
    await notice(10002, false)
    await chip.filter({ hasText: '👀 1' }).waitFor()
    await page.reload()
    await loaded(page)
    await chip.waitFor()
    // With the keyboard, the same button of another message is an arrow key away.
    await page.locator('#messages .own [data-tool=quote]').focus()
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('ArrowRight')
    await until(page, 'document.activeElement.matches(".theirs [data-tool=react]")')
  })

  onStage('both languages have every text', async ({ page }) => {
    const shape = await page.evaluate(`import(new URL('i18n.js', location.href)).then(({ texts }) => {
      const lines = all => Object.entries(all).flatMap(([key, text]) => typeof text === 'object'
        ? lines(text).map(line => key + '.' + line)
        : key + ' ' + typeof text + ' ' + (typeof text === 'function' ? text('{}').includes('{}') : text !== ''))
      return { en: lines(texts.en), zh: lines(texts.zh) }
    })`)
    assert.ok(isRecord(shape))
    assert.deepEqual(shape.en, shape.zh)
    assert.ok(Array.isArray(shape.en) && shape.en.length > 40)
    assert.ok(shape.en.every(line => String(line).endsWith(' true')))
  })

  onStage('after the event stream was cut nothing is missing and nothing is there twice', async ({ simulator, page }) => {
    for (const text of ['a', 'b']) simulator.say({ group, user: '10001', text })
    await page.locator('#messages .message').nth(1).waitFor()
    await page.evaluate('document.querySelector("#messages .message").dataset.kept = "yes"')
    await simulator.goOffline()
    await page.locator('#status[data-kind=offline]').waitFor()
    for (const text of ['c', 'd']) simulator.say({ group, user: '10001', text })
    await simulator.goOnline()
    await page.locator('#status[data-kind=waiting]').waitFor()
    simulator.say({ group, user: '10001', text: 'e' })
    await page.locator('#messages .message').nth(4).waitFor()
    assert.deepEqual(await page.locator('#messages .text').allInnerTexts(), ['a', 'b', 'c', 'd', 'e'])
    // What was there is still the same element: a reconnect does not interrupt a video or lose a selection.
    assert.equal(await page.locator('#messages [data-kept]').count(), 1)
  })

  onStage('a long conversation keeps few elements, earlier messages are a button away', async ({ simulator, page }) => {
    const total = 1200
    for (let index = 1; index <= total; index++) simulator.say({ group, user: '10001', text: `number ${index}` })
    await page.locator('#messages .text').filter({ hasText: `number ${total}` }).waitFor()
    const shown = async (): Promise<number> => await page.locator('#messages .message').count()
    assert.ok(await shown() <= 500, `${await shown()} elements`)
    await until(page, atEnd)
    // The state fetched after a reconnect holds only the end of the chat; what the page knows before it must stay.
    await simulator.goOffline()
    await page.locator('#status[data-kind=offline]').waitFor()
    await simulator.goOnline()
    await page.locator('#status[data-kind=waiting]').waitFor()
    for (let step = 0; !await page.locator('#messages .text').filter({ hasText: /^number 1$/ }).count(); step++) {
      assert.ok(step < 10, 'the beginning is never reached')
      const first = await page.locator('#messages .text').first().innerText()
      await page.locator('#earlier').click()
      await until(page, `document.querySelector("#messages .text").textContent !== ${JSON.stringify(first)}`)
      assert.ok(await shown() <= 500, `${await shown()} elements`)
    }
    assert.equal(await page.locator('#earlier').isVisible(), false)
    assert.equal(await page.locator('#later').isVisible(), true)
    await page.locator('#latest').click()
    await page.locator('#messages .text').filter({ hasText: `number ${total}` }).waitFor()
    await until(page, atEnd)
  })

  for (const [colorScheme, locale, width, background] of [['light', 'en-US', 1280, ''], ['dark', 'zh-CN', 360, 'rgb(18, 23, 26)']] as const) {
    onStage(`axe finds nothing wrong: ${colorScheme}, ${width} px, ${locale}`, async ({ simulator, bot, page }) => {
      if (background) assert.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), background)
      assert.deepEqual(await violations(page), [], 'an empty chat')
      const id = simulator.say({ group: otherGroup, user: '10002', text: 'see https://ci.example/42' })
      const [reply, mention] = [{ type: 'reply', data: { id: String(id) } }, { type: 'at', data: { qq: '10002' } }]
      await bot.send(otherGroup, reply, mention, { type: 'image', data: { file: `base64://${png}` } })
      await bot.send(otherGroup, { type: 'reply', data: { id: '1' } }, { type: 'image', data: { file: 'https://pictures.example/a.png' } })
      await bot.send(otherGroup, { type: 'record', data: { file: `base64://${silence(3).toString('base64')}` } })
      await bot.call('upload_group_file', { group_id: Number(otherGroup), file: `base64://${png}`, name: 'a.png' })
      simulator.mute(otherGroup, true)
      await assert.rejects(bot.send(otherGroup, 'not heard'))
      await page.locator('#messages .file').waitFor()
      await page.locator('.voice-length').waitFor()
      await page.locator('#refusal').waitFor()
      simulator.react({ user: '10001', messageId: id, emoji: '128064' })
      await page.locator('.reaction').waitFor()
      await page.evaluate('for (const button of document.querySelectorAll(".tool")) button.click()')
      assert.deepEqual(await violations(page), [], 'a conversation')
      await page.locator('#chat-trouble summary').click()
      assert.deepEqual(await violations(page), [], 'its switches')
      await page.goto(simulator.pageUrl)
      await page.locator('#chat-list').waitFor()
      await page.locator('#all-trouble summary').click()
      await page.locator('#details summary').click()
      assert.deepEqual(await violations(page), [], 'the list')
    }, { colorScheme, locale, viewport: { width, height: 740 }, hash: `#group-${otherGroup}` })
  }
})
