/** What the relay uses of formidable 3. `@types/formidable` lacks the headers of a part, and parses requests only. */
declare module 'formidable' {
  import type { EventEmitter } from 'node:events'
  import type { Readable, Writable } from 'node:stream'

  /** Emits `data` with its bytes, then `end`. Names of headers are in lower case. */
  export interface Part extends EventEmitter {
    headers: Partial<Record<string, string>>
    mimetype: string | null
    transferEncoding: string
  }

  export class Formidable extends EventEmitter {
    constructor(options: Record<string, unknown> & { fileWriteStreamHandler: () => Writable | undefined })
    error: unknown
    onPart: (part: Part) => Promise<void>
    _handlePart(part: Part): Promise<void>
    _error(error: unknown): void
    parse(body: Readable & { headers: Record<string, string> }): Promise<unknown>
  }

  export const errors: { default: typeof Error } & Record<string, unknown>
}
