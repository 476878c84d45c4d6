import { RelayError } from '../errors'
import type { WebhookRequest } from '../message/model'
import { itemsOf } from '../message/parse'

/** Keeps an uploaded file at least until then, in milliseconds since the epoch. */
export type KeepUpload = (id: string, until: number) => Promise<void>

/** How much longer than its delivery waits an uploaded file is kept, for a send that begins at the last moment, in milliseconds. */
const margin = 60 * 60 * 1000

/**
 * Keeps the files that a delivery needs while it waits.
 *
 * @param until when it stops waiting, in milliseconds since the epoch
 * @throws RelayError `file-not-found` when the one file of a single message is not there; in a batch, the item fails in its turn
 */
export async function keepUploads(request: WebhookRequest, until: number, keep: KeepUpload): Promise<void> {
  for (const item of itemsOf(request)) {
    if (item instanceof RelayError || item.type === 'text' || item.link.kind !== 'upload') continue
    try {
      await keep(item.link.id, until + margin)
    } catch (error) {
      if (request.mode === 'single') throw error
    }
  }
}
