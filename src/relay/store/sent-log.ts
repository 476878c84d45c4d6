import { closeSync, createReadStream, fstatSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { atTurnEnd } from '../../lib/gather'
import type { Target } from '../../message/model'
import { isObject } from '../../message/parse'
import { writeTarget } from '../../message/target'
import type { KnownSends, UnnamedSend } from '../../platform/port'
import type { Delivery } from '../delivery/delivery'

/** How long each of the two files may become, in bytes: about 60,000 messages. */
const maxSize = 4 * 1024 * 1024
/** How often it is looked whether what is written arrives in the folder, or can be written again, in milliseconds. */
const checkInterval = 60_000
/** More than two clocks may differ, in milliseconds: by the platform's clock a message may be that much newer than by ours. */
export const clockMargin = 60_000

/** A line that says from when on nothing is missing; `continued`: nor is anything of what the lines before it have. */
interface Beginning {
  /** In milliseconds since the epoch. */
  since: number
  continued: boolean
}

/** What a file says of one chat. */
interface Contents {
  beginnings: Beginning[]
  messageIds: string[]
  unnamed: UnnamedSend[]
}

/**
 * A log of the messages that were sent and are in no database, by their IDs, and of all that got none, such as files. A search reads it,
 * so as not to take one of them for an equal message that goes unanswered: in this process what is remembered no more, and in the
 * next one everything, however this one ends. What the database has as leaving is not in it: whether that arrived has to be
 * found out.
 *
 * It keeps what was sent last, bounded by its size, and tells since when it is complete. Once something could not be written it begins
 * anew.
 */
export class SentLog {
  private folder = ''
  private isOpen = false
  private descriptor: number | undefined
  private size = 0
  /** Whether something is missing that could not be written. */
  private hasFailed = false
  /** When it is looked again, on the monotonic clock. */
  private checkAt = 0
  private onFailure: (error: unknown) => void = () => undefined
  /** Lines that are to be written. */
  private lines = ''

  /**
   * Goes on with the log in this folder.
   *
   * @param folder absolute; made for its owner only if it is not there
   * @param onFailure told when nothing can be written, which is no reason not to send; once until it can be again
   */
  open(folder: string, onFailure: (error: unknown) => void): void {
    this.onFailure = onFailure
    if (this.isOpen && folder === this.folder) return
    this.close()
    if (folder !== this.folder) this.hasFailed = false
    this.folder = folder
    this.isOpen = true
    this.check()
  }

  /**
   * Writes down what was sent, all of one turn of the event loop at its end: nobody is told before, and the next messages need not wait for
   * the disk. Once it is written, the system keeps it, however the process ends.
   *
   * @param isStored whether the database has the IDs, so that only what has none there is written
   */
  write({ bot, target, results }: Pick<Delivery, 'bot' | 'target' | 'results'>, isStored: boolean): void {
    const sends = new Set<string | UnnamedSend>()
    for (const result of results) {
      if (!result?.success) continue
      if (!isStored) for (const id of result.messageIds) sends.add(id)
      if (result.trace) sends.add(result.trace)
    }
    if (sends.size === 0) return
    this.lines += `${JSON.stringify([Date.now(), bot, writeTarget(target), ...sends])}\n`
    // The row that tells of it is written already.
    if (isStored) this.flush()
    else atTurnEnd(this.flush)
  }

  /** What it has of a chat. */
  async read(bot: string, target: Target): Promise<KnownSends> {
    this.flush()
    // In this order nothing is missed when the one becomes the other meanwhile.
    const current = await readFile(this.file, bot, target)
    const older = await readFile(this.older, bot, target)
    const isComplete = this.descriptor !== undefined && current.beginnings.length > 0
    const unnamed = new Map([...older.unnamed, ...current.unnamed].map(send => [JSON.stringify(send), send]))
    return {
      since: isComplete ? completeSince([...older.beginnings, ...current.beginnings]) : Infinity,
      messageIds: new Set([...older.messageIds, ...current.messageIds]),
      unnamed: [...unnamed.values()],
    }
  }

  close(): void {
    this.flush()
    this.isOpen = false
    this.release()
  }

  /** Writes at once what was noted in this turn. */
  readonly flush = (): void => {
    const { lines } = this
    if (lines === '') return
    this.lines = ''
    if (performance.now() >= this.checkAt) this.check()
    this.attempt(() => this.append(lines))
    // An answer may come after the end.
    if (!this.isOpen) this.release()
  }

  private get file(): string {
    return join(this.folder, 'sent.jsonl')
  }

  private get older(): string {
    return join(this.folder, 'sent.older.jsonl')
  }

  /** Sees to it that what is written arrives: the disk may have been full, and the file may have been removed. */
  private check(): void {
    this.attempt(() => {
      const own = this.descriptor === undefined ? undefined : fstatSync(this.descriptor).ino
      if (own !== undefined && own !== inodeOf(this.file)) {
        // Another process with the same folder may have made room.
        if (own !== inodeOf(this.older)) this.noteFailure(new Error('what was written is gone'))
        this.release()
      }
      if (this.descriptor === undefined) this.begin(false)
    })
    this.checkAt = performance.now() + checkInterval
  }

  /** @param isTurn whether what was written before is in the older file */
  private begin(isTurn: boolean): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    this.descriptor = openSync(this.file, 'a', 0o600)
    this.size = fstatSync(this.descriptor).size
    const isFirst = this.size === 0 && !isTurn && !this.hasFailed
    const since = isFirst ? Date.now() : Date.now() + clockMargin
    const continued = !this.hasFailed && (isTurn || this.size > 0)
    // The end of the process may have cut the last line off.
    this.append(`\n${JSON.stringify({ since, continued })}\n`)
    this.hasFailed = false
  }

  private append(text: string): void {
    if (this.descriptor !== undefined && this.size > maxSize) this.turn()
    if (this.descriptor === undefined) return
    const written = writeSync(this.descriptor, text)
    // A disk that is nearly full takes a part of it.
    if (written < Buffer.byteLength(text)) throw new Error('the disk is full')
    this.size += written
  }

  /** Makes room: what was written last is kept as the older file. */
  private turn(): void {
    this.release()
    renameSync(this.file, this.older)
    this.begin(true)
  }

  private release(): void {
    const { descriptor } = this
    this.descriptor = undefined
    this.checkAt = 0
    if (descriptor !== undefined) closeSync(descriptor)
  }

  private attempt(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.noteFailure(error)
      this.abandon()
      this.checkAt = performance.now() + checkInterval
    }
  }

  private noteFailure(error: unknown): void {
    if (!this.hasFailed) this.onFailure(error)
    this.hasFailed = true
  }

  /** The next process is not to take it for complete either. A full disk does not keep a file from being removed. */
  private abandon(): void {
    try {
      this.release()
      rmSync(this.file, { force: true })
    } catch {
      // The folder is gone, or nothing can be changed in it.
    }
  }
}

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino
}

function completeSince(beginnings: readonly Beginning[]): number {
  return beginnings.reduce((complete, { since, continued }) => continued ? Math.min(complete, since) : since, Infinity)
}

/** Reads a file in parts, between which others have their turn. */
async function readFile(file: string, bot: string, target: Target): Promise<Contents> {
  const contents: Contents = { beginnings: [], messageIds: [], unnamed: [] }
  const chat = JSON.stringify([bot, writeTarget(target)]).slice(1, -1)
  let rest = ''
  try {
    for await (const part of createReadStream(file, { encoding: 'utf8' })) {
      const lines = (rest + String(part)).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line.startsWith('{') || line.includes(chat)) readLine(line, contents)
    }
    return contents
  } catch {
    // It is not there, or nobody knows what it has.
    return { beginnings: [], messageIds: [], unnamed: [] }
  }
}

/** A line that the end of the process has cut off is none. */
function readLine(line: string, { beginnings, messageIds, unnamed }: Contents): void {
  const value = parse(line)
  if (isObject(value) && typeof value.since === 'number') beginnings.push({ since: value.since, continued: value.continued === true })
  const sends: readonly unknown[] = Array.isArray(value) ? value.slice(3) : []
  for (const send of sends) {
    if (typeof send === 'string') {
      messageIds.push(send)
    } else if (isObject(send) && typeof send.content === 'string') {
      const { content, since, until, took } = send
      unnamed.push({ content, since: Number(since), until: Number(until), ...typeof took === 'number' && { took } })
    }
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
