import { isObject, type JsonObject } from '../../message/parse'
import { address, inOneLine, joinLines, labelled, line, linked, object, objects, parsed, pieceOf, textOf } from '../fields'
import { fromMarkdown, withLinks } from '../markup'
import { feishuShape } from '../shapes'
import { robot, type Message, type Readers } from './robot'

/** How deep the elements of a card are looked at. */
const maxDepth = 8
/** How many columns of a table are shown. */
const maxColumns = 10
/** How many paragraphs of a post are looked at. */
const maxParagraphs = 200

const readers: Readers = new Map<string, (content: JsonObject) => Message>([
  // Links are all that has a meaning in it, besides mentions.
  ['text', ({ text }) => ({ text: withLinks(withoutMentions(textOf(text))) })],
  ['post', content => readPost(object(content.post ?? content))],
  ['interactive', readCard],
])

/** A post holds its text in one language or several, of which the first is taken. */
function readPost(post: JsonObject): Message {
  const { title, content } = Object.values(post).find(isObject) ?? post
  const paragraphs = Array.isArray(content) ? content.slice(0, maxParagraphs) : []
  return { title: textOf(title), text: joinLines(...paragraphs.map(paragraph => objects(paragraph).map(readInline).join(''))) }
}

function readInline({ tag, text, href, user_name: name, user_id: id }: JsonObject): string {
  const said = pieceOf(text)
  switch (tag) {
    case 'at':
      return mentionOf(textOf(id), textOf(name))
    case 'a':
      return linked(said, address(href))
    case 'md':
      return fromMarkdown(withoutMentions(said))
    default:
      return withoutMentions(said)
  }
}

function readCard(card: JsonObject): Message {
  const elements = objects(card.elements ?? object(card.body).elements ?? Object.values(object(card.i18n_elements))[0])
  const { title, subtitle } = object(card.header)
  return {
    title: said(title),
    text: joinLines(said(subtitle), ...elements.map(element => readElement(element, 0))),
    link: address(object(card.card_link).url),
  }
}

function readElement(element: JsonObject, depth: number): string {
  if (depth > maxDepth) return ''
  const { tag, extra, header } = element
  if (tag === 'table') return readTable(element)
  const below = [element.elements, element.columns, element.actions, [extra]].flatMap(list => objects(list))
  const text = said(tag === 'markdown' || tag === 'lark_md' || tag === 'plain_text' ? element : element.text)
  return joinLines(
    said(object(header).title),
    labelled(text, address(element.url) || address(object(element.multi_url).url) || linkOfBehaviors(element.behaviors)),
    ...objects(element.fields).map(field => inOneLine(said(field.text))),
    ...below.map(inner => readElement(inner, depth + 1)),
  )
}

/** A table, each of its rows in a line. */
function readTable({ columns, rows }: JsonObject): string {
  const fields = objects(columns, maxColumns)
  const names = fields.map(({ display_name: name }) => line(name))
  return joinLines(...[names, ...objects(rows).map(row => fields.map(({ name }) => readCell(row[line(name)])))].map(cells => cells.join(' | ')))
}

/** A text, a number, or labels with a text each. */
function readCell(value: unknown): string {
  return Array.isArray(value) ? objects(value).map(({ text }) => line(text)).join(', ') : fromMarkdown(line(value))
}

/** What a button of a card in its newer form (2.0) opens. */
function linkOfBehaviors(behaviors: unknown): string {
  return address(objects(behaviors).find(({ type }) => type === 'open_url')?.default_url)
}

/** An object with text, plain or in Markdown. */
function said(value: unknown): string {
  const { tag, content } = object(value)
  return tag === 'plain_text' ? textOf(content) : fromMarkdown(content)
}

function withoutMentions(text: string): string {
  return text.replace(/<at user_id="([^<>"\n]{0,100})">([^<>\n]{0,200})<\/at>/g, (_, id: string, name: string) => mentionOf(id, name))
}

function mentionOf(id: string, name: string): string {
  const word = name || id
  return word === '' ? '' : `@${word}`
}

/**
 * The custom bot of Feishu (Lark). Its `timestamp` and `sign` are not looked at: the key is the proof. Some clients send the content as
 * JSON within the JSON, as the API for apps wants it.
 */
export const feishu = robot('feishu', feishuShape, 'msg_type', readers, ({ card, content }, kind) =>
  object(parsed(kind === 'interactive' ? card ?? content : content)))
