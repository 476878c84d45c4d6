import { el } from './dom.js'
import { fileSize, mentioned, preview } from './format.js'

/** An address that may be put into the page: never a script, whatever a message claims. */
function safeUrl(source, protocols) {
  if (typeof source !== 'string' || source === '') return null
  try {
    const url = new URL(source, document.baseURI)
    return protocols.includes(url.protocol) ? url.href : null
  } catch {
    return null
  }
}

const LINK = ['http:', 'https:']
const MEDIA = [...LINK, 'data:', 'blob:']

function failed(name, t) {
  return el('p', { class: 'failed' }, t.mediaFailed(name))
}

function image(part, { t, openImage }) {
  const name = part.name || t.image
  const src = safeUrl(part.src, MEDIA)
  if (!src) return failed(name, t)
  const picture = el('img', { src, alt: name, loading: 'lazy', decoding: 'async' })
  const button = el('button', { 'type': 'button', 'class': 'picture', 'aria-label': t.enlarge(name) }, picture)
  button.addEventListener('click', () => openImage(src, name))
  picture.addEventListener('error', () => button.replaceWith(failed(name, t)), { once: true })
  return button
}

function player(tag, part, { t }) {
  const name = part.name || t[part.type]
  const src = safeUrl(part.src, MEDIA)
  if (!src) return failed(name, t)
  const node = el(tag, { src, 'controls': true, 'preload': 'metadata', 'class': tag, 'aria-label': name, 'playsinline': true })
  node.addEventListener('error', () => node.replaceWith(failed(name, t)), { once: true })
  return node
}

function file(part, { t, language }) {
  const src = safeUrl(part.src, LINK)
  // Elsewhere `download` is ignored: the link must not take this page away.
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
              'rel': elsewhere && 'noopener',
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

function mention(part, { self, t }) {
  const own = String(part.id) === String(self.id)
  return el('span', { class: own ? 'mention own-mention' : 'mention' }, `@${mentioned(part, t)}`)
}

function block(part, context) {
  switch (part.type) {
    case 'reply': return quotation(part, context)
    case 'image': return image(part, context)
    case 'video': return player('video', part, context)
    case 'record': return player('audio', part, context)
    case 'file': return file(part, context)
    default: return el('p', { class: 'other' }, part.label)
  }
}

/**
 * The content of a bubble. Texts and mentions that follow each other share a paragraph, everything else stands alone.
 * @param {object[]} parts
 * @param {object} context language, texts, chat, own account and what a click does
 * @returns {HTMLElement[]}
 */
export function renderParts(parts, context) {
  const nodes = []
  let paragraph = null
  for (const part of parts) {
    if (part.type === 'text' || part.type === 'at') {
      if (!paragraph) nodes.push(paragraph = el('p', { class: 'text', dir: 'auto' }))
      paragraph.append(part.type === 'text' ? part.text : mention(part, context))
    } else {
      paragraph = null
      nodes.push(block(part, context))
    }
  }
  return nodes
}
