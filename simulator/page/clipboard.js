import { el, setText } from './dom.js'

/** How long a button shows that it has copied, in milliseconds. */
const COPIED_MS = 2000

/**
 * A button that copies the text of a node and confirms it, also to screen readers.
 * @param {Node} node
 * @param {object} t texts
 * @param {{ label?: string, kind?: string }} [look] `label` is its accessible name, if the word on it is not enough
 */
export function copyButton(node, t, { label, kind = 'quiet' } = {}) {
  const button = el('button', { 'type': 'button', 'class': `${kind} copy`, 'aria-label': label }, t.copy)
  const said = el('span', { class: 'unseen', role: 'status' })
  button.addEventListener('click', () => void copy(node, button, said, t))
  return el('span', { class: 'copying' }, button, said)
}

async function copy(node, button, said, t) {
  const text = await copyText(node) ? t.copied : t.copyFailed
  setText(button, text)
  setText(said, text)
  setTimeout(() => {
    setText(button, t.copy)
    setText(said, '')
  }, COPIED_MS)
}

/**
 * Copies the text of a node, and returns whether that worked. On failure the text stays selected, so that the reader can copy it by hand.
 */
async function copyText(node) {
  try {
    await navigator.clipboard.writeText(node.textContent ?? '')
    return true
  } catch {
    // Without HTTPS, only pages of this machine itself have the clipboard API.
    const selection = getSelection()
    selection?.selectAllChildren(node)
    return document.execCommand('copy')
  }
}
