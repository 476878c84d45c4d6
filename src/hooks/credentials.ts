import type { IncomingHttpHeaders } from 'node:http'
import { credentialsOf, queryCredentialsOf } from '../http/auth'
import { header } from './fields'

/**
 * What a request gives as a key, at all places where senders can be told to put one: the headers of the relay, the password of Basic (RFC
 * 7617, with any user name), `key` or `access_token` in the address, and the header of a source.
 *
 * @param keyHeader the name of that header, in small letters
 * @throws RelayError `unauthorized` where one of the two stands there with different values
 */
export function hookCredentialsOf(headers: IncomingHttpHeaders, query: URLSearchParams, keyHeader: string | undefined): Buffer[] {
  const basic = /^Basic +([A-Za-z0-9+/_-]+=*)$/i.exec(headers.authorization ?? '')?.[1]
  const pair = Buffer.from(basic ?? '', 'base64')
  const password = pair.subarray(pair.indexOf(':') + 1)
  const inQuery = ['key', 'access_token'].flatMap(name => queryCredentialsOf(query, name, 'unauthorized'))
  const own = keyHeader === undefined ? [] : [Buffer.from(header(headers, keyHeader), 'latin1')]
  return [...credentialsOf(headers), ...own, password, ...inQuery].filter(({ length }) => length > 0)
}
