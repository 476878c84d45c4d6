import type { VNode } from 'vue'
import { isFields, textOf, type Fields } from '../fields'
import { texts } from '../texts'

/** Chat messages as a dry run shows them. */
export function viewMessages(messages: unknown): VNode {
  const list: unknown[] = Array.isArray(messages) ? messages : []
  return (
    <ol class="relay-timeline">
      {list.map((message, at) => (
        <li key={at}>
          <strong>{texts.value.send.message(at + 1)}</strong>
          {(Array.isArray(message) ? message.filter(isFields) : []).map(viewItem)}
        </li>
      ))}
    </ol>
  )
}

function viewItem({ type, msg, name, size, user_id: user }: Fields): VNode {
  if (type === 'text') return <p class="relay-said">{textOf(msg)}</p>
  const kinds: Partial<Record<string, string>> = texts.value.record.kinds
  return <p class="relay-said">{[kinds[textOf(type)] ?? textOf(type), textOf(name), textOf(user), size === undefined ? '' : `${textOf(size)} B`].filter(Boolean).join(' ')}</p>
}
