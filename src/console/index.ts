import type {} from '@koishijs/plugin-console'
import type { Server } from '@koishijs/plugin-server'
import type { Context } from 'koishi'
import type { Access } from '../access/access'
import { consoleName } from '../access/keys'
import { scopes } from '../access/scopes'
import { RelayError } from '../errors'
import { forward, parsePageRequest, type PageAnswer } from './request'

declare module '@koishijs/console' {
  interface Events {
    'message-relay/about'(): About
    'message-relay/request'(request: unknown): Promise<PageAnswer>
  }
}

/** What the page knows without asking the HTTP interface: settings, and nothing secret. */
export interface About {
  /** Where callers reach the server of the bot, with the prefix. */
  url: string
  /** Whether `url` is what the operator has entered, or only how this machine reaches it. */
  isPublic: boolean
  /** What can stand as the source in an address of `/hooks`. */
  sources: string[]
  /** What a key may be allowed. */
  scopes: readonly string[]
  /** The largest file that is accepted, in bytes. */
  maxUploadSize: number
  /** The file that the master key was written to; absent where it is in the settings. */
  keyFile?: string
}

/** What the page needs of the plugin. */
export interface ConsoleOptions {
  /** The server that the routes of the plugin are on. */
  server: Server
  prefix: string
  /** The folder that the page was built into, from client/. */
  page: string
  access: Pick<Access, 'lend'>
  /** The address that the operator has entered for callers, without the prefix; empty where there is none. */
  publicUrl: () => string
  about: () => Pick<About, 'sources' | 'maxUploadSize' | 'keyFile'>
  /** Aborted when the relay stops. */
  stop: AbortSignal
}

/** The authority that a user of the page needs: that for configuring a plugin. */
const authority = 4

/**
 * Shows the page in Koishi's console, while there is one. The page makes real requests to the HTTP interface, with a key lent to it, so
 * that it can do nothing that curl could not.
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

/** Answers in the envelope even where no request was made: an error would reach the page with its stack. */
async function answer(value: unknown, base: string | undefined, key: string, stop: AbortSignal): Promise<PageAnswer> {
  try {
    if (base === undefined) throw new RelayError('unsent', 'the server of the bot does not listen')
    return await forward(parsePageRequest(value), base, key, stop)
  } catch (error) {
    const { status, message } = RelayError.from(error)
    return { status, headers: {}, json: { code: status, msg: message, data: null } }
  }
}

/** The address of the plugin on this machine; `undefined` while the server does not listen. */
function baseOf({ _http: server }: Server, prefix: string): string | undefined {
  const address = server.address()
  if (typeof address !== 'object' || !address) return
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address.address] ?? address.address
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}${prefix}`
}
