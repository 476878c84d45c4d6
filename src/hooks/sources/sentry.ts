import { RelayError } from '../../errors'
import { isObject, type JsonObject } from '../../lib/shape'
import { keyIn, signedIn, skip, type EventKey, type HookEvent, type Reading, type Source } from '../source'
import { address, demandObject, firstOf, header, line, object } from '../fields'
import { excerpt } from '../markup'
import { severityOfWord } from '../marks'
import { say } from '../../texts/text'

/** The data for the template. Every field is present; one that does not apply to the event is empty. */
const emptyView = {
  event: '',
  /** `created`, `resolved` or `unresolved`; for a metric alert `critical`, `warning` or `resolved`. */
  action: '',
  project: '',
  title: '',
  /** The place of an error in the code, or the measurement of a metric alert. */
  text: '',
  level: '',
  environment: '',
  release: '',
  /** The alert rule behind the event. */
  rule: '',
  /** The short ID of an issue, such as `SHOP-9`. */
  id: '',
  /** The number of events of an issue, and of affected users. */
  times: '',
  users: '',
  /** The user who changed the issue. */
  who: '',
  link: '',
}

/** The most tags of an event that are read. */
const maxTags = 100
/** The most rules of an event in a message. */
const maxRules = 3

type SentryEvent = Partial<typeof emptyView> & {
  status?: string
  thread?: string
}

const idOf = keyIn('request-id')

export const sentry: Source = {
  name: 'sentry',

  read({ headers, payload }): Reading {
    const event = line(header(headers, 'sentry-hook-resource'))
    // The older integration has no such header, but a preview of a template adds one.
    if (event === '' || 'triggering_rules' in payload) return readLegacy(payload)
    const reader = readers.get(event)
    if (!reader) return { skipped: say('skip-kind', { kind: event }) }
    const action = line(payload.action)
    const { status, thread, ...fields } = reader(demandObject(payload, 'data', 'Sentry'), action, payload) ?? {}
    if (fields.title === undefined) return skip('action', action)
    const severity = status === 'resolved' ? undefined : severityOfWord(fields.level) ?? severityOfWord(action)
    return {
      name: event, ...status && { status }, ...thread && { thread }, ...severity && { severity },
      view: { ...emptyView, event, action, ...fields },
    }
  },

  keyOf: request => idOf(request) ?? legacyKeyOf(request.payload),
  ...signedIn('sentry-hook-signature'),
}

/** @returns `undefined` if the event makes no message */
type Reader = (data: JsonObject, action: string, payload: JsonObject) => SentryEvent | undefined

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
      // The rule's name first: the titles begin by repeating the action.
      title: firstOf(fields.name, data.description_title, title),
      // Lines are separated by a literal backslash and an n.
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
 * Reads a post of the older integration "WebHooks" of a project, which has no header of its own. It has the event that triggered an alert
 * rule: `src/sentry/plugins/sentry_webhooks/plugin.py` of getsentry/sentry.
 *
 * @throws RelayError `bad-request` for any other payload
 */
function readLegacy(payload: JsonObject): HookEvent {
  const { id, project, project_name: name, culprit, level, message, url, triggering_rules: rules, event } = payload
  if (!isObject(event) || address(url) === '') {
    throw new RelayError('bad-request', say('no-event-header', { sender: 'Sentry', header: 'Sentry-Hook-Resource' }))
  }
  const title = line(event.title, 200) || line(message, 200)
  const severity = severityOfWord(level)
  const { thread, ...fields } = eventOf({ ...event, title, culprit, level, web_url: url, issue_id: id })
  return {
    name: 'event_alert',
    status: 'firing',
    ...thread && { thread },
    ...severity && { severity },
    view: { ...emptyView, event: 'event_alert', action: 'triggered', ...fields, project: firstOf(name, project), rule: rulesOf(rules).join(', ') },
  }
}

/** The key of an event of the older integration, which posts an event once per rule. */
function legacyKeyOf({ event, triggering_rules: rules }: JsonObject): EventKey | undefined {
  const id = line(object(event).event_id)
  return id === '' ? undefined : { text: [id, ...rulesOf(rules)].join(' ') }
}

function rulesOf(value: unknown): string[] {
  return Array.isArray(value) ? value.slice(0, maxRules).map(rule => line(rule)) : []
}

function readIssue(data: JsonObject, action: string, payload: JsonObject): SentryEvent | undefined {
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

/** Reads an error and its place in the code. */
function eventOf(event: JsonObject): SentryEvent {
  return {
    title: firstOf(line(event.title, 200), event.message),
    text: firstOf(event.culprit, event.location),
    // Only the API address contains the name of the project.
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

/** The value of a tag in a list of pairs of names and values. */
function tagOf(tags: unknown, name: string): unknown {
  const pair: unknown = Array.isArray(tags) ? tags.slice(0, maxTags).find(each => Array.isArray(each) && each[0] === name) : undefined
  return Array.isArray(pair) ? pair[1] : undefined
}
