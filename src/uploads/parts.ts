import { RelayError } from '../errors'
import { Base64Decoder } from './base64'
import { isAllowed } from './extensions'
import type { PartHandlers } from './multipart'
import { safeName } from './names'
import { parseFileName } from './parameters'
import type { Upload } from './upload'

/** What each file of an upload may be. */
export interface FileLimits {
  /** In bytes, for each file. */
  maxFileSize: number
  /** As `parseExtensions` gives them; empty allows all. */
  allowedExtensions: readonly string[]
}

/** Most files in one request, and most parts besides. */
const maxParts = 1000
/** Encodings that leave the bytes as they are (RFC 2045, section 6.2). */
const identities = ['', '7bit', '8bit', 'binary']

/** Turns the parts that carry a filename into files of an upload, and lets the others pass. */
export class PartFiles implements PartHandlers {
  /** Bytes of all files so far, as they came. */
  received = 0
  #others = 0
  #inFile = false
  #size = 0
  #decoder: Base64Decoder | undefined

  constructor(private readonly upload: Upload, private readonly limits: FileLimits) {}

  /** @throws RelayError `too-large` for too many parts, `unsupported-type` for a file that is not accepted */
  onPart = (headers: ReadonlyMap<string, string>): void => {
    const given = parseFileName(headers.get('content-disposition') ?? '')
    if (given === undefined) {
      if (++this.#others > maxParts) throw new RelayError('too-large', `more than ${maxParts} parts without a file`)
      return
    }
    if (this.upload.count === maxParts) throw new RelayError('too-large', `more than ${maxParts} files in one request`)
    const name = safeName(given)
    const { allowedExtensions } = this.limits
    if (!isAllowed(name, allowedExtensions)) {
      throw new RelayError('unsupported-type', `files of this kind are not accepted, only: ${allowedExtensions.join(', ')}`)
    }
    this.#decoder = createDecoder(headers.get('content-transfer-encoding') ?? '')
    this.#inFile = true
    this.#size = 0
    this.upload.begin(name)
  }

  /** @throws RelayError `too-large` when the file is longer than allowed */
  onContent = (bytes: Buffer): void => {
    if (!this.#inFile) return
    this.received += bytes.length
    this.#write(this.#decoder?.decode(bytes) ?? bytes)
  }

  onPartEnd = (): void => {
    if (!this.#inFile) return
    if (this.#decoder) this.#write(this.#decoder.end())
    this.#inFile = false
    this.upload.end()
  }

  #write(bytes: Buffer): void {
    const { maxFileSize } = this.limits
    this.#size += bytes.length
    if (this.#size > maxFileSize) throw new RelayError('too-large', `a file is larger than ${maxFileSize} bytes`)
    if (bytes.length > 0) this.upload.write(bytes)
  }
}

/** RFC 7578 leaves content-transfer-encoding to old clients; formidable decodes base64 for them, so they may rely on that. */
function createDecoder(encoding: string): Base64Decoder | undefined {
  const known = encoding.trim().toLowerCase()
  if (identities.includes(known)) return undefined
  if (known === 'base64') return new Base64Decoder()
  throw new RelayError('unsupported-type', 'send the bytes of a file as they are, without a content-transfer-encoding')
}
