import type { Context } from 'koishi'
import { yieldToOthers } from '../../lib/async'

declare module 'koishi' {
  interface Tables {
    message_relay_content: ContentRow
  }
}

/**
 * A part of what is needed to send a large delivery. It is not in the row of the delivery, because a database writes all of a row anew
 * with each change, and is cut into parts, because an embedded one holds the process up for as long as a statement takes.
 */
interface ContentRow {
  id: string
  part: number
  text: string
}

const table = 'message_relay_content'

/** From which length on content is large, in characters. */
const large = 64 * 1024
/** How long a part is, in characters. */
const partLength = 512 * 1024
/** How many IDs are looked for at a time. */
const chunkSize = 50

/** What is needed to send deliveries, as JSON: a large one lies in a table of its own, and its number of parts stands in its place. */
export class LargeContent {
  /** What is being written. */
  private readonly writing = new Set<string>()
  /** What belonged to no delivery when that was looked at last. */
  private orphans: string[] = []

  /** @param ctx one with the database; the table is created when it is first used */
  constructor(ctx: Context, private readonly database: Context['database']) {
    ctx.model.extend(table, {
      id: { type: 'string', length: 36, nullable: false },
      part: { type: 'unsigned', nullable: false },
      text: { type: 'text', length: 2 ** 24, nullable: false },
    }, { primary: ['id', 'part'] })
  }

  /**
   * Writes the content of a delivery where it is large, and then the delivery. Some or all of it may be there already: from an attempt
   * that failed, or because the delivery comes from another table. It is the same, as the content of a delivery never changes.
   *
   * @param write writes the delivery with what stands for its content
   */
  async write(id: string, text: string, write: (place: string) => Promise<unknown>): Promise<void> {
    if (text.length <= large) {
      await write(text)
      return
    }
    this.writing.add(id)
    try {
      const parts = cut(text)
      for (const [part, text] of parts.entries()) {
        await yieldToOthers()
        await this.database.upsert(table, [{ id, part, text }])
      }
      await write(String(parts.length))
    } finally {
      this.writing.delete(id)
    }
  }

  /**
   * Reads the content of a delivery.
   *
   * @param place what stands for it
   * @returns `undefined` when parts of it are gone
   */
  async read(id: string, place: string): Promise<unknown> {
    const stored: unknown = JSON.parse(place)
    if (typeof stored !== 'number') return stored
    let text = ''
    for (let part = 0; part < stored; part++) {
      await yieldToOthers()
      const [row] = await this.database.get(table, { id, part })
      if (!row) return
      text += row.text
    }
    return JSON.parse(text)
  }

  /**
   * Removes content that belonged to no delivery the last time either: its delivery was removed, or never written because the process
   * ended. To be called from time to time, so that what another relay is just writing is not taken for that.
   *
   * @param find finds those of these deliveries that are there
   */
  async removeOrphans(find: (ids: string[]) => Promise<readonly string[]>): Promise<void> {
    const content = await this.database.get(table, { part: 0 }, ['id'])
    const orphans: string[] = []
    for (let start = 0; start < content.length; start += chunkSize) {
      const ids = content.slice(start, start + chunkSize).map(({ id }) => id)
      const owned = new Set(await find(ids))
      orphans.push(...ids.filter(id => !owned.has(id) && !this.writing.has(id)))
      await yieldToOthers()
    }
    const earlier = new Set(this.orphans)
    this.orphans = orphans
    for (const id of orphans) if (earlier.has(id)) await this.database.remove(table, { id })
  }
}

/** Cuts a text into parts, none of them between the halves of a surrogate pair: these cannot be stored apart. */
function cut(text: string): string[] {
  const parts: string[] = []
  for (let start = 0; start < text.length;) {
    let end = start + partLength
    if (/[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end--
    parts.push(text.slice(start, end))
    start = end
  }
  return parts
}
