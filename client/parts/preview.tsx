import type { VNode } from 'vue'
import { readHold } from '../api'
import { listOf, textOf, type Fields } from '../fields'
import { describeHold, texts } from '../texts'
import { notice } from './basics'
import { describeItem } from './items'
import { describeTarget } from './target'

/** The result of a dry run: per target, the chat messages that would be sent, or why there are none. */
export function viewPreview(data: Fields): VNode {
  const several = listOf(data.deliveries)
  return <div>{(several.length > 0 ? several : [data]).map(viewOne)}</div>
}

function viewOne({ target, bot, msg, messages, wrong, held }: Fields): VNode {
  const t = texts.value.send
  const hold = readHold(held)
  const name = describeTarget(textOf(target), textOf(bot))
  return (
    <div>
      <p>{textOf(bot) === '' ? t.toNobody(name) : t.to(name, textOf(bot))}</p>
      {textOf(msg) && notice('bad', textOf(msg))}
      {listOf(wrong).map(item => notice('bad', textOf(item.msg)))}
      {hold && notice('doubt', describeHold(hold))}
      {Array.isArray(messages) && viewMessages(messages)}
    </div>
  )
}

function viewMessages(messages: readonly unknown[]): VNode {
  return (
    <ol class="relay-chat">
      {messages.map((message, at) => (
        <li key={at} class="relay-bubble" aria-label={messages.length > 1 ? texts.value.send.message(at + 1) : undefined}>
          {listOf(message).map(item => <p class="relay-said">{item.type === 'text' ? textOf(item.msg) : `[${describeItem(item)}]`}</p>)}
        </li>
      ))}
    </ol>
  )
}
