import { RelayError } from '../../errors'
import type { JsonObject } from '../../message/parse'
import { lines, linkOf, objectOf, objectsOf, textOf } from '../fields'
import { fromMarkdown } from '../markup'
import { errcodeShape } from '../shapes'
import type { Source } from '../source'

/** The custom robot of DingTalk. Its `timestamp` and `sign` are not looked at: the key is the proof. */
export const dingtalk: Source = {
  name: 'dingtalk',
  shape: errcodeShape,
  read({ payload }) {
    const view = readContent(payload)
    if (Object.values(view).every(value => value === undefined)) {
      throw new RelayError('bad-request', 'msgtype must be text, markdown, link, actionCard or feedCard, with its content')
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
      return titled(content.title, content.text)
    case 'link':
      return { title: textOf(content.title), text: textOf(content.text), link: linkOf(content.messageUrl), picture: linkOf(content.picUrl) }
    case 'actionCard': {
      const buttons = objectsOf(content.btns).map(({ title, actionURL }) => [textOf(title), linkOf(actionURL)].filter(Boolean).join(': '))
      const { title, text } = titled(content.title, content.text)
      return { title, text: lines(text, ...buttons), link: linkOf(content.singleURL) }
    }
    case 'feedCard':
      return { text: lines(...objectsOf(content.links).map(({ title, messageURL }) => lines(textOf(title), linkOf(messageURL)))) }
    default:
      return {}
  }
}

/** In DingTalk the title is for the list of chats only, and most senders begin the text with it. */
function titled(title: unknown, markdown: unknown): { title?: string | undefined, text?: string | undefined } {
  const source = textOf(markdown)
  const text = source === undefined ? undefined : fromMarkdown(source)
  const heading = textOf(title)
  return text !== undefined && heading !== undefined && text.includes(heading) ? { text } : { title: heading, text }
}
