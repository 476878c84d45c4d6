import type { JsonObject } from '../../message/parse'
import { address, joinLines, labelled, objects, textOf } from '../fields'
import { fromMarkdown } from '../markup'
import { errcodeShape } from '../shapes'
import { robot, type Message, type Readers } from './robot'

const readers: Readers = new Map<string, (content: JsonObject) => Message>([
  ['text', ({ content }) => ({ text: textOf(content) })],
  ['markdown', titled],
  // Its text is none in Markdown for DingTalk, and for many a sender it is.
  ['link', ({ title, text, messageUrl, picUrl }) =>
    ({ title: textOf(title), text: fromMarkdown(text), link: pageOf(messageUrl), picture: address(picUrl) })],
  ['actionCard', content => {
    const { title = '', text = '' } = titled(content)
    const buttons = objects(content.btns).map(button => labelled(textOf(button.title), pageOf(button.actionURL)))
    return { title, text: joinLines(text, ...buttons), link: pageOf(content.singleURL) }
  }],
  ['feedCard', ({ links }) => ({ text: joinLines(...objects(links).map(({ title, messageURL }) => joinLines(textOf(title), pageOf(messageURL)))) })],
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
function pageOf(value: unknown): string {
  const text = typeof value === 'string' && value.length <= maxWrapped ? value : ''
  const query = /^dingtalk:\/\/dingtalkclient\/page\/link\?(.*)$/.exec(text)?.[1]
  return address(query === undefined ? value : new URLSearchParams(query).get('url'))
}

/** The custom robot of DingTalk. Its `timestamp` and `sign` are not looked at: the key is the proof. */
export const dingtalk = robot('dingtalk', errcodeShape, 'msgtype', readers)
