import { RelayError } from '../../errors'
import type { JsonObject } from '../../lib/shape'
import { address, inOneLine, joinLines, labelled, linked, object, objects, pieceOf, textOf } from '../fields'
import { readCard } from '../cards'
import { fromMarkdown, fromSlack, readerOf, withEmoji, type Reader } from '../markup'
import { markOfColor, severityIn, unlessMarked } from '../marks'
import { slackShape } from '../shapes'
import type { Source } from '../source'
import { say } from '../../texts/text'

/** The most levels of nested elements of rich text that are read. */
const maxDepth = 8

/** Incoming webhooks of Slack: text, blocks and attachments. If there are blocks, the text is only a fallback for them. */
export const slack: Source = {
  name: 'slack',
  takesTail: true,
  shape: slackShape,
  read({ payload, format }) {
    const read = readerOf(format, fromSlack)
    const blocks = objects(payload.blocks)
    const text = joinLines(...blocks.map(readBlock)) || read(payload.text) || fromMarkdown(payload.markdown_text)
    const attachments = objects(payload.attachments).map(attachment => readAttachment(attachment, read, text))
    const pictures = blocks.flatMap(pictureOf)
    if (text === '' && pictures.length === 0 && attachments.every(isEmpty)) throw new RelayError('bad-request', say('no-text'))
    const severity = severityIn(text, ...attachments.map(each => each.mark + each.pretext + each.text))
    return { name: 'message', ...severity && { severity }, view: { text, attachments, pictures } }
  },
}

type AttachmentView = Readonly<Record<'mark' | 'pretext' | 'text' | 'link' | 'footer', string>> & { readonly pictures: readonly string[] }

/** @param said the text above it */
function readAttachment(attachment: JsonObject, read: Reader, said: string): AttachmentView {
  const blocks = objects(attachment.blocks)
  const main = joinLines(
    read(attachment.author_name), read(attachment.title), read(attachment.text),
    ...objects(attachment.fields).map(({ title, value }) => labelled(read(title), read(value))),
    ...blocks.map(readBlock),
    ...objects(attachment.actions).map(({ text, url }) => linkOnly(textOf(text), url)),
  )
  const pretext = read(attachment.pretext)
  // The fallback is for clients that cannot show attachments.
  const text = main || read(attachment.fallback)
  return {
    mark: pretext + text === '' ? '' : unlessMarked(markOfColor(attachment.color), said, pretext, text),
    pretext,
    text,
    link: address(attachment.title_link),
    footer: read(attachment.footer),
    pictures: [address(attachment.image_url), ...blocks.flatMap(pictureOf)].filter(link => link !== ''),
  }
}

function isEmpty({ pretext, text, pictures }: AttachmentView): boolean {
  return pretext === '' && text === '' && pictures.length === 0
}

function readBlock(block: JsonObject): string {
  switch (block.type) {
    case 'header':
    case 'section': {
      const { text, url } = object(block.accessory)
      const fields = objects(block.fields).map(field => inOneLine(textObject(field)))
      return joinLines(textObject(block.text), ...fields, linkOnly(textObject(text), url))
    }
    case 'context':
      return objects(block.elements).map(textObject).filter(text => text !== '').join(' ')
    case 'markdown':
      return fromMarkdown(block.text)
    case 'image':
      return textObject(block.title)
    case 'actions':
      return joinLines(...objects(block.elements).map(({ text, url }) => linkOnly(textObject(text), url)))
    case 'rich_text':
      return readRichText(block)
    default:
      return readCard(block)
  }
}

/** A button with a link. Other buttons have no use in another chat. */
function linkOnly(name: string, url: unknown): string {
  const link = address(url)
  return link === '' ? '' : linked(name, link)
}

/** The text of a text object: plain with names of emoji, or in Slack's markup. */
function textObject(value: unknown): string {
  const { type, text, emoji } = object(value)
  if (type === 'mrkdwn') return fromSlack(text)
  if (type !== 'plain_text') return ''
  return emoji === false ? textOf(text) : withEmoji(textOf(text))
}

/** Reads rich text: sections, lists, quotes and code on lines of their own, and within each its texts and links in a row. */
function readRichText(element: JsonObject, depth = 0): string {
  if (depth > maxDepth) return ''
  const parts = objects(element.elements)
  if (element.type === 'rich_text') return joinLines(...parts.map(part => readRichText(part, depth + 1)))
  if (element.type === 'rich_text_list') return joinLines(...parts.map(part => `- ${readRichText(part, depth + 1)}`))
  return parts.map(readInline).join('').trim()
}

function readInline(part: JsonObject): string {
  const { text } = part
  switch (part.type) {
    case 'link':
      return linked(textOf(text), address(part.url))
    case 'emoji':
      return withEmoji(`:${textOf(part.name)}:`)
    case 'user':
      return `@${textOf(part.user_id)}`
    case 'usergroup':
      return `@${textOf(part.usergroup_id)}`
    case 'channel':
      return `#${textOf(part.channel_id)}`
    case 'broadcast':
      return `@${textOf(part.range)}`
    case 'date':
      return textOf(part.fallback)
    default:
      return pieceOf(text)
  }
}

function pictureOf(block: JsonObject): string[] {
  const pictures = [block, object(block.accessory)].map(({ type, image_url: url }) => type === 'image' ? address(url) : '')
  return pictures.filter(link => link !== '')
}
