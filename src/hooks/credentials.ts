import type { IncomingHttpHeaders } from 'node:http'
import { credentialsOf, queryCredentialsOf } from '../http/auth'

/**
 * What a request gives as a key, at all places where senders can be told to put one: the headers of the relay, the password of Basic (RFC
 * 7617, with any user name), and `key` or `access_token` in the address.
 *
 * @throws RelayError `unauthorized` where one of the two stands there with different values
 */
export function hookCredentialsOf(headers: IncomingHttpHeaders, query: URLSearchParams): Buffer[] {
  const basic = /^Basic +([A-Za-z0-9+/_-]+=*)$/i.exec(headers.authorization ?? '')?.[1]
  const pair = Buffer.from(basic ?? '', 'base64')
  const password = pair.subarray(pair.indexOf(':') + 1)
  const inQuery = ['key', 'access_token'].flatMap(name => queryCredentialsOf(query, name, 'unauthorized'))
  return [...credentialsOf(headers), password, ...inQuery].filter(({ length }) => length > 0)
}
