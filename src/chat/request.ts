import type { Session } from 'koishi'
import type { Language } from '../texts/language'
import type { Text } from '../texts/text'
import type { Source } from '../platform/incoming'

/** A command, and the operator who asks. */
export interface Request {
  session: Session
  source: Source
  /** The account of the sender, as `platform:ID`. */
  account: string
  language: Language
  /** Writes a text of `src/locales/chat.*.yml`, in that language, as markup. Values are always text, never markup. */
  say: (path: string, values?: Readonly<Record<string, string | number | Text>>) => string
}
