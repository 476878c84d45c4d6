import type { Logger } from 'koishi'
import { printable } from '../lib/log'
import type { Language } from '../lib/language'
import type { DigestOptions } from '../relay/relay'
import { tidy } from './plain'
import { reasonOf, type Templates } from './templates'

/** The name of the template for digests. */
export const digestTemplate = 'digest'

/**
 * Creates the function that writes digests with their template. If the template fails, a digest is the plain list of its lines.
 *
 * @param usual the language of digests for targets without one of their own
 */
export function digestWriter(templates: Templates, usual: Language, logger: Logger): DigestOptions['write'] {
  return async ({ since, lines, ...view }, language = usual) => {
    try {
      const { text } = await templates.render(digestTemplate, { ...view, delay: view.delay ?? '', since: new Date(since).toISOString(), lines }, language)
      return tidy(text)
    } catch (error) {
      logger.warn('%s', printable(`the template of digests failed, so a plain list is sent: ${reasonOf(error)}`))
      return tidy(lines.map(({ text }) => text).join('\n'))
    }
  }
}
