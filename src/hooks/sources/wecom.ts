import type { JsonObject } from '../../message/parse'
import { address, joinLines, labelled, linked, object, objects, pictureOf, textOf } from '../fields'
import { fromMarkdown } from '../markup'
import { errcodeShape } from '../shapes'
import { robot, type Message, type Readers } from './robot'

const readers: Readers = new Map<string, (content: JsonObject) => Message>([
  ['text', ({ content }) => ({ text: withMentions(content) })],
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
  ['template_card', readCard],
])

function readMarkdown({ content }: JsonObject): Message {
  return { text: fromMarkdown(withMentions(content)) }
}

/** A member is mentioned by the ID that the company gave: `<@lilei>`. */
function withMentions(content: unknown): string {
  return textOf(content).replace(/<(@[^<>\s]{1,64})>/g, '$1')
}

function readCard(card: JsonObject): Message {
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
export const wecom = robot('wecom', errcodeShape, 'msgtype', readers)
