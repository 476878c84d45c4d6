import type {} from '@koishijs/plugin-console'
import type { Server } from '@koishijs/plugin-server'
import type { Context } from 'koishi'
import type { Access } from '../access/access'
import { consoleName } from '../access/keys'
import { scopes } from '../access/scopes'
import { RelayError } from '../errors'
import { isObject, isString } from '../lib/shape'
import { languageAsked } from '../texts/language'
import { say, writer } from '../texts/text'
import { forward, parsePageRequest, type PageAnswer } from './request'

declare module '@koishijs/console' {
  interface Events {
    'message-relay/about'(): About
    'message-relay/request'(request: unknown): Promise<PageAnswer>
  }
}

/** The settings that the page gets without a request to the HTTP interface. They contain no secrets. */
export interface About {
  /** The address of the plugin for callers, with the prefix. */
  url: string
  /** Whether `url` was set by the operator; otherwise it is the address on this machine. */
  isPublic: boolean
  /** The names of sources for addresses of `/hooks`. */
  sources: string[]
  /** The possible permissions of a key. */
  scopes: readonly string[]
  /** The largest accepted file, in bytes. */
  maxUploadSize: number
  /** The file of the master key; absent if the key is in the settings. */
  keyFile?: string
}

/** The parts of the plugin that the page needs. */
export interface ConsoleOptions {
  /** The server with the routes of the plugin. */
  server: Server
  prefix: string
  /** The folder of the built page, from client/. */
  page: string
  access: Pick<Access, 'lend'>
  /** The address for callers that the operator has set, without the prefix; empty for none. */
  publicUrl: () => string
  about: () => Pick<About, 'sources' | 'maxUploadSize' | 'keyFile'>
  /** Aborted when the relay stops. */
  stop: AbortSignal
}

/** The Koishi authority for the page, the same as for configuring plugins. */
const authority = 4

/**
 * Adds the page to Koishi's console while there is one. The page makes real requests to the HTTP interface, with a temporary key, so it
 * can do only what curl can do.
 */
export function serveConsole(ctx: Context, options: ConsoleOptions): void {
  const { server, prefix, page, access, stop } = options
  ctx.inject(['console'], inner => {
    const { console } = inner
    const { key, takeBack } = access.lend(consoleName)
    console.addEntry({ dev: page, prod: page })
    console.addListener('message-relay/about', () => describe(options), { authority })
    console.addListener('message-relay/request', value => answer(value, baseOf(server, prefix), key, stop), { authority })
    inner.on('dispose', () => {
      takeBack()
      // The console keeps listeners of disposed plugins.
      for (const name of ['about', 'request']) Reflect.deleteProperty(console.listeners, `message-relay/${name}`)
    })
  })
}

function describe({ server, prefix, publicUrl, about }: ConsoleOptions): About {
  const entered = publicUrl()
  return { ...about(), scopes, url: entered === '' ? baseOf(server, prefix) ?? '' : entered + prefix, isPublic: entered !== '' }
}

/** Answers every failure in the envelope, because the console would send the stack of an exception to the page. */
async function answer(value: unknown, base: string | undefined, key: string, stop: AbortSignal): Promise<PageAnswer> {
  try {
    if (base === undefined) throw new RelayError('unsent', say('no-server'))
    return await forward(parsePageRequest(value), base, key, stop)
  } catch (error) {
    const { status, envelope } = RelayError.from(error)
    const headers = isObject(value) && isObject(value.headers) ? value.headers : {}
    const { 'accept-language': accepted } = headers
    const json: unknown = JSON.parse(JSON.stringify(envelope, writer(languageAsked('', isString(accepted) ? accepted : ''))))
    return { status, headers: {}, json }
  }
}

/** The address of the plugin on this machine; `undefined` while the server does not listen. */
function baseOf({ _http: server }: Server, prefix: string): string | undefined {
  const address = server.address()
  if (typeof address !== 'object' || !address) return
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address.address] ?? address.address
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}${prefix}`
}
