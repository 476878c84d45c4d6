/** The permissions that a key can have. */
export const scopes = ['send', 'upload', 'hooks', 'onebot', 'mention-all', 'read', 'manage'] as const
/** `admin` cannot be given to a key, because such a key could make itself any other key. */
export type Scope = typeof scopes[number] | 'admin'

/** The scopes of the master key, and of the keys that parts of the plugin borrow. */
export const allScopes: readonly Scope[] = [...scopes, 'admin']

/** The scopes of a key without `allow`. */
export const defaultScopes: readonly Scope[] = ['send', 'upload', 'read']

/** The scopes that a key for some sources can have: none of them lets it send by another path. */
export const sourceScopes: readonly Scope[] = ['hooks', 'mention-all', 'read']
/** The scopes of such a key without `allow`. */
export const defaultSourceScopes: readonly Scope[] = ['hooks', 'read']
