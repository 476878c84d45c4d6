/** Texts about the sources of /hooks. */
export const hooks = {
} as const
