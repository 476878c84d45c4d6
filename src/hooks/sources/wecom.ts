import { RelayError } from '../../errors'
import type { JsonObject } from '../../message/parse'
import { linkOf, lines, objectOf, objectsOf, pictureOf, textOf } from '../fields'
import { fromMarkdown } from '../markup'
import { errcodeShape } from '../shapes'
import type { Source } from '../source'

/** The group robot of WeCom (企业微信). */
export const wecom: Source = {
  name: 'wecom',
  shape: errcodeShape,
  read({ payload }) {
    const view = readContent(payload)
    if (Object.values(view).every(value => value === undefined)) {
      throw new RelayError('bad-request', 'msgtype must be text, markdown, markdown_v2, image, news or template_card, with its content')
    }
    return { name: 'message', view }
  },
}

function readContent(payload: JsonObject): JsonObject {
  const { msgtype } = payload
  const content = objectOf(payload[typeof msgtype === 'string' ? msgtype : ''])
  switch (msgtype) {
    case 'text':
      return { text: textOf(content.content) }
    case 'markdown':
    case 'markdown_v2': {
      const text = textOf(content.content)
      return { text: text === undefined ? undefined : fromMarkdown(text) }
    }
    case 'image':
      // JPEG or PNG: what is shown tells which by itself.
      return { picture: pictureOf('image/png', content.base64) }
    case 'news': {
      const articles = objectsOf(content.articles)
      return {
        text: lines(...articles.map(({ title, description, url }) => lines(textOf(title), textOf(description), linkOf(url)))),
        picture: articles.map(({ picurl }) => linkOf(picurl)).find(link => link !== undefined),
      }
    }
    case 'template_card':
      return readCard(content)
    default:
      return {}
  }
}

function readCard({ main_title: main, sub_title_text: sub, horizontal_content_list: list, card_action: action }: JsonObject): JsonObject {
  const { title, desc } = objectOf(main)
  const rows = objectsOf(list).map(({ keyname, value }) => [textOf(keyname), textOf(value)].filter(Boolean).join(': '))
  return { title: textOf(title), text: lines(textOf(desc), textOf(sub), ...rows), link: linkOf(objectOf(action).url) }
}
