import { avatar, el } from './dom.js'
import { clock, day, moment, sameDay } from './format.js'
import { renderParts } from './parts.js'

/** Messages of one person that follow each other within this time share one heading. */
const TOGETHER_MS = 3 * 60_000

/**
 * How a message is drawn depends on the one before it: whether a new day begins, and whether it continues a series.
 * @returns {'new-day' | 'new-speaker' | 'continued'}
 */
export function variantOf(message, previous) {
  if (!previous || !sameDay(message.time, previous.time)) return 'new-day'
  const same = String(message.sender.id) === String(previous.sender.id) && message.sender.self === previous.sender.self
  return same && message.time - previous.time < TOGETHER_MS ? 'continued' : 'new-speaker'
}

/**
 * One message of a conversation.
 * @param {object} message
 * @param {'new-day' | 'new-speaker' | 'continued'} variant
 * @param {object} context language, texts, chat, own account and what a click does
 */
export function renderMessage(message, variant, context) {
  const { language, t } = context
  const { sender, parts } = message
  const bare = parts.length > 0 && parts.every(part => part.type === 'image' || part.type === 'video')
  const time = el('time', { datetime: new Date(message.time).toISOString(), title: moment(message.time, language) }, clock(message.time, language))
  const name = el('span', { class: 'name', dir: 'auto' }, sender.name)
  const tag = sender.self ? el('span', { class: 'tag' }, t.bot) : null
  return el('li', { 'class': `message ${sender.self ? 'own' : 'theirs'} ${variant}`, 'data-seq': message.seq, 'tabindex': -1 },
    variant === 'new-day' ? el('p', { class: 'day' }, el('span', {}, day(message.time, language))) : null,
    el('div', { class: 'row' },
      avatar(sender.name, sender.id),
      el('div', { class: 'body' },
        el('p', { class: 'head' }, name, tag, time),
        el('div', { class: bare ? 'bubble bare' : 'bubble' }, ...renderParts(parts, context)))))
}
