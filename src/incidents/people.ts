/** Somebody who can be called by `@`. */
export interface Called {
  /** The name of the person in the settings; absent for `all`. */
  readonly person?: string
  /** The account in that chat, `null` for everybody; absent for somebody without one there, who is written by name. */
  readonly userId?: string | null
  /** The name for texts. */
  readonly name: string
}

/** The people and rotas of the settings, and those that are made while the relay runs. */
export interface Directory {
  /** Who is called by these words (people, rotas, `all`), now, in a chat of this platform. Words that mean nobody any more are left out. */
  whom(words: readonly string[], platform: string, now: number): readonly Called[]
  /** The person with an account, such as `onebot` and `10001`. */
  findBy(platform: string, account: string): { readonly person: string, readonly name: string } | undefined
  /** Whether one of these words means this person, now. */
  includes(words: readonly string[], person: string, now: number): boolean
}
