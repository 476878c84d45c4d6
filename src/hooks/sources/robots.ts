// The robots of DingTalk, WeCom and Feishu: a message says of what kind it is, and has its content in one object.
import { RelayError } from '../../errors'
import { isObject, type JsonObject } from '../../lib/shape'
import { address, inOneLine, joinLines, labelled, line, linked, object, objects, parsed, pictureOf, pieceOf, textOf } from '../fields'
import { fromMarkdown, withLinks } from '../markup'
import { errcodeShape, feishuShape, type Shape } from '../shapes'
import type { Source } from '../source'

/** Read the content of a message, by its kind. */
type Readers = ReadonlyMap<string, (content: JsonObject) => Message>

/** What a template is given. Each field is there; one that the message does not have is empty. */
const nothing = { title: '', text: '', link: '', picture: '' }

type Message = Partial<typeof nothing>

/**
 * Makes a source of a robot.
 *
 * @param field the name of the field that says of what kind a message is
 * @param contentOf finds the content of a message of this kind; in the field of that name unless given
 */
function robot(
  name: string, shape: Shape, field: string, readers: Readers, contentOf = (payload: JsonObject, kind: string) => object(payload[kind]),
): Source {
  return {
    name,
    shape,
    read({ payload }) {
      const kind = line(payload[field])
      const view = { ...nothing, ...readers.get(kind)?.(contentOf(payload, kind)) }
      if (Object.values(view).every(each => each === '')) {
        throw new RelayError('bad-request', `${field} must be one of ${[...readers.keys()].join(', ')}, with its content`)
      }
      return { name: 'message', view }
    },
  }
}

const dingtalkReaders: Readers = new Map<string, (content: JsonObject) => Message>([
  ['text', ({ content }) => ({ text: textOf(content) })],
  ['markdown', titled],
  // Its text is none in Markdown for DingTalk, and for many a sender it is.
  ['link', ({ title, text, messageUrl, picUrl }) =>
    ({ title: textOf(title), text: fromMarkdown(text), link: wrappedPage(messageUrl), picture: address(picUrl) })],
  ['actionCard', content => {
    const { title = '', text = '' } = titled(content)
    const buttons = objects(content.btns).map(button => labelled(textOf(button.title), wrappedPage(button.actionURL)))
    return { title, text: joinLines(text, ...buttons), link: wrappedPage(content.singleURL) }
  }],
  ['feedCard', ({ links }) => ({ text: joinLines(...objects(links).map(({ title, messageURL }) => joinLines(textOf(title), wrappedPage(messageURL)))) })],
])

/** In DingTalk the title is for the list of chats only, and most senders begin the text with it. */
function titled(content: JsonObject): Message {
  const title = textOf(content.title)
  const text = fromMarkdown(content.text)
  return text.includes(title) ? { text } : { title, text }
}

/** The longest link in another one, in UTF-16 units: each of its characters may take three there. */
const maxWrapped = 8000

/** DingTalk has an address of its own for a page that is to open outside of it, with the page as a parameter. */
function wrappedPage(value: unknown): string {
  const text = typeof value === 'string' && value.length <= maxWrapped ? value : ''
  const query = /^dingtalk:\/\/dingtalkclient\/page\/link\?(.*)$/.exec(text)?.[1]
  return address(query === undefined ? value : new URLSearchParams(query).get('url'))
}

/** The custom robot of DingTalk. Its `timestamp` and `sign` are not looked at: the key is the proof. */
export const dingtalk = robot('dingtalk', errcodeShape, 'msgtype', dingtalkReaders)

const wecomReaders: Readers = new Map<string, (content: JsonObject) => Message>([
  ['text', ({ content }) => ({ text: withWecomMentions(content) })],
  ['markdown', readMarkdown],
  ['markdown_v2', readMarkdown],
  // JPEG or PNG: what is shown tells which by itself.
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
  return { text: fromMarkdown(withWecomMentions(content)) }
}

/** A member is mentioned by the ID that the company gave: `<@lilei>`. */
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
  // What leads to a mini program is of no use elsewhere.
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

/** How deep the elements of a card are looked at. */
const maxDepth = 8
/** How many columns of a table are shown. */
const maxColumns = 10
/** How many paragraphs of a post are looked at. */
const maxParagraphs = 200

const feishuReaders: Readers = new Map<string, (content: JsonObject) => Message>([
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
export const feishu = robot('feishu', feishuShape, 'msg_type', feishuReaders, ({ card, content }, kind) =>
  object(parsed(kind === 'interactive' ? card ?? content : content)))
