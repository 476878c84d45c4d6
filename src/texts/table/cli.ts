/** Texts about the command relay. */
export const cli = {
} as const
