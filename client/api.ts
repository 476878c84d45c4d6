import { send, socket } from '@koishijs/client'
import { watch } from 'vue'
import { fieldsOf, isFields, listOf, numberOf, textOf, textsOf, type Fields } from './fields'
import { freshWord } from './random'
import { locale } from './texts/locale'
import { translateTo } from './texts/reasons'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** What a request has besides its method and path. */
export interface More {
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: string | { base64: string }
}

/** An answer of the HTTP interface. */
export interface Reply {
  /** 0 where there was no connection. */
  status: number
  isRight: boolean
  /** In the language of the page, as far as the page knows the text. */
  msg: string
  data: Fields
  headers: Fields
  /** Of an answer that is neither JSON nor text. */
  base64: string
}

/** Makes a request to the HTTP interface of the relay. It never fails: what went wrong is part of the answer. */
export async function call(method: Method, path: string, more: More = {}): Promise<Reply> {
  const answer = fieldsOf(await ask('message-relay/request', { method, path, ...more }))
  const json = fieldsOf(answer.json)
  const status = numberOf(answer.status)
  return {
    status,
    isRight: status >= 200 && status < 400,
    msg: translateTo(locale.value, textOf(json.msg) || textOf(answer.text) || (status === 0 ? 'no connection' : String(status))),
    data: fieldsOf(json.data),
    headers: fieldsOf(answer.headers),
    base64: textOf(answer.base64),
  }
}

async function ask(type: string, ...args: unknown[]): Promise<unknown> {
  let stop = (): void => undefined
  // The console waits a minute for an answer that cannot come any more.
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

/** What the page knows of the relay besides what HTTP tells; `undefined` where there is no connection, or the user may not know it. */
export async function loadAbout() {
  const about = await ask('message-relay/about')
  if (!isFields(about)) return
  return {
    url: textOf(about.url),
    isPublic: about.isPublic === true,
    sources: textsOf(about.sources),
    scopes: textsOf(about.scopes),
    /** The largest file that is accepted, in bytes. */
    maxUploadSize: numberOf(about.maxUploadSize),
    /** The file that the master key was written to; empty where it is in the settings. */
    keyFile: textOf(about.keyFile),
  }
}

export type About = NonNullable<Awaited<ReturnType<typeof loadAbout>>>

/** By which log and records call this page. The settings refuse it as the name of a key. */
export const pageName = 'console'

/** Why something waits for a chat that is closed to the bot for a while; `undefined` where there is none. */
export function readHold(fields: unknown) {
  if (!isFields(fields)) return
  return {
    cause: textOf(fields.cause),
    /** In plain English. */
    reason: textOf(fields.reason),
    /** Empty where that is not known. */
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
    /** When it joins its queue; empty where it has, or waits for no time. */
    sendAt: textOf(fields.send_at),
    /** How it went on with its thread: `replied`, `updated`, `replaced` or `new`; empty without one. */
    thread: textOf(fields.thread),
    /** The digest that it left in. */
    digest: isFields(fields.digest) ? fields.digest : undefined,
    /** The deliveries that it stands for, where it is a digest. */
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
    attempts: numberOf(fields.attempts),
    results: listOf(fields.results),
    items: listOf(fields.items),
    history: listOf(fields.history),
    /** Until it was tried for the first time. */
    waitedMs: typeof fields.waited_ms === 'number' ? fields.waited_ms : undefined,
    /** 0 where nothing was tried. */
    platformMs: numberOf(fields.platform_ms),
    hasContent: fields.content === true,
  }
}

export type Delivery = ReturnType<typeof readDelivery>

/** A page of deliveries, newest first, and where the next one begins. */
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

/** `undefined` where the relay did not answer. */
export async function loadDeliveries(query: Record<string, string>): Promise<Page | undefined> {
  const reply = await call('GET', '/deliveries', { query })
  return reply.isRight ? readPage(reply) : undefined
}

/** The largest file that the connection to the console carries, in bytes: as base64 it takes a third more, of 100 MiB. */
const largestCarried = 70 * 2 ** 20

/** Why a file is not uploaded: it is not even read. */
export function whyTooLarge({ size }: File, most: number): string | undefined {
  const bound = Math.min(most, largestCarried)
  return size > bound ? translateTo(locale.value, `a file is larger than ${bound} bytes`) : undefined
}

/** Uploads a file; `undefined` where the browser cannot read it, as after a change on the disk. */
export async function upload(file: File): Promise<Reply | undefined> {
  const boundary = `relay-${freshWord()}`
  const name = file.name.replace(/["\r\n]/g, '_')
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: application/octet-stream\r\n\r\n`
  const base64 = await base64Of(new Blob([head, file, `\r\n--${boundary}--\r\n`]))
  if (base64 === '') return
  return await call('POST', '/upload', { headers: { 'content-type': `multipart/form-data; boundary=${boundary}` }, body: { base64 } })
}

/** Empty for what cannot be read. */
function base64Of(blob: Blob): Promise<string> {
  return new Promise(resolve => {
    const reader = new FileReader()
    reader.onloadend = () => resolve(textOf(reader.result).replace(/^[^,]*,/, ''))
    reader.readAsDataURL(blob)
  })
}
