/** Decodes base64 that comes in pieces and may be broken into lines. What is no base64 is ignored. */
export class Base64Decoder {
  #rest = ''

  decode(bytes: Buffer): Buffer {
    const text = this.#rest + bytes.toString('latin1').replace(/[^A-Za-z0-9+/=]/g, '')
    const whole = text.length - text.length % 4
    this.#rest = text.slice(whole)
    return Buffer.from(text.slice(0, whole), 'base64')
  }

  end(): Buffer {
    return Buffer.from(this.#rest, 'base64')
  }
}
