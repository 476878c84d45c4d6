import type { Target } from '../../message/model'

/** Where messages go: a chat, or a topic (话题) in it. */
export interface Place {
  /** The kind of the ID, as the API wants to know it. */
  type: 'chat_id' | 'open_id' | 'union_id' | 'email' | 'user_id'
  id: string
  /** The first message of the topic. */
  root: string | undefined
}

const placePattern = /^([^\s:/\\]{1,200})(?::(om_[\w-]{1,100}))?$/

/**
 * Reads a target: `oc_…` for a group; for a user `ou_…`, `on_…`, an e-mail address or the ID in the organisation; behind it
 * `:om_…` for a topic, which is named by its first message
 * (https://open.feishu.cn/document/home/user-identity-introduction/introduction).
 *
 * @returns `undefined` for what cannot be on this platform
 */
export function readPlace({ kind, id: text }: Target): Place | undefined {
  const [, id, root] = placePattern.exec(text) ?? []
  if (id === undefined) return
  const type = typeOf(id)
  return (type === 'chat_id') === (kind === 'group') ? { type, id, root } : undefined
}

function typeOf(id: string): Place['type'] {
  if (id.startsWith('oc_')) return 'chat_id'
  if (id.startsWith('ou_')) return 'open_id'
  if (id.startsWith('on_')) return 'union_id'
  return id.includes('@') ? 'email' : 'user_id'
}

/** Whether this is the ID of a message: others would lead a path of the API elsewhere. */
export function isMessageId(id: string): boolean {
  return /^om_[\w-]{1,100}$/.test(id)
}
