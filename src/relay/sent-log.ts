import { closeSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Target } from '../message/model'
import { readTarget, writeTarget } from '../message/target'
import { messageIdsOf, type Delivery } from './delivery'

/** How long a message is of interest, in milliseconds: more than a look-up goes back before a send, with clocks that differ. */
const memorable = 60_000

/** The platform messages that a delivery has become. */
export interface Entry {
  /** `platform:selfId` of the bot. */
  bot: string
  target: Target
  messageIds: string[]
}

/**
 * A file of the messages that were sent in the last minute or two and are in no database, by their IDs. The next process reads
 * it, however this one ends, so as not to take one of them for an equal message that goes unanswered. What is in the database is
 * not in it: of that the next process has to find out whether it arrived.
 */
export class SentLog {
  private folder = ''
  private descriptor: number | undefined
  private began = 0
  private onFailure: (error: unknown) => void = () => undefined

  /**
   * Goes on with the log in this folder.
   *
   * @param folder absolute; made for its owner only if it is not there
   * @param onFailure told when nothing can be written, which is no reason not to send
   * @returns what was written in the last minute, the oldest first; nothing if this log is open there already
   */
  open(folder: string, onFailure: (error: unknown) => void): Entry[] {
    this.onFailure = onFailure
    if (this.descriptor !== undefined && folder === this.folder) return []
    this.close()
    this.folder = folder
    this.began = Date.now()
    this.attempt(() => {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      this.descriptor = openSync(this.file, 'a', 0o600)
    })
    const oldest = Date.now() - memorable
    return [this.older, this.file].flatMap(file => readEntries(file, oldest))
  }

  /** Writes at once: the process may be killed the next moment. The system keeps it then. */
  write({ bot, target, results }: Delivery): void {
    const messageIds = messageIdsOf({ results })
    if (messageIds.length === 0) return
    this.attempt(() => {
      const now = Date.now()
      if (now - this.began > memorable) this.turn(now)
      if (this.descriptor !== undefined) writeSync(this.descriptor, `${JSON.stringify([now, bot, writeTarget(target), ...messageIds])}\n`)
    })
  }

  close(): void {
    if (this.descriptor !== undefined) closeSync(this.descriptor)
    this.descriptor = undefined
  }

  private get file(): string {
    return join(this.folder, 'sent.jsonl')
  }

  private get older(): string {
    return join(this.folder, 'sent.older.jsonl')
  }

  /** Begins anew and keeps what was written last. */
  private turn(now: number): void {
    if (this.descriptor === undefined) return
    this.close()
    renameSync(this.file, this.older)
    this.descriptor = openSync(this.file, 'a', 0o600)
    this.began = now
  }

  private attempt(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.descriptor = undefined
      this.onFailure(error)
    }
  }
}

function readEntries(file: string, oldest: number): Entry[] {
  try {
    return readFileSync(file, 'utf8').split('\n').flatMap(line => readLine(line, oldest))
  } catch {
    // There is none yet, or it is somebody else's.
    return []
  }
}

/** A line that the end of the process has cut off is none. */
function readLine(line: string, oldest: number): Entry[] {
  const [time, bot, to, ...ids]: readonly unknown[] = parse(line)
  const target = typeof to === 'string' ? readTarget(to) : undefined
  return typeof time === 'number' && time >= oldest && typeof bot === 'string' && target ? [{ bot, target, messageIds: ids.map(String) }] : []
}

function parse(line: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(line)
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}
