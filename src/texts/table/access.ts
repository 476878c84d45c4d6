/** Texts about keys, targets and settings. */
export const access = {
} as const
