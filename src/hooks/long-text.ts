import type { Item } from '../message/model'
import type { UploadStore } from '../uploads/store'

/** The longest text that goes as a message, in characters: QQ takes about 5,000. */
const maxLength = 4_000
/** How much of a longer one is shown, in characters. */
const maxShown = 1_000

/** A text as items, and what takes a file away again that nothing will send. */
export interface TextItems {
  items: Item[]
  discard: () => Promise<void>
}

/** Makes items of a text that may be long: then its first lines are shown, and a file `message.txt` holds it whole. */
export async function toTextItems(text: string, uploads: UploadStore, signal: AbortSignal): Promise<TextItems> {
  if (text.length <= maxLength) return { items: [{ type: 'text', text }], discard: () => Promise.resolve() }
  const upload = uploads.begin()
  try {
    upload.begin('message.txt')
    upload.write(Buffer.from(text))
    upload.end()
    await upload.flush(signal)
    const files = await upload.commit(signal)
    return {
      items: [{ type: 'text', text: firstLines(text) }, ...files.map(id => ({ type: 'file' as const, link: { kind: 'upload' as const, id } }))],
      discard: () => upload.discard(),
    }
  } catch (error) {
    await upload.discard()
    throw error
  }
}

/** As many whole lines as are shown, or the beginning of the first. */
function firstLines(text: string): string {
  const end = text.lastIndexOf('\n', maxShown)
  return text.slice(0, end > 0 ? end : maxShown).toWellFormed().replace(/\ufffd$/, '')
}
