import { copyButton } from './clipboard.js'
import { avatar, el, setText } from './dom.js'
import { clock, day, moment, sameDay } from './format.js'
import { renderParts } from './parts.js'

/** The reactions to choose from, by QQ's IDs: most are the code points of emoji. The last one means nothing to the relay. */
const EMOJI = ['128064', '128076', '128164', '127881', '128077']

/** The emoji of an ID. QQ's own pictures have no character. */
function emojiOf(id) {
  return Number(id) > 1000 ? String.fromCodePoint(Number(id)) : `[${id}]`
}

/** Consecutive messages of one person within this time share a heading. */
const TOGETHER_MS = 3 * 60_000

/**
 * How a message is rendered depends on the one before it: whether a new day begins, and whether it continues a series.
 * @returns {'new-day' | 'new-speaker' | 'continued'}
 */
export function variantOf(message, previous) {
  if (!previous || !sameDay(message.time, previous.time)) return 'new-day'
  const same = String(message.sender.id) === String(previous.sender.id) && message.sender.self === previous.sender.self
  return same && message.time - previous.time < TOGETHER_MS ? 'continued' : 'new-speaker'
}

/**
 * One message of a conversation. The reader types what members say, so their messages appear as the reader's own, the bot's do not.
 * @param {object} message
 * @param {'new-day' | 'new-speaker' | 'continued'} variant
 * @param {object} context language, texts, chat, the bot's account and the click handlers
 */
export function renderMessage(message, variant, context) {
  const { language, t, chat } = context
  const { sender, parts } = message
  const bare = parts.length > 0 && parts.every(({ type }) => type === 'image' || type === 'video' || type === 'unfetched')
  const time = el('time', { datetime: new Date(message.time).toISOString(), title: moment(message.time, language) }, clock(message.time, language))
  const name = el('span', { class: 'name', dir: 'auto' }, sender.name)
  const tag = sender.self ? el('span', { class: 'tag' }, t.bot) : null
  const body = el('div', { class: 'body' },
    el('p', { class: 'head' }, name, tag, time),
    el('div', { class: 'line' },
      el('div', { class: bare ? 'bubble bare' : 'bubble' }, ...renderParts(parts, context)),
      el('div', { class: 'tools' },
        message.id === null ? null : quoteButton(message, context),
        message.id === null || chat.type === 'private' ? null : reactButton(message, context),
        sourceButton(message, context))),
    el('p', { class: 'reactions' }),
    message.isSwallowed ? el('p', { class: 'swallowed' }, t.swallowed) : null)
  return el('li', { 'class': `message ${sender.self ? 'theirs' : 'own'} ${variant}`, 'data-seq': message.seq, 'tabindex': -1 },
    variant === 'new-day' ? el('p', { class: 'day' }, el('span', {}, day(message.time, language))) : null,
    el('div', { class: 'row' }, avatar(sender.name, sender.id), body))
}

/**
 * Shows the reactions to a message below it, each with a button for the reader's own. Those that stay are the same nodes, for the focus.
 * @param {HTMLElement} node of `renderMessage`
 */
export function drawReactions(node, message, { react }) {
  const list = node.querySelector('.reactions')
  const known = new Map([...list.children].map(chip => [chip.dataset.emoji, chip]))
  for (const { emoji, users } of message.reactions) {
    const chip = known.get(emoji) ?? el('button', { 'type': 'button', 'class': 'reaction', 'data-emoji': emoji })
    chip.onclick = () => react(message, emoji)
    chip.title = users.map(({ name }) => name).join(', ')
    setText(chip, `${emojiOf(emoji)} ${users.length}`)
    chip.setAttribute('aria-label', `${chip.textContent}: ${chip.title}`)
    if (!known.delete(emoji)) list.append(chip)
  }
  for (const chip of known.values()) {
    if (chip === document.activeElement) node.querySelector('.tool').focus()
    chip.remove()
  }
}

function toolButton(kind, label, sign) {
  return el('button', {
    'type': 'button', 'class': 'tool', 'data-tool': kind, 'aria-label': label, 'title': label, 'tabindex': -1,
  }, el('span', { 'aria-hidden': 'true' }, sign))
}

function quoteButton(message, { t, quote }) {
  const button = toolButton('quote', t.quote, '↩')
  button.addEventListener('click', () => quote(message))
  return button
}

/** The button that shows the emoji to choose from below a message. */
function reactButton(message, { t, react }) {
  const button = toolButton('react', t.react, '☺')
  return unfolding(button, close => el('div', { 'class': 'emoji', 'role': 'group', 'aria-label': t.react }, ...EMOJI.map(id => {
    const choice = el('button', { type: 'button', class: 'reaction' }, emojiOf(id))
    choice.addEventListener('click', () => {
      react(message, id)
      close()
    })
    return choice
  })))
}

/** The button that shows the OneBot ID and segments of a message below it. */
function sourceButton(message, { t }) {
  return unfolding(toolButton('source', t.source, '{ }'), () => source(message, t))
}

/** Makes a button that shows something below its message, and hides it again. */
function unfolding(button, render) {
  let shown = null
  const turn = () => {
    if (shown) shown.remove()
    else button.closest('.body').append(shown = render(close))
    if (!shown.isConnected) shown = null
    button.setAttribute('aria-expanded', String(shown !== null))
  }
  const close = () => {
    turn()
    button.focus()
  }
  button.setAttribute('aria-expanded', 'false')
  button.addEventListener('click', turn)
  return button
}

function source({ id, segments }, t) {
  const code = el('code', { lang: 'en' }, JSON.stringify(segments, null, 2))
  const number = id === null ? null : el('code', {}, String(id))
  return el('div', { class: 'source' },
    number ? el('p', { class: 'source-line' }, `${t.messageId} `, number, copyButton(number, t, { label: t.copyId })) : el('p', {}, t.noMessageId),
    el('p', { class: 'source-line' }, t.segments, copyButton(code, t, { label: t.copySegments })),
    el('pre', { 'tabindex': 0, 'role': 'group', 'aria-label': t.segments }, code))
}
