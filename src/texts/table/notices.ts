/** Texts about alerts, incidents, beats and chat commands. */
export const notices = {
} as const
