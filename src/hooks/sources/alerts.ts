// Alertmanager and Grafana, which both send groups of alerts.
import { RelayError } from '../../errors'
import { hash, isHmac } from '../../lib/crypto'
import type { JsonObject } from '../../lib/shape'
import { isRecent } from '../../lib/webhook-signature'
import { severities, type Severity } from '../../message/model'
import { address, count, cut, date, header, joinLines, labelled, line, object, objects, textOf } from '../fields'
import { excerpt, fromRobotMarkdown } from '../markup'
import { severityOfWord } from '../marks'
import type { EventKey, HookEvent, HookRequest, Source } from '../source'
import { say } from '../../texts/text'

/** The most alerts that a message lists. */
const maxAlerts = 8
/** The most alerts that count for the key of a notification. */
const maxMarks = 5000
/** The longest link in a message, in UTF-16 units. */
const maxPage = 500
/** The longest text of a contact point, in UTF-16 units. */
const maxMessage = 4_000
/** The most labels that a message shows of an alert. */
const maxLabels = 8
/** The lifetime of a key, in milliseconds: both systems retry within seconds, and repeat alerts on purpose after hours. */
const lifetime = 5 * 60_000

/** The most values, and the most further links, of a single alert. */
const maxNotes = 6

/** Labels that messages do not show: the name has a place of its own, and the others are internal. */
const hiddenLabels = /^(?:alertname|grafana_folder|prometheus|__.*__)$/

export const alertmanager: Source = {
  name: 'alertmanager',
  read: ({ payload }) => readAlerts(payload, 'Alertmanager', ['generatorURL']),
  keyOf,
}

export const grafana: Source = {
  name: 'grafana',
  read({ payload }) {
    const event = readAlerts(payload, 'Grafana', ['panelURL', 'dashboardURL', 'generatorURL'])
    const { title, message } = customTexts(payload)
    return { ...event, ...title !== '' && { line: withMark(event.view.status, title) }, view: { ...event.view, title, message } }
  },
  keyOf,
  isSigned: ({ headers }) => header(headers, 'x-grafana-alerting-signature') !== '',
  verify({ headers, raw }, secret) {
    const signature = header(headers, 'x-grafana-alerting-signature')
    const timestamp = header(headers, 'x-grafana-alerting-timestamp')
    if (timestamp === '') return isHmac(signature, secret, raw)
    return isRecent(timestamp) && isHmac(signature, secret, `${timestamp}:`, raw)
  },
}

/**
 * The custom title and message of a contact point of Grafana. Each is empty if it is Grafana's default, made by `default.title` or
 * `default.message`: templates/default_template.go of grafana/alerting.
 */
function customTexts({ title, message }: JsonObject): Record<'title' | 'message', string> {
  const heading = line(title)
  const text = textOf(message)
  return {
    title: /^\[(?:FIRING:\d|RESOLVED\b)/.test(heading) ? '' : heading,
    message: /^\*\*(?:Firing|Resolved)\*\*/.test(text) ? '' : cut(fromRobotMarkdown(text), maxMessage),
  }
}

/**
 * Reads a group of alerts.
 *
 * @param pages the fields of an alert that may contain a link, the best first
 * @throws RelayError `bad-request` if the payload has no alerts
 */
function readAlerts(payload: JsonObject, sender: string, pages: readonly string[]): HookEvent {
  if (!Array.isArray(payload.alerts)) {
    throw new RelayError('bad-request', say('no-alerts', { sender }))
  }
  const all = objects(payload.alerts, Infinity)
  const firing = all.filter(alert => alert.status !== 'resolved')
  const resolved = all.filter(alert => alert.status === 'resolved')
  const status = payload.status === 'resolved' ? 'resolved' : 'firing'
  const named = [...firing, ...resolved].slice(0, maxAlerts)
  const common = object(payload.commonLabels)
  const [first] = named
  const name = line(common.alertname) || (all.length === 1 ? nameOf(first) : '')
  const total = all.length + count(payload.truncatedAlerts)
  // Every field is present; one without a value is empty or zero.
  const view = {
    status,
    // The name and the labels that all alerts share.
    name,
    labels: labelsOf(common),
    severity: line(common.severity, 30),
    firing: firing.length,
    resolved: resolved.length,
    // Including alerts that the sender left out.
    total,
    alerts: named.map(alert => viewOf(alert, common, name, total === 1 ? 2 : 1)),
    more: total - named.length,
    // The values and the further links of a single alert.
    notes: total === 1 ? notesOf(first) : '',
    // The custom texts of Grafana.
    title: '',
    message: '',
    link: [...all.length === 1 ? pages.map(page => first?.[page]) : [], payload.externalURL].map(pageOf).find(page => page !== '') ?? '',
  }
  const { groupKey } = payload
  const starts = firing.map(alert => date(alert.startsAt)).sort()
  const summaries = new Set(named.map(alert => labelled(name === '' ? nameOf(alert) : '', textsOf(alert)[0] ?? '')).filter(text => text !== ''))
  return {
    name: 'alert', status, ...status === 'firing' && { severity: worstOf(firing), begunAt: starts.at(-1) ?? '' },
    ...typeof groupKey === 'string' && groupKey !== '' && { thread: hash(groupKey) },
    line: withMark(status, labelled(name, [...summaries].join('; '))), view,
  }
}

/** The worst label `severity` of alerts that fire; a `warning` unless it is a known word. */
function worstOf(alerts: readonly JsonObject[]): Severity {
  const found = new Set(alerts.map(({ labels }) => severityOfWord(object(labels).severity) ?? 'warning'))
  return severities.find(severity => severity !== 'ok' && found.has(severity)) ?? 'warning'
}

function withMark(status: unknown, text: string): string {
  return `${status === 'resolved' ? '✅' : '🔥'} ${text}`
}

/** A link short enough for a message: links to graphs contain the whole query. */
function pageOf(value: unknown): string {
  return address(value, maxPage)
}

/**
 * The status and times of an alert, and a text with its annotations and with the name and labels that its group does not share.
 *
 * @param most how many annotations to include
 */
function viewOf(alert: JsonObject, common: JsonObject, name: string, most: number): JsonObject {
  const isOver = alert.status === 'resolved'
  const which = [name === '' ? nameOf(alert) : '', labelsOf(object(alert.labels), common)].filter(each => each !== '').join(' ')
  const since = date(alert.startsAt)
  return {
    status: isOver ? 'resolved' : 'firing',
    text: labelled(which, textsOf(alert).slice(0, most).join('\n')),
    since,
    until: isOver && since !== '' ? date(alert.endsAt) : '',
  }
}

/** The values that Grafana has measured, and the links in annotations, such as `runbook_url`. */
function notesOf(alert: JsonObject = {}): string {
  const values = Object.entries(object(alert.values)).slice(0, maxNotes)
    .flatMap(([name, value]) => typeof value === 'number' ? `${line(name, 40)}=${Number(value.toPrecision(6))}` : [])
  const links = Object.entries({ ...object(alert.annotations), image: alert.imageURL }).map(([name, value]) => [line(name, 40).replace(/(?<=.)[_-]?url$/i, ''), pageOf(value)] as const)
  return joinLines(values.join(', '), ...links.filter(([, page]) => page !== '').slice(0, maxNotes).map(([name, page]) => labelled(name, page)))
}

/** The annotations that say what has happened, the shortest first. */
function textsOf({ annotations }: JsonObject): string[] {
  // In `Error` Grafana says why a rule could not be evaluated (DatasourceError). The summary is then still that of the alert itself:
  // pkg/services/ngalert/state/state.go of grafana/grafana.
  const { Error: failure, summary, message, description } = object(annotations)
  const texts = (failure ? [failure] : [summary, message, description]).map(text => excerpt(text, 2, 200)).filter(text => text !== '')
  return [...new Set(texts)]
}

function nameOf(alert: JsonObject | undefined): string {
  return line(object(alert?.labels).alertname)
}

/** The labels of an alert that its group does not share. The severity is first, because senders sort by name and the list is cut. */
function labelsOf(labels: JsonObject, common: JsonObject = {}): string {
  const shown = Object.entries({ ...'severity' in labels && { severity: '' }, ...labels })
    .filter(([name]) => !hiddenLabels.test(name) && !Object.hasOwn(common, name))
  return shown.slice(0, maxLabels).map(([name, value]) => `${line(name, 40)}=${line(value, 60)}`).join(', ')
}

/**
 * The key of a notification: its group, its status, and its alerts with theirs. Without the status of each alert, a firing group could not
 * report that one of its alerts is resolved.
 */
function keyOf({ payload: { groupKey, status, alerts } }: HookRequest): EventKey | undefined {
  const list = objects(alerts, maxMarks)
  if (!Array.isArray(alerts) || list.length === 0) return undefined
  const marks = list.map(alert => [alert.fingerprint, alert.startsAt, alert.status].map(each => line(each)).join(' ')).sort()
  return { text: hash(JSON.stringify([line(groupKey, 4000), line(status), alerts.length, marks])), lifetime }
}
