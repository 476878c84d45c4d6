// The robots of DingTalk, WeCom and Feishu. A message has a field with its kind, and one object with its content.
import { RelayError } from '../../errors'
import { parsePairs } from '../../lib/bytes'
import { isObject, type JsonObject } from '../../lib/shape'
import { address, inOneLine, joinLines, labelled, line, linked, object, objects, parsed, pictureOf, pieceOf, textOf } from '../fields'
import { fromMarkdown, fromRobotMarkdown, readerOf, withLinks, type Markup } from '../markup'
import { markOfColor, severityIn, unlessMarked } from '../marks'
import { errcodeShape, feishuShape, type Shape } from '../shapes'
import type { Source } from '../source'
import { say } from '../../texts/text'

/** The readers of the content, by kind of message. */
type Readers = ReadonlyMap<string, ContentReader>
/** @param format the markup of a plain text, from `?format=` */
type ContentReader = (content: JsonObject, format?: Markup) => Message

/** The data for the template. Every field is present; one that the message does not have is empty. */
const emptyView = { title: '', text: '', link: '', picture: '' }

type Message = Partial<typeof emptyView>

/**
 * Creates the source for a robot.
 *
 * @param field the field with the kind of message
 * @param contentOf returns the content of a message of this kind; by default the field named after the kind
 */
function robot(
  name: string, shape: Shape, field: string, readers: Readers, contentOf = (payload: JsonObject, kind: string) => object(payload[kind]),
): Source {
  return {
    name,
    takesTail: true,
    shape,
    read({ payload, format }) {
      const kind = line(payload[field])
      const view = { ...emptyView, ...readers.get(kind)?.(contentOf(payload, kind), format) }
      if (Object.values(view).every(each => each === '')) {
        throw new RelayError('bad-request', say('kind-with-content', { field, kinds: [...readers.keys()] }))
      }
      const severity = severityIn(view.title, view.text)
      return { name: 'message', ...severity && { severity }, view }
    },
  }
}

const dingtalkReaders: Readers = new Map<string, ContentReader>([
  ['text', ({ content }, format) => ({ text: readerOf(format)(content) })],
  ['markdown', titled],
  // For DingTalk this text is not Markdown, but many senders write Markdown.
  ['link', ({ title, text, messageUrl, picUrl }) =>
    ({ title: textOf(title), text: fromMarkdown(text), link: wrappedPage(messageUrl), picture: address(picUrl) })],
  ['actionCard', content => {
    const { title = '', text = '' } = titled(content)
    const buttons = objects(content.btns).map(button => labelled(textOf(button.title), wrappedPage(button.actionURL)))
    return { title, text: joinLines(text, ...buttons), link: wrappedPage(content.singleURL) }
  }],
  ['feedCard', ({ links }) => ({ text: joinLines(...objects(links).map(({ title, messageURL }) => joinLines(textOf(title), wrappedPage(messageURL)))) })],
])

/** A title and a text. DingTalk shows the title only in the list of chats, so most senders repeat it in the text. */
function titled(content: JsonObject): Message {
  const title = textOf(content.title)
  const text = fromMarkdown(content.text)
  const at = text.indexOf(title)
  // A title within a word is none.
  const isRepeated = at >= 0 && !/\w/.test(text.charAt(at - 1) + text.charAt(at + title.length))
  return isRepeated ? { text } : { title, text }
}

/** The longest address with a link as a parameter, in UTF-16 units. Percent-encoding triples the length of a character. */
const maxWrapped = 8000

/** The page of a link. DingTalk wraps pages to be opened outside of it in an address of its own, as a parameter. */
function wrappedPage(value: unknown): string {
  const text = typeof value === 'string' && value.length <= maxWrapped ? value : ''
  const query = /^dingtalk:\/\/dingtalkclient\/page\/link\?(.*)$/.exec(text)?.[1]
  return address(query === undefined ? value : parsePairs(Buffer.from(query), 'utf-8')?.get('url'))
}

/** The custom robot of DingTalk. Its `timestamp` and `sign` are ignored: the key authenticates. */
export const dingtalk = robot('dingtalk', errcodeShape, 'msgtype', dingtalkReaders)

const wecomReaders: Readers = new Map<string, ContentReader>([
  ['text', ({ content }, format) => ({ text: readerOf(format)(withWecomMentions(content)) })],
  ['markdown', readMarkdown],
  ['markdown_v2', readMarkdown],
  // JPEG or PNG. The declared type does not matter, because programs recognize either by its bytes.
  ['image', ({ base64 }) => ({ picture: pictureOf('image/png', base64) })],
  ['news', ({ articles }) => {
    const list = objects(articles)
    return {
      text: joinLines(...list.map(({ title, description, url }) => joinLines(textOf(title), textOf(description), address(url)))),
      picture: list.map(({ picurl }) => address(picurl)).find(link => link !== '') ?? '',
    }
  }],
  ['template_card', readTemplateCard],
])

function readMarkdown({ content }: JsonObject): Message {
  return { text: fromRobotMarkdown(withWecomMentions(content)) }
}

/** Replaces mentions of members, which have IDs given by the company: `<@lilei>`. */
function withWecomMentions(content: unknown): string {
  return textOf(content).replace(/<(@[^<>\s]{1,64})>/g, '$1')
}

function readTemplateCard(card: JsonObject): Message {
  const { title, desc } = object(card.main_title)
  const { title: figure, desc: meaning } = object(card.emphasis_content)
  const { title: quoted, quote_text: quote } = object(card.quote_area)
  const below = objects(card.vertical_content_list).map(each => joinLines(textOf(each.title), textOf(each.desc)))
  const rows = objects(card.horizontal_content_list).map(({ keyname, value, url }) =>
    labelled(textOf(keyname), linked(textOf(value), address(url))))
  const { title: caption, desc: story } = object(card.image_text_area)
  // Links to mini programs have no use in other chats.
  const jumps = objects(card.jump_list).map(({ title: name, url }) => address(url) === '' ? '' : labelled(textOf(name), address(url)))
  const above = [
    textOf(desc), labelled(textOf(meaning), textOf(figure)), textOf(caption), textOf(story), textOf(quoted), textOf(quote),
    textOf(card.sub_title_text),
  ]
  return {
    title: textOf(title),
    text: joinLines(...above, ...below, ...rows, ...jumps),
    picture: address(object(card.card_image).url),
    link: address(object(card.card_action).url),
  }
}

/** The group robot of WeCom (企业微信). */
export const wecom = robot('wecom', errcodeShape, 'msgtype', wecomReaders)

/** The most levels of nested elements of a card that are read. */
const maxDepth = 8
/** The most columns of a table in a message. */
const maxColumns = 10
/** The most paragraphs of a post that are read. */
const maxParagraphs = 200

const feishuReaders: Readers = new Map<string, ContentReader>([
  // Only links and mentions have a meaning in this text.
  ['text', ({ text }, format) => ({ text: readerOf(format, withLinks)(withoutMentions(textOf(text))) })],
  ['post', content => readPost(object(content.post ?? content))],
  ['interactive', readCard],
])

/** Reads a post. If it has several languages, the first one is used. */
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
      return fromRobotMarkdown(withoutMentions(said))
    default:
      return withoutMentions(said)
  }
}

function readCard(card: JsonObject): Message {
  const elements = objects(card.elements ?? object(card.body).elements ?? Object.values(object(card.i18n_elements))[0])
  const { title: heading, subtitle, template } = object(card.header)
  const title = textObject(heading)
  const text = joinLines(textObject(subtitle), ...elements.map(element => readElement(element, 0)))
  const mark = title === '' ? '' : unlessMarked(markOfColor(template), title, text)
  return {
    title: mark === '' ? title : `${mark} ${title}`,
    text,
    link: address(object(card.card_link).url),
  }
}

function readElement(element: JsonObject, depth: number): string {
  if (depth > maxDepth) return ''
  const { tag, extra, header } = element
  if (tag === 'table') return readTable(element)
  const below = [element.elements, element.columns, element.actions, [extra]].flatMap(list => objects(list))
  const text = textObject(tag === 'markdown' || tag === 'lark_md' || tag === 'plain_text' ? element : element.text)
  return joinLines(
    textObject(object(header).title),
    labelled(text, address(element.url) || address(object(element.multi_url).url) || linkOfBehaviors(element.behaviors)),
    ...objects(element.fields).map(field => inOneLine(textObject(field.text))),
    ...below.map(inner => readElement(inner, depth + 1)),
  )
}

/** Reads a table, with one line per row. */
function readTable({ columns, rows }: JsonObject): string {
  const fields = objects(columns, maxColumns)
  const names = fields.map(({ display_name: name }) => line(name))
  return joinLines(...[names, ...objects(rows).map(row => fields.map(({ name }) => readCell(row[line(name)])))].map(cells => cells.join(' | ')))
}

/** Reads a cell: a text, a number, or a list of labels. */
function readCell(value: unknown): string {
  return Array.isArray(value) ? objects(value).map(({ text }) => line(text)).join(', ') : fromRobotMarkdown(line(value))
}

/** The link of a button of a card 2.0. */
function linkOfBehaviors(behaviors: unknown): string {
  return address(objects(behaviors).find(({ type }) => type === 'open_url')?.default_url)
}

/** The text of a text object, plain or in Markdown. */
function textObject(value: unknown): string {
  const { tag, content } = object(value)
  return tag === 'plain_text' ? textOf(content) : fromRobotMarkdown(content)
}

function withoutMentions(text: string): string {
  return text.replace(/<at user_id="([^<>"\n]{0,100})">([^<>\n]{0,200})<\/at>/g, (_, id: string, name: string) => mentionOf(id, name))
}

function mentionOf(id: string, name: string): string {
  const word = name || id
  return word === '' ? '' : `@${word}`
}

/**
 * The custom bot of Feishu (Lark). Its `timestamp` and `sign` are ignored: the key authenticates. Some clients send the content as a JSON
 * string inside the JSON, as the API for apps requires.
 */
export const feishu = robot('feishu', feishuShape, 'msg_type', feishuReaders, ({ card, content }, kind) =>
  object(parsed(kind === 'interactive' ? card ?? content : content)))
