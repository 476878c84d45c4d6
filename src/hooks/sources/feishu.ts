import { RelayError } from '../../errors'
import { isObject, type JsonObject } from '../../message/parse'
import { inOneLine, lines, linkOf, objectOf, objectsOf, parsed, textOf } from '../fields'
import { fromMarkdown } from '../markup'
import { feishuShape } from '../shapes'
import type { Source } from '../source'

/** How deep the elements of a card are looked at. */
const maxDepth = 8

/** The custom bot of Feishu (Lark). Its `timestamp` and `sign` are not looked at: the key is the proof. */
export const feishu: Source = {
  name: 'feishu',
  shape: feishuShape,
  read({ payload }) {
    const view = readContent(payload)
    if (Object.values(view).every(value => value === undefined)) {
      throw new RelayError('bad-request', 'msg_type must be text, post or interactive, with its content')
    }
    return { name: 'message', view }
  },
}

function readContent(payload: JsonObject): JsonObject {
  // Some clients send it as JSON within the JSON, as the API for apps wants it.
  const content = objectOf(parsed(payload.content))
  switch (payload.msg_type) {
    case 'text':
      return { text: withoutMentions(content.text) }
    case 'post':
      return readPost(objectOf(content.post ?? content))
    case 'interactive':
      return readCard(objectOf(parsed(payload.card ?? payload.content)))
    default:
      return {}
  }
}

/** A post holds its text in one language or several, of which the first is taken. */
function readPost(post: JsonObject): JsonObject {
  const { title, content } = Object.values(post).find(isObject) ?? post
  const paragraphs = Array.isArray(content) ? content.slice(0, 200) : []
  return { title: textOf(title), text: lines(...paragraphs.map(paragraph => objectsOf(paragraph).map(readInline).join(''))) }
}

function readInline({ tag, text, href, user_name: name, user_id: id }: JsonObject): string {
  const said = typeof text === 'string' ? text : ''
  if (tag === 'at') return `@${textOf(name) ?? textOf(id) ?? ''}`
  const link = linkOf(href)
  return tag === 'a' && link !== undefined ? (said === '' || said === link ? link : `${said} (${link})`) : said
}

function readCard(card: JsonObject): JsonObject {
  const elements = objectsOf(card.elements ?? objectOf(card.body).elements ?? Object.values(objectOf(card.i18n_elements))[0])
  return {
    title: said(objectOf(card.header).title),
    text: lines(...elements.map(element => readElement(element, 0))),
    link: linkOf(objectOf(card.card_link).url),
  }
}

function readElement(element: JsonObject, depth: number): string | undefined {
  if (depth > maxDepth) return
  const below = [element.elements, element.columns, element.actions].flatMap(objectsOf)
  const text = element.tag === 'markdown' || element.tag === 'lark_md' || element.tag === 'plain_text' ? said(element) : said(element.text)
  const link = linkOf(element.url ?? objectOf(element.multi_url).url)
  return lines(
    [text, link].filter(Boolean).join(': '),
    ...objectsOf(element.fields).map(field => inOneLine(said(field.text))),
    ...below.map(inner => readElement(inner, depth + 1)),
  )
}

/** An object with text, plain or in Markdown. */
function said(value: unknown): string | undefined {
  const { tag, content } = objectOf(value)
  const text = textOf(content)
  return text === undefined || tag === 'plain_text' ? text : fromMarkdown(text)
}

function withoutMentions(value: unknown): string | undefined {
  return textOf(value)?.replace(/<at [^<>\n]{0,200}>([^<>\n]{0,200})<\/at>/g, '@$1')
}
