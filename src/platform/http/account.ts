import type { HTTP } from 'koishi'
import { RelayError } from '../../errors'
import { hash } from '../../lib/crypto'
import { networkReason, parseEndpoint, postJson, type Endpoint } from '../../lib/endpoint'
import { signatureHeaders } from '../../lib/webhook-signature'
import { httpPlatform, type ParsedItem, type Target, type TargetNames, type HttpWay } from '../../message/model'
import { findHttpWay } from '../../message/target'
import { classifyThrown } from '../failure'
import { SendError, type Account, type Health, type LoadedItem, type LoadedMedia, type Message, type Receipt } from '../port'
import { retryAfterOf } from '../web'
import { clauses, say } from '../../texts/text'

/** The wait for a busy address that sends no `Retry-After`, in milliseconds. */
const usualWait = 30_000

const noAddress = say('http-address-gone')

/** The parts of the plugin that HTTP addresses need. */
export interface HttpOptions {
  http: () => HTTP
  /** The addresses, which may change while the relay runs. */
  names: TargetNames
  /** The time-out of a call, in whole milliseconds. */
  timeout: number
  /** Aborted when the relay stops. */
  stop: AbortSignal
}

/** The account for HTTP addresses. A target is a way of a name's route. The account is always online. */
export class HttpAccount implements Account {
  readonly platform = httpPlatform
  readonly selfId = 'ways'
  readonly sid = `${httpPlatform}:${this.selfId}`
  readonly name = ''
  readonly isOnline = true
  readonly readsFiles = false
  readonly takesFiles = false
  readonly canUpdate = false
  readonly longestText = Infinity
  readonly recallableFor = 0
  /** A receiver recognizes a repeated call by its `webhook-id`. */
  readonly retriesUnanswered = true
  readonly health: Health = { state: 'online', since: Date.now() }

  constructor(private readonly options: HttpOptions) {}

  /** Everything can be written as text. */
  check(target: Target, items: readonly ParsedItem[]): readonly ParsedItem[] {
    if (!findHttpWay(target, this.options.names)) throw new RelayError('bad-request', noAddress)
    return items
  }

  message(target: Target, items: readonly LoadedItem[], name: string): Message {
    const text = toText(items)
    return {
      likeness: hash(text),
      // Each call has the same `webhook-id`.
      idempotentFor: Infinity,
      send: begin => this.send(target, text, name, begin),
    }
  }

  recall(): Promise<never> {
    return Promise.reject(new SendError('refused', say('http-not-recallable'), { isFinal: true }))
  }

  private async send(to: Target, text: string, name: string, begin: () => void): Promise<Receipt> {
    const found = findHttpWay(to, this.options.names)
    const endpoint = found && parseEndpoint(found.way.url)
    if (!endpoint) throw new SendError('refused', noAddress, { isFinal: true })
    const { name: target, way: { secret, format } } = found
    // The name begins with the ID of the delivery.
    const [id] = name.split(' ')
    const content = format === 'apprise' ? { body: text, title: target, type: 'info' } : { text, target, delivery_id: id }
    const body = JSON.stringify(content)
    const webhookId = hash(name)
    begin()
    return this.post(endpoint, format, body, {
      'webhook-id': webhookId,
      ...secret !== undefined && signatureHeaders(secret, { id: webhookId, time: Date.now(), body }),
    })
  }

  private async post(
    endpoint: Endpoint, format: HttpWay['format'], body: string, headers: Readonly<Record<string, string>>,
  ): Promise<Receipt> {
    const { http, timeout, stop } = this.options
    const { origin } = endpoint
    try {
      return await postJson(endpoint, body, { http: http(), headers, timeout, stop }, ({ status, headers: answered }) => {
        // 204 from an Apprise API: no services under this key.
        const isLost = format === 'apprise' && status === 204
        if (isLost) throw new SendError('refused', say('http-no-service', { origin }), { isFinal: true })
        if (status < 200 || status >= 300) throw failureOf(status, answered, origin)
        return { messageIds: [] }
      })
    } catch (error) {
      if (error instanceof SendError) throw error
      const { outcome, causeId } = classifyThrown(error, 'unanswered')
      throw new SendError(outcome, clauses(origin, networkReason(error)), { causeId })
    }
  }
}

/** Describes a failed status. The answer may contain anything, and only the origin of the address is not secret, so neither is shown. */
function failureOf(status: number, headers: Headers, origin: string): SendError {
  const words = say(status >= 300 && status < 400 ? 'http-redirected' : 'http-answered', { origin, status })
  if (status === 429 || status === 503) {
    return new SendError('unsent', words, { causeId: 'rate-limited', limit: { scope: 'chat', after: retryAfterOf(headers) ?? usualWait } })
  }
  return status >= 500 || status === 408 ? new SendError('unanswered', words) : new SendError('refused', words, { isFinal: true })
}

/** The largest file whose content is sent as text, in characters of base64. */
const longestShown = 2 ** 20

/** The text of a text file, such as that of a long text that falls back to an HTTP address. */
function contentOf({ src }: LoadedMedia): string {
  const [, base64 = ''] = src.length <= longestShown ? /^data:text\/plain[^,]*;base64,(.*)$/s.exec(src) ?? [] : []
  return Buffer.from(base64, 'base64').toString()
}

/** The items as text. Media become their links, or their names if nobody else can open the links. */
function toText(items: readonly LoadedItem[]): string {
  return items.reduce((text, item) => {
    switch (item.type) {
      case 'text':
        return text + item.text
      case 'at':
        return `${text}@${item.userId ?? 'all'} `
      case 'reply':
        return text
      default:
        return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}[${item.type}] ${/^https?:/.test(item.src) ? item.src : item.name}\n${contentOf(item)}`
    }
  }, '').trimEnd()
}
