/** What a key may be allowed to do. */
export const scopes = ['send', 'upload', 'hooks', 'onebot', 'mention-all', 'read', 'manage'] as const
/** Nobody can allow a key `admin`: it could make itself any other key. */
export type Scope = typeof scopes[number] | 'admin'

/** The scopes of the master key, and of what is lent to a part of the plugin. */
export const allScopes: readonly Scope[] = [...scopes, 'admin']

/** The scopes of a key that names none. */
export const defaultScopes: readonly Scope[] = ['send', 'upload', 'read']
