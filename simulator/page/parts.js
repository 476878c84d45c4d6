import { el } from './dom.js'
import { duration, fileSize, mentioned, preview } from './format.js'
import { splitLinks } from './links.js'

/** An address that is safe in the page: never a script, whatever a message contains. */
function safeUrl(source) {
  if (typeof source !== 'string' || source === '' || !URL.canParse(source, document.baseURI)) return null
  const url = new URL(source, document.baseURI)
  return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : null
}

/** A link that opens outside this page and reveals nothing of it to the other site. */
function outward(href, text) {
  return el('a', { href, target: '_blank', rel: 'noopener noreferrer' }, text)
}

function failed(name, t) {
  return el('p', { class: 'failed' }, t.mediaFailed(name))
}

function image(part, { t, openImage }) {
  const name = part.name || t.image
  const src = safeUrl(part.src)
  if (!src) return failed(name, t)
  const picture = el('img', { src, alt: name, loading: 'lazy', decoding: 'async' })
  const button = el('button', { 'type': 'button', 'class': 'picture', 'aria-label': t.enlarge(name) }, picture)
  button.addEventListener('click', () => openImage(src, name))
  picture.addEventListener('error', () => button.replaceWith(failed(name, t)), { once: true })
  return button
}

function video(part, { t }) {
  const name = part.name || t.video
  const src = safeUrl(part.src)
  if (!src) return failed(name, t)
  const node = el('video', { src, 'controls': true, 'preload': 'metadata', 'class': 'video', 'aria-label': name, 'playsinline': true })
  node.addEventListener('error', () => node.replaceWith(failed(name, t)), { once: true })
  return node
}

/** A voice message with its length. Browsers cannot play the formats that phones record (AMR, SILK); then only the file is offered. */
function voice(part, { t }) {
  const name = part.name || t.record
  const src = safeUrl(part.src)
  if (!src) return failed(name, t)
  const about = el('figcaption', { class: 'voice-about' }, t.record)
  const player = el('audio', { src, 'controls': true, 'preload': 'metadata', 'class': 'audio', 'aria-label': t.record })
  player.addEventListener('loadedmetadata', () => {
    if (Number.isFinite(player.duration)) about.append(' · ', el('span', { class: 'voice-length' }, duration(player.duration)))
  }, { once: true })
  player.addEventListener('error', () => {
    player.remove()
    about.replaceChildren(`${t.record} · ${t.notPlayable} `, el('a', { 'href': src, 'download': name, 'aria-label': t.downloadName(name) }, t.download))
  }, { once: true })
  return el('figure', { class: 'voice' }, player, about)
}

/** Explains why there is no picture, and links to it. */
function unfetched({ medium, link, name }, { t }) {
  const href = safeUrl(link)
  return el('div', { class: 'unfetched' },
    el('p', { class: 'unfetched-name', dir: 'auto' }, `${t[medium]} · ${name}`),
    el('p', {}, t.unfetched),
    href ? el('p', { class: 'unfetched-link' }, outward(href, link)) : null)
}

function file(part, { t, language }) {
  const src = safeUrl(part.src)
  // For another origin, `download` is ignored: the link must not replace this page.
  const elsewhere = src !== null && new URL(src).origin !== location.origin
  const size = part.size === null ? t.sizeUnknown : fileSize(part.size, language)
  return el('div', { class: 'file' },
    el('span', { 'class': 'file-icon', 'aria-hidden': 'true' }),
    el('div', { class: 'file-text' },
      el('p', { class: 'file-name', dir: 'auto' }, part.name),
      el('p', { class: 'file-about' },
        el('span', { class: 'file-size' }, size),
        src
          ? el('a', {
              'href': src,
              'download': part.name,
              'target': elsewhere && '_blank',
              'rel': elsewhere && 'noopener noreferrer',
              'aria-label': t.downloadName(part.name),
            }, t.download)
          : el('span', {}, t.noDownload))))
}

function quotation(part, { t, language, chat, showMessage }) {
  const original = chat.byId.get(String(part.id))
  if (!original) return el('p', { class: 'quote gone' }, t.replyGone)
  const button = el('button', { type: 'button', class: 'quote' },
    el('span', { class: 'unseen' }, `${t.reply} `),
    el('span', { class: 'quote-name', dir: 'auto' }, original.sender.name), ' ',
    el('span', { class: 'quote-text', dir: 'auto' }, preview(original, language)))
  button.addEventListener('click', () => showMessage(original))
  return button
}

function mention(part, { t }) {
  return el('span', { class: 'mention', title: part.id === 'all' ? null : part.id }, `@${mentioned(part, t)}`)
}

function written({ text }) {
  return splitLinks(text).map(piece => (piece.href === null ? piece.text : outward(piece.href, piece.text)))
}

function block(part, context) {
  switch (part.type) {
    case 'reply': return quotation(part, context)
    case 'image': return image(part, context)
    case 'video': return video(part, context)
    case 'record': return voice(part, context)
    case 'file': return file(part, context)
    case 'unfetched': return unfetched(part, context)
    default: return el('p', { class: 'other' }, part.label)
  }
}

/**
 * The content of a bubble. Consecutive texts and mentions share a paragraph; any other part stands alone.
 * @param {object[]} parts
 * @param {object} context language, texts, chat, the bot's account and the click handlers
 * @returns {HTMLElement[]}
 */
export function renderParts(parts, context) {
  const nodes = []
  let paragraph = null
  for (const part of parts) {
    if (part.type === 'text' || part.type === 'at') {
      if (!paragraph) nodes.push(paragraph = el('p', { class: 'text', dir: 'auto' }))
      paragraph.append(...part.type === 'text' ? written(part) : [mention(part, context)])
    } else {
      paragraph = null
      nodes.push(block(part, context))
    }
  }
  return nodes
}
