import type { Log } from '../lib/log'
import type { Language } from '../texts/language'
import type { DigestOptions } from '../relay/options'
import { say } from '../texts/text'
import { tidy } from './plain'
import { reasonOf, type Templates } from './templates'

/** The name of the template for digests. */
export const digestTemplate = 'digest'

/** The language in which most of the texts are; `undefined` if none has a letter. */
function languageOf(texts: readonly string[]): Language | undefined {
  const written = texts.filter(text => /\p{L}/u.test(text))
  if (written.length === 0) return
  return written.filter(text => /\p{Script=Han}/u.test(text)).length * 2 >= written.length ? 'zh-CN' : 'en-US'
}

/**
 * Creates the function that writes digests with their template. If the template fails, a digest is the plain list of its lines.
 *
 * @param usual the language of digests without letters, for targets without a language of their own
 */
export function digestWriter(templates: Templates, usual: Language, logger: Pick<Log, 'warn'>): DigestOptions['write'] {
  return async ({ since, lines, ...view }, language = languageOf(lines.map(({ message }) => message)) ?? usual) => {
    try {
      const times = { since: new Date(since).toISOString(), now: new Date().toISOString() }
      const { text } = await templates.render(digestTemplate, { ...view, delay: view.delay ?? '', ...times, lines }, language)
      return tidy(text)
    } catch (error) {
      logger.warn(say('digest-template-failed', { reason: reasonOf(error) }))
      return tidy(lines.map(({ text }) => text).join('\n'))
    }
  }
}
