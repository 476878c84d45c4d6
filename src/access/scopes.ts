/** What a key may be allowed to do. */
export const scopes = ['send', 'upload', 'hooks', 'onebot', 'mention-all', 'read', 'manage'] as const
export type Scope = typeof scopes[number]

/** What a key may do that says nothing of it. */
export const defaultScopes: readonly Scope[] = ['send', 'upload', 'read']

/** What whoever has a scope may do, in words that follow "this key may not". */
export const deeds: Readonly<Record<Scope, string>> = {
  'send': 'send messages',
  'upload': 'upload files',
  'hooks': 'use /hooks',
  'onebot': 'use /onebot',
  'mention-all': 'mention everybody',
  'read': 'read deliveries and status',
  'manage': 'manage deliveries and queues',
}
