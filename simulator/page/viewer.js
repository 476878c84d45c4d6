import { byId } from './dom.js'

/**
 * Prepares the enlarged view of a picture. As a modal dialog, it gets Escape and the handling of the focus from the browser.
 * @returns {(src: string, name: string) => void} opens it
 */
export function createViewer() {
  const dialog = byId('viewer')
  const image = byId('viewer-image')
  byId('viewer-close').addEventListener('click', () => dialog.close())
  dialog.addEventListener('click', event => {
    if (event.target === dialog || event.target === image) dialog.close()
  })
  dialog.addEventListener('close', () => image.removeAttribute('src'))
  return (src, name) => {
    image.src = src
    image.alt = name
    byId('viewer-name').textContent = name
    dialog.showModal()
  }
}
