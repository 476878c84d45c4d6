import { demand, RelayError } from '../errors'
import { readFields, readJson, type BodyLimits } from '../http/body'
import { byCaller, route, type Route } from '../http/routes'
import { languageNamed, languages, type Language } from '../texts/language'
import { isObject } from '../lib/shape'
import { writeLink } from '../message/link'
import { either, mustBe } from '../lib/words'
import { say } from '../texts/text'
import type { LastPayloads } from './payloads'
import { tidy } from './plain'
import type { Source } from './source'
import { reasonOf, type Templates } from './templates'

/** The parts of the plugin that the routes need. */
export interface TemplateOptions {
  templates: Templates
  payloads: LastPayloads
  limits: BodyLimits
  /** The default language. */
  language: Language
}

/** The headers in which senders name the event, if the payload itself does not. */
const eventHeaders = ['x-github-event', 'x-gitea-event', 'sentry-hook-resource']

/**
 * `GET`, `PUT` and `DELETE /templates/<source>`, `POST /templates/<source>/preview`: the templates for events.
 *
 * @param sourceOf returns the source of a name, or the source for a template of the operator if there is none
 */
export function templateRoutes(options: TemplateOptions, sourceOf: (name: string) => Source): Route[] {
  const { templates, payloads, limits, language } = options
  const find = async (name: string): Promise<{ template: string, source: string }> => {
    const given = sourceOf(name).template?.(language)
    const found = await templates.find(name) ?? (given === undefined ? undefined : { template: given, source: 'built-in' })
    if (!found) throw new RelayError('not-found', say('no-template'))
    return found
  }

  return [
    route('GET', '/templates/:source', ['admin'], async ({ params: { source = '' } }) => ({ data: await find(source) })),
    route('PUT', '/templates/:source', ['admin'], async exchange => {
      const { template } = readFields(await readJson(exchange, limits))
      demand(typeof template === 'string', say('template-text'))
      const { source: name = '' } = exchange.params
      await templates.put(name, template)
      return { data: { template, source: 'own' }, log: say('done-by', { what: say('template-saved', { name: JSON.stringify(name) }), by: byCaller(exchange) }) }
    }),
    route('DELETE', '/templates/:source', ['admin'], async exchange => {
      const { source: name = '' } = exchange.params
      if (!await templates.remove(name)) throw new RelayError('not-found', say('no-own-template'))
      return { data: { name }, log: say('done-by', { what: say('entry-removed', { kind: say('kind-template'), name: JSON.stringify(name) }), by: byCaller(exchange) }) }
    }),
    route('POST', '/templates/:source/preview', ['admin'], async exchange => {
      const { source: name = '' } = exchange.params
      const fields = readFields(await readJson(exchange, limits))
      const { payload, event, lang = language } = fields
      const template = fields.template ?? (await find(name)).template
      demand(typeof template === 'string', say('template-text'))
      demand(payload === undefined || isObject(payload), say('payload-object'))
      demand(event === undefined || typeof event === 'string', say('event-text'))
      const locale = languageNamed(lang)
      demand(locale !== undefined, mustBe('lang', either(...languages)))
      const last = payload ? undefined : payloads.of(name)
      const given = payload ?? last?.payload
      if (!given) throw new RelayError('not-found', say('give-payload'))
      const headers = Object.fromEntries(eventHeaders.map(header => [header, event ?? last?.event]))
      const reading = sourceOf(name).read({ headers, raw: Buffer.alloc(0), query: new URLSearchParams(), payload: given })
      if ('skipped' in reading) return { data: reading }
      try {
        const { text, pictures } = await templates.renderText(template, reading.view, locale)
        return { data: { text: tidy(text), pictures: pictures.map(writeLink) } }
      } catch (error) {
        throw new RelayError('bad-request', say('template-flaw', { reason: reasonOf(error) }))
      }
    }),
  ]
}
