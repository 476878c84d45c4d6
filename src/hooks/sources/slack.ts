import { RelayError } from '../../errors'
import { isObject, type JsonObject } from '../../message/parse'
import { inOneLine, lines, linkOf, objectOf, objectsOf, textOf } from '../fields'
import { fromSlack } from '../markup'
import { slackShape } from '../shapes'
import type { Source } from '../source'

/** How deep the elements of rich text are looked at. */
const maxDepth = 8

/** Incoming webhooks of Slack: text, blocks and attachments. Where there are blocks, the text only stands in for them. */
export const slack: Source = {
  name: 'slack',
  shape: slackShape,
  read({ payload }) {
    const blocks = objectsOf(payload.blocks)
    const text = lines(...blocks.map(block => readBlock(block))) ?? markup(payload.text)
    const attachments = objectsOf(payload.attachments).map(readAttachment)
    const pictures = blocks.flatMap(pictureOf)
    if (text === undefined && pictures.length === 0 && attachments.every(isEmpty)) throw new RelayError('bad-request', 'there is no text')
    return { name: 'message', view: { text, attachments, pictures } }
  },
}

function readAttachment(attachment: JsonObject): JsonObject {
  const blocks = objectsOf(attachment.blocks)
  const fields = objectsOf(attachment.fields).map(({ title, value }) => [markup(title), markup(value)].filter(Boolean).join(': '))
  const main = lines(
    markup(attachment.author_name), markup(attachment.title), markup(attachment.text), ...fields, ...blocks.map(block => readBlock(block)),
  )
  return {
    pretext: markup(attachment.pretext),
    // The fallback is for those who show none of the rest.
    text: main ?? markup(attachment.fallback),
    link: linkOf(attachment.title_link),
    footer: markup(attachment.footer),
    pictures: [linkOf(attachment.image_url), linkOf(attachment.thumb_url), ...blocks.flatMap(pictureOf)].filter(link => link !== undefined),
  }
}

function isEmpty({ pretext, text, pictures }: JsonObject): boolean {
  return pretext === undefined && text === undefined && Array.isArray(pictures) && pictures.length === 0
}

function readBlock(block: JsonObject): string | undefined {
  switch (block.type) {
    case 'header':
    case 'section':
      return lines(textObject(block.text), ...objectsOf(block.fields).map(field => inOneLine(textObject(field))))
    case 'context':
      return objectsOf(block.elements).map(textObject).filter(Boolean).join(' ') || undefined
    case 'markdown':
      return textOf(block.text)
    case 'image':
      return textObject(block.title)
    case 'actions':
      return lines(...objectsOf(block.elements).map(({ text, url }) => withLink(textObject(text), linkOf(url))))
    case 'rich_text':
      return readRichText(block)
  }
}

/** An object with text: plain, or in Slack's markup. */
function textObject(value: unknown): string | undefined {
  const { type, text } = objectOf(value)
  return type === 'plain_text' ? textOf(text) : type === 'mrkdwn' ? markup(text) : undefined
}

/** Sections, lists, quotes and code, one below the other; within them, texts and links in a row. */
function readRichText(element: JsonObject, depth = 0): string | undefined {
  const parts = objectsOf(element.elements)
  if (depth > maxDepth) return
  if (element.type === 'rich_text') return lines(...parts.map(part => readRichText(part, depth + 1)))
  if (element.type === 'rich_text_list') return lines(...parts.map(part => `- ${readRichText(part, depth + 1) ?? ''}`))
  return parts.map(readInline).join('').trim() || undefined
}

function readInline({ type, text, url, name, user_id: user, channel_id: channel, range }: JsonObject): string {
  const said = typeof text === 'string' ? text : ''
  switch (type) {
    case 'link':
      return withLink(textOf(text), linkOf(url)) ?? ''
    case 'emoji':
      return `:${textOf(name) ?? ''}:`
    case 'user':
      return `@${textOf(user) ?? ''}`
    case 'channel':
      return `#${textOf(channel) ?? ''}`
    case 'broadcast':
      return `@${textOf(range) ?? ''}`
    default:
      return said
  }
}

function withLink(text: string | undefined, link: string | undefined): string | undefined {
  return text === undefined || text === link ? link : link === undefined ? text : `${text} (${link})`
}

function markup(value: unknown): string | undefined {
  const text = textOf(value)
  return text === undefined ? undefined : fromSlack(text)
}

function pictureOf(block: JsonObject): string[] {
  const accessory = isObject(block.accessory) ? [block.accessory] : []
  return [block, ...accessory].flatMap(({ type, image_url: url }) => type === 'image' ? linkOf(url) ?? [] : [])
}
