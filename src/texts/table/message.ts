/** Texts about messages, targets and names. */
export const message = {
} as const
