import { send, socket } from '@koishijs/client'
import { watch } from 'vue'
import { writeSize } from '../src/lib/words'
import { fieldsOf, isFields, listOf, numberOf, textOf, textsOf, type Fields } from './fields'
import { freshWord } from './random'
import { locale, texts } from './texts/locale'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** The parts of a request besides its method and path. */
export interface More {
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: string | { base64: string }
}

/** An answer of the HTTP interface. */
export interface Reply {
  /** 0 without a connection. */
  status: number
  isRight: boolean
  /** In the language of the page. */
  msg: string
  /** The result, or what the relay tells about the failure. */
  data: Fields
  headers: Fields
  /** The body, if it is neither JSON nor text. */
  base64: string
}

/** Sends a request to the HTTP interface of the relay. It never throws: the reply contains the error. */
export async function call(method: Method, path: string, more: More = {}): Promise<Reply> {
  const answer = fieldsOf(await ask('message-relay/request', {
    method, path, ...more, headers: { 'accept-language': locale.value, ...more.headers },
  }))
  const json = fieldsOf(answer.json)
  const status = numberOf(answer.status)
  return {
    status,
    isRight: status >= 200 && status < 400,
    msg: textOf(json.msg) || textOf(answer.text) || (status === 0 ? texts.value.common.noConnection : String(status)),
    data: fieldsOf(json.data ?? json.error),
    headers: fieldsOf(answer.headers),
    base64: textOf(answer.base64),
  }
}

async function ask(type: string, ...args: unknown[]): Promise<unknown> {
  let stop = (): void => undefined
  // If the connection is lost, the console itself waits a minute for the answer.
  const lost = new Promise<undefined>(resolve => {
    stop = watch(socket, () => resolve(undefined))
  })
  try {
    return await Promise.race([send(type, ...args), lost])
  } catch {
    return undefined
  } finally {
    stop()
  }
}

/** Facts of the relay that its HTTP interface does not tell; `undefined` without a connection, or if the user lacks the permission. */
export async function loadAbout() {
  const about = await ask('message-relay/about')
  if (!isFields(about)) return
  return {
    url: textOf(about.url),
    isPublic: about.isPublic === true,
    sources: textsOf(about.sources),
    scopes: textsOf(about.scopes),
    /** The largest accepted file, in bytes. */
    maxUploadSize: numberOf(about.maxUploadSize),
    /** The file of the generated master key; empty if the key is in the settings. */
    keyFile: textOf(about.keyFile),
  }
}

export type About = NonNullable<Awaited<ReturnType<typeof loadAbout>>>

/** The name of this page in logs and records. The settings do not allow a key of this name. */
export const pageName = 'console'

/** Why a delivery waits for a chat that is temporarily closed to the bot; `undefined` if it does not. */
export function readHold(fields: unknown) {
  if (!isFields(fields)) return
  return {
    cause: textOf(fields.cause),
    reason: textOf(fields.reason),
    /** Empty if the end is unknown. */
    until: textOf(fields.until),
  }
}

export type Hold = NonNullable<ReturnType<typeof readHold>>

/** A delivery as `GET /deliveries` shows it. */
export function readDelivery(fields: Fields) {
  return {
    id: textOf(fields.id),
    state: textOf(fields.state),
    hold: readHold(fields.held),
    /** When the delivery joins its queue; empty if it has joined, or was not scheduled. */
    sendAt: textOf(fields.send_at),
    /** How the delivery continued its thread: `replied`, `updated`, `replaced` or `new`; empty without a thread. */
    thread: textOf(fields.thread),
    /** The digest that contained the delivery. */
    digest: isFields(fields.digest) ? fields.digest : undefined,
    /** The members, if the delivery is a digest. */
    members: listOf(fields.members),
    /** The ways before the present one. */
    route: listOf(fields.route),
    target: textOf(fields.target),
    bot: textOf(fields.bot),
    key: textOf(fields.key_name),
    door: textOf(fields.door),
    createdAt: textOf(fields.created_at),
    updatedAt: textOf(fields.updated_at),
    expiresAt: textOf(fields.expires_at),
    /** How often the platform was called. */
    calls: numberOf(fields.attempts),
    results: listOf(fields.results),
    items: listOf(fields.items),
    history: listOf(fields.history),
    /** The time until the first attempt. */
    waitedMs: typeof fields.waited_ms === 'number' ? fields.waited_ms : undefined,
    /** 0 without an attempt. */
    platformMs: numberOf(fields.platform_ms),
    hasContent: fields.content === true,
  }
}

export type Delivery = ReturnType<typeof readDelivery>

/** A page of deliveries, newest first, and the cursor of the next page. */
export interface Page {
  deliveries: Delivery[]
  /** Absent on the last page. */
  next?: string
}

/** Reads the answer of `GET /deliveries`. */
export function readPage({ data, headers }: Reply): Page {
  const next = /[?&]before=([^&>]+)[^>]*>; rel="?next/.exec(textOf(headers.link))?.[1]
  return { deliveries: listOf(data.deliveries).map(readDelivery), ...next !== undefined && { next } }
}

/** `undefined` if the relay did not answer. */
export async function loadDeliveries(query: Record<string, string>): Promise<Page | undefined> {
  const reply = await call('GET', '/deliveries', { query })
  return reply.isRight ? readPage(reply) : undefined
}

/** The largest file that the console's connection can carry, in bytes. It is limited to 100 MiB, and base64 needs a third more. */
const largestCarried = 70 * 2 ** 20

/** The reason why a file is too large to upload. It is checked before the file is read. */
export function whyTooLarge({ size }: File, most: number): string | undefined {
  const bound = Math.min(most, largestCarried)
  return size > bound ? texts.value.common.tooLarge(writeSize(bound)) : undefined
}

/** Uploads a file; `undefined` if the browser cannot read it, for example because it has changed on the disk. */
export async function upload(file: File): Promise<Reply | undefined> {
  const boundary = `relay-${freshWord()}`
  const name = file.name.replace(/["\r\n]/g, '_')
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: application/octet-stream\r\n\r\n`
  const base64 = await base64Of(new Blob([head, file, `\r\n--${boundary}--\r\n`]))
  if (base64 === '') return
  return await call('POST', '/upload', { headers: { 'content-type': `multipart/form-data; boundary=${boundary}` }, body: { base64 } })
}

/** Empty if the browser cannot read the blob. */
function base64Of(blob: Blob): Promise<string> {
  return new Promise(resolve => {
    const reader = new FileReader()
    reader.onloadend = () => resolve(textOf(reader.result).replace(/^[^,]*,/, ''))
    reader.readAsDataURL(blob)
  })
}
