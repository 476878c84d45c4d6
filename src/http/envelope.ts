import type { RelayError } from '../errors'

/** The envelope of a success (document, 2.1), as the text that is sent. */
export function success(data: object): string {
  return JSON.stringify({ code: 0, msg: 'ok', data })
}

/** The envelope of a failure: `code` equals the HTTP status (contract, "HTTP"). */
export function failure(error: RelayError): string {
  return JSON.stringify({ code: error.status, msg: error.message, data: null })
}
