import type { JsonObject } from '../../message/parse'
import { address, joinLines, labelled, objects, textOf } from '../fields'
import { fromMarkdown } from '../markup'
import { errcodeShape } from '../shapes'
import { robot, type Message, type Readers } from './robot'

const readers: Readers = new Map<string, (content: JsonObject) => Message>([
  ['text', ({ content }) => ({ text: textOf(content) })],
  ['markdown', titled],
  ['link', ({ title, text, messageUrl, picUrl }) =>
    ({ title: textOf(title), text: textOf(text), link: address(messageUrl), picture: address(picUrl) })],
  ['actionCard', content => {
    const { title = '', text = '' } = titled(content)
    const buttons = objects(content.btns).map(button => labelled(textOf(button.title), address(button.actionURL)))
    return { title, text: joinLines(text, ...buttons), link: address(content.singleURL) }
  }],
  ['feedCard', ({ links }) => ({ text: joinLines(...objects(links).map(({ title, messageURL }) => joinLines(textOf(title), address(messageURL)))) })],
])

/** In DingTalk the title is for the list of chats only, and most senders begin the text with it. */
function titled(content: JsonObject): Message {
  const title = textOf(content.title)
  const text = fromMarkdown(content.text)
  return text.includes(title) ? { text } : { title, text }
}

/** The custom robot of DingTalk. Its `timestamp` and `sign` are not looked at: the key is the proof. */
export const dingtalk = robot('dingtalk', errcodeShape, 'msgtype', readers)
