/**
 * Copies the text of a node. On failure the text is left selected, so that the reader can copy it by hand.
 * @param {Node} node
 * @returns {Promise<boolean>} whether it is in the clipboard
 */
export async function copyText(node) {
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
