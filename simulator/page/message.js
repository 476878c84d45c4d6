import { copyButton } from './clipboard.js'
import { avatar, el } from './dom.js'
import { clock, day, moment, sameDay } from './format.js'
import { renderParts } from './parts.js'

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
  const { language, t } = context
  const { sender, parts } = message
  const bare = parts.length > 0 && parts.every(({ type }) => type === 'image' || type === 'video' || type === 'unfetched')
  const time = el('time', { datetime: new Date(message.time).toISOString(), title: moment(message.time, language) }, clock(message.time, language))
  const name = el('span', { class: 'name', dir: 'auto' }, sender.name)
  const tag = sender.self ? el('span', { class: 'tag' }, t.bot) : null
  const body = el('div', { class: 'body' },
    el('p', { class: 'head' }, name, tag, time),
    el('div', { class: 'line' },
      el('div', { class: bare ? 'bubble bare' : 'bubble' }, ...renderParts(parts, context)),
      sourceButton(message, context)),
    message.isSwallowed ? el('p', { class: 'swallowed' }, t.swallowed) : null)
  return el('li', { 'class': `message ${sender.self ? 'theirs' : 'own'} ${variant}`, 'data-seq': message.seq, 'tabindex': -1 },
    variant === 'new-day' ? el('p', { class: 'day' }, el('span', {}, day(message.time, language))) : null,
    el('div', { class: 'row' }, avatar(sender.name, sender.id), body))
}

/** The button that shows the OneBot ID and segments of a message below it. */
function sourceButton(message, { t }) {
  const button = el('button', {
    'type': 'button', 'class': 'source-button', 'aria-expanded': 'false', 'aria-label': t.source, 'title': t.source, 'tabindex': -1,
  }, el('span', { 'aria-hidden': 'true' }, '{ }'))
  let shown = null
  button.addEventListener('click', () => {
    if (shown) shown.remove()
    else button.closest('.body').append(shown = source(message, t))
    if (!shown.isConnected) shown = null
    button.setAttribute('aria-expanded', String(shown !== null))
  })
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
