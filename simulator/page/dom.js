/**
 * Creates an element. Strings among the children become text nodes: nothing on this page is ever parsed as markup.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | null | undefined>} [attributes] false, null and undefined are left out
 * @param {...(Node | string | null | undefined)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue
    node.setAttribute(name, value === true ? '' : String(value))
  }
  node.append(...children.filter(child => child !== undefined && child !== null))
  return node
}

/**
 * The element of index.html with this id.
 * @param {string} id
 */
export function byId(id) {
  const node = document.getElementById(id)
  if (!node) throw new Error(`index.html has no #${id}`)
  return node
}

/**
 * Sets text only if it differs. Setting the same text again would make a screen reader repeat it, and would drop a selection.
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text
}

/**
 * A coloured initial instead of a picture. It is decoration: the name is always beside it.
 * @param {string} name
 * @param {string | number} id determines the colour
 */
export function avatar(name, id, kind = 'private') {
  let hash = 0
  for (const character of String(id)) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 997
  const initial = Array.from(name.trim())[0] ?? '?'
  return el('span', { 'class': `avatar tone-${hash % 6} ${kind}`, 'aria-hidden': 'true' }, initial.toUpperCase())
}
