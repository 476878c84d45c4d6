import { digest } from '../../lib/crypto'
import type { Target } from '../../message/model'
import { fieldsOf, type JsonObject } from '../../message/parse'
import { toPage } from '../history'
import { toText } from '../incoming'
import type { BotAccount } from '../koishi'
import { onlyPart, WebMessage, type Call } from '../message'
import { SendError, type HistoryPage, type LoadedItem, type LoadedMedia } from '../port'
import { readMedia, toForm, type MediaFile } from '../web'
import type { Api } from './api'
import { essenceOf, toParts, type Part } from './text'

/** The most bytes in a file, where a server has not paid for more: https://docs.discord.com/developers/reference#uploading-files */
const mostOfFile = 10 * 2 ** 20
/** The most bytes in all files of a message, whose request may have 25 MiB. */
const mostOfFiles = 24 * 2 ** 20
/** The most messages in a page of the history. */
const mostOfPage = 100

/** A message to a channel or a thread. */
export class DiscordMessage extends WebMessage {
  readonly likeness: string
  /**
   * Each call has a nonce, which Discord compares with those of "the past few minutes", and answers with the message that is there. This is
   * less than that can mean. Source: `enforce_nonce` of https://docs.discord.com/developers/resources/message#create-message
   */
  protected override readonly repeatableFor = 60_000
  private readonly parts: readonly Part[]

  constructor(
    account: BotAccount, target: Target, items: readonly LoadedItem[], private readonly name: string, private readonly api: Api,
    changed?: string,
  ) {
    super(account, target, items, changed)
    this.parts = toParts(items)
    this.likeness = digest(JSON.stringify(this.parts.map(({ content, files }) => [essenceOf(content), files.map(({ name }) => name)])))
  }

  protected async channel(): Promise<string> {
    const channelId = await this.api.channelOf(this.target)
    await this.api.rest(channelId)
    return channelId
  }

  protected async prepare(channelId: string): Promise<readonly Call[]> {
    const { api, parts, changed } = this
    if (parts.length === 0) throw new SendError('refused', undefined, { causeId: 'empty', isFinal: true })
    if (changed !== undefined) {
      const { content, allowed_mentions } = this.fields(onlyPart(parts), 0)
      return [() => api.post(channelId, { content, allowed_mentions }, changed)]
    }
    const calls: Call[] = []
    for (const [index, part] of parts.entries()) {
      const data = toBody(this.fields(part, index), await this.read(part.files))
      calls.push(() => api.post(channelId, data))
    }
    return calls
  }

  override async history(count: number): Promise<HistoryPage | undefined> {
    if (this.changed !== undefined) return super.history(count)
    const [part, ...others] = this.parts
    // What is there of a divided message says nothing of the rest: a further round of calls does. What another plugin made of a message
    // looks otherwise.
    if (!part || others.length > 0 || this.idempotentFor === 0) throw new SendError('unanswered', 'the message cannot be looked up')
    const messages = await this.latest(count)
    const page = toPage(messages, {
      isOwn: ({ author }) => fieldsOf(author).id === this.account.selfId,
      timeOf: ({ id }) => timeOf(toText(id)),
      idOf: ({ id }) => toText(id),
      isEqual: message => typeof message.content === 'string' ? isSame(part, message) : undefined,
    })
    // Nothing is older than the messages of a channel that has fewer than were asked for.
    return messages.length < count ? { ...page, oldest: 0 } : page
  }

  /**
   * The last messages of the channel, the newest first. Source: https://docs.discord.com/developers/resources/message#get-channel-messages
   *
   * @throws SendError also where there is none, as that may be the lack of a permission
   */
  private async latest(count: number): Promise<JsonObject[]> {
    const path = `/channels/${await this.api.channelOf(this.target)}/messages`
    const messages: JsonObject[] = []
    while (messages.length < count) {
      const limit = Math.min(count - messages.length, mostOfPage)
      const last = messages.at(-1)
      const page = await this.api.list(`${path}?limit=${limit}${last ? `&before=${toText(last.id)}` : ''}`)
      messages.push(...page)
      if (page.length < limit) break
    }
    if (messages.length === 0) throw new SendError('unanswered', 'the bot cannot read the history of this channel')
    return messages
  }

  /** The fields of a message. `allowed_mentions` decides who is told, whatever the text says. */
  private fields({ content, users, mentionsAll }: Part, index: number): JsonObject {
    const answered = index === 0 ? this.answered : undefined
    return {
      content,
      nonce: digest(`${this.name} ${index}`).slice(0, 25),
      enforce_nonce: true,
      allowed_mentions: { parse: mentionsAll ? ['everyone'] : [], users },
      ...answered !== undefined && { message_reference: { message_id: answered, fail_if_not_exists: false } },
    }
  }

  private async read(files: readonly LoadedMedia[]): Promise<MediaFile[]> {
    const read: MediaFile[] = []
    for (const file of files) read.push(await readMedia(this.account.bot, file, mostOfFile))
    if (read.reduce((sum, { data }) => sum + data.length, 0) <= mostOfFiles) return read
    throw new SendError('refused', 'Discord takes files of at most 24 MB together', { isFinal: true })
  }
}

/** Source: https://docs.discord.com/developers/reference#uploading-files */
function toBody(fields: JsonObject, files: readonly MediaFile[]): object {
  if (files.length === 0) return fields
  const payload = { ...fields, attachments: files.map(({ name }, id) => ({ id, filename: name })) }
  return toForm({ payload_json: payload }, files.map((file, index) => [`files[${index}]`, file] as const))
}

/** Whether a message of the history looks like this one. */
function isSame({ content, files }: Part, { content: shown, attachments }: JsonObject): boolean {
  const names = (Array.isArray(attachments) ? attachments : []).map(attachment => toText(fieldsOf(attachment).filename))
  return essenceOf(toText(shown)) === essenceOf(content) && names.length === files.length
    && files.every(({ name }, index) => isSameName(name, names[index] ?? ''))
}

/** Discord keeps of other names than plain ones only the ending; a name without an ending gets one by its type. */
function isSameName(given: string, shown: string): boolean {
  const ending = /\.\w+$/.exec(given)?.[0].toLowerCase()
  return ending === undefined || (/^[a-z0-9][a-z0-9.-]*$/i.test(given) ? shown === given : shown.toLowerCase().endsWith(ending))
}

/** When a message was made, in milliseconds since the epoch: https://docs.discord.com/developers/reference#snowflakes */
function timeOf(id: string): number {
  return /^\d+$/.test(id) ? Number(BigInt(id) >> 22n) + 1_420_070_400_000 : NaN
}
