import { el, setText } from './dom.js'

/** How long a button says that it has copied. */
const COPIED_MS = 2000

/**
 * A button that copies the text of a node and says so, also to those who do not see it.
 * @param {Node} node
 * @param {object} t texts
 * @param {{ label?: string, kind?: string }} [look] `label` is its name where the word on it does not tell enough
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

/** Whether the text is in the clipboard. On failure it is left selected, so that the reader can copy it by hand. */
async function copyText(node) {
  try {
    await navigator.clipboard.writeText(node.textContent ?? '')
    return true
  } catch {
    // Without HTTPS there is no clipboard API on any address but this machine's own.
    const selection = getSelection()
    selection?.selectAllChildren(node)
    return document.execCommand('copy')
  }
}
