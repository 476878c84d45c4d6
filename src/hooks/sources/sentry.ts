import { RelayError } from '../../errors'
import { isObject, type JsonObject } from '../../lib/shape'
import { keyIn, signedIn, skip, type EventKey, type HookEvent, type Reading, type Source } from '../source'
import { address, demandObject, firstOf, header, line, object } from '../fields'
import { excerpt } from '../markup'

/** What a template is given. Each field is there; one without a meaning for the event is empty. */
const nothing = {
  event: '',
  /** `created`, `resolved`, `unresolved`; of a metric alert `critical`, `warning` or `resolved`. */
  action: '',
  project: '',
  title: '',
  /** Where it happened, or of a metric alert what was measured. */
  text: '',
  level: '',
  environment: '',
  release: '',
  /** The alert rule behind the event. */
  rule: '',
  /** Such as `SHOP-9`. */
  id: '',
  /** How often it happened, and to how many users. */
  times: '',
  users: '',
  /** Who resolved it. */
  who: '',
  link: '',
}

/** How many tags of an event are looked at. */
const maxTags = 100
/** How many rules of an event are named. */
const maxRules = 3

type Told = Partial<typeof nothing> & {
  status?: string
  thread?: string
}

const idOf = keyIn('request-id')

export const sentry: Source = {
  name: 'sentry',

  read({ headers, payload }): Reading {
    const event = line(header(headers, 'sentry-hook-resource'))
    // Its older integration has no such header, but a preview gives one.
    if (event === '' || 'triggering_rules' in payload) return readLegacy(payload)
    const reader = readers.get(event)
    if (!reader) return { skipped: `${event} events produce no message` }
    const action = line(payload.action)
    const { status, thread, ...told } = reader(demandObject(payload, 'data', 'Sentry'), action, payload) ?? {}
    if (told.title === undefined) return skip('action', action)
    return { name: event, ...status && { status }, ...thread && { thread }, view: { ...nothing, event, action, ...told } }
  },

  keyOf: request => idOf(request) ?? legacyKeyOf(request.payload),
  ...signedIn('sentry-hook-signature'),
}

/** @returns `undefined` where the event makes no message */
type Reader = (data: JsonObject, action: string, payload: JsonObject) => Told | undefined

/** The events that make messages. All others are skipped. */
const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['event_alert', data => ({ ...eventOf(demandObject(data, 'event', 'Sentry')), rule: line(data.triggered_rule), status: 'firing' })],
  ['error', data => eventOf(demandObject(data, 'error', 'Sentry'))],
  ['issue', readIssue],
  ['metric_alert', (data, action) => {
    const { alert_rule: rule, projects, title, id } = demandObject(data, 'metric_alert', 'Sentry')
    const { description_text: text } = data
    const fields = object(rule)
    return {
      // It begins with what the action says already.
      title: firstOf(fields.name, data.description_title, title),
      // Its lines are parted by a backslash and an n.
      text: typeof text === 'string' ? excerpt(text.slice(0, 2000).replaceAll('\\n', '\n')) : '',
      project: firstOf(...[projects].flat().slice(0, 1)),
      environment: line(fields.environment, 40),
      status: action === 'resolved' ? 'resolved' : 'firing',
      link: address(data.web_url),
      thread: threadOf('metric_alert', id),
    }
  }],
])

/**
 * Reads what the older integration "WebHooks" of a project posts, which has no header of its own: the event that an alert rule has found,
 * as in `src/sentry/plugins/sentry_webhooks/plugin.py` of getsentry/sentry.
 *
 * @throws RelayError `bad-request` where it is something else
 */
function readLegacy(payload: JsonObject): HookEvent {
  const { id, project, project_name: name, culprit, level, message, url, triggering_rules: rules, event } = payload
  if (!isObject(event) || address(url) === '') {
    throw new RelayError('bad-request', 'this is not a Sentry event: the header Sentry-Hook-Resource is missing')
  }
  const title = line(event.title, 200) || line(message, 200)
  const { thread, ...told } = eventOf({ ...event, title, culprit, level, web_url: url, issue_id: id })
  return {
    name: 'event_alert',
    status: 'firing',
    ...thread && { thread },
    view: { ...nothing, event: 'event_alert', action: 'triggered', ...told, project: firstOf(name, project), rule: rulesOf(rules).join(', ') },
  }
}

/** The same event is posted once for each rule. */
function legacyKeyOf({ event, triggering_rules: rules }: JsonObject): EventKey | undefined {
  const id = line(object(event).event_id)
  return id === '' ? undefined : { text: [id, ...rulesOf(rules)].join(' ') }
}

function rulesOf(value: unknown): string[] {
  return Array.isArray(value) ? value.slice(0, maxRules).map(rule => line(rule)) : []
}

function readIssue(data: JsonObject, action: string, payload: JsonObject): Told | undefined {
  if (!['created', 'resolved', 'unresolved'].includes(action)) return undefined
  const issue = demandObject(data, 'issue', 'Sentry')
  const { type, name } = object(payload.actor)
  return {
    title: line(issue.title, 200),
    text: line(issue.culprit),
    project: firstOf(object(issue.project).name, object(issue.project).slug),
    level: line(issue.level, 20),
    id: line(issue.shortId, 60),
    times: line(issue.count, 15),
    users: line(issue.userCount, 15),
    who: type === 'user' ? line(name, 40) : '',
    status: action === 'resolved' ? 'resolved' : 'firing',
    link: address(issue.web_url) || address(issue.permalink),
    thread: threadOf('issue', issue.id),
  }
}

/** One error, with where it happened. */
function eventOf(event: JsonObject): Told {
  return {
    title: firstOf(line(event.title, 200), event.message),
    text: firstOf(event.culprit, event.location),
    // The name of the project stands in the address for programs only.
    project: /\/projects\/[^/]{1,100}\/([\w-]{1,100})\//.exec(address(event.url))?.[1] ?? '',
    level: line(event.level, 20),
    environment: line(event.environment ?? tagOf(event.tags, 'environment'), 40),
    release: line(event.release, 60),
    link: address(event.web_url),
    thread: threadOf('issue', event.issue_id),
  }
}

function threadOf(what: string, id: unknown): string {
  const which = line(id, 60)
  return which && `${what} ${which}`
}

/** The value of a tag, of which a list holds names and values. */
function tagOf(tags: unknown, name: string): unknown {
  const pair: unknown = Array.isArray(tags) ? tags.slice(0, maxTags).find(each => Array.isArray(each) && each[0] === name) : undefined
  return Array.isArray(pair) ? pair[1] : undefined
}
