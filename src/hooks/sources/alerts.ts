// Alertmanager and Grafana: both send groups of alerts.
import { RelayError } from '../../errors'
import { digest, isHmac } from '../../lib/crypto'
import type { JsonObject } from '../../lib/shape'
import { isRecent } from '../../lib/webhook-signature'
import { address, count, cut, date, header, labelled, line, object, objects, textOf } from '../fields'
import { excerpt, fromMarkdown } from '../markup'
import type { EventKey, HookEvent, HookRequest, Source } from '../source'

/** How many alerts of a group are named. */
const maxAlerts = 8
/** How many alerts of a group are looked at to tell it from others. */
const maxMarks = 5000
/** The longest address that is shown, in UTF-16 units. */
const maxPage = 500
/** The longest message that is told, in UTF-16 units. */
const maxMessage = 4_000
/** How many labels of an alert are named. */
const maxLabels = 8
/** Both send again after a failure within seconds, and on purpose after hours, in milliseconds. */
const lifetime = 5 * 60_000

/** Labels that say nothing to a reader: the name is told by itself, and the others are the system's own. */
const silent = /^(?:alertname|grafana_folder|prometheus|__.*__)$/

export const alertmanager: Source = {
  name: 'alertmanager',
  read: ({ payload }) => readAlerts(payload, 'Alertmanager', ['generatorURL']),
  keyOf,
}

export const grafana: Source = {
  name: 'grafana',
  read({ payload }) {
    const event = readAlerts(payload, 'Grafana', ['panelURL', 'dashboardURL', 'generatorURL'])
    return { ...event, view: { ...event.view, ...ownWords(payload) } }
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
 * The title and the message that somebody has written in the contact point of Grafana. Each is empty where it is Grafana's own, as
 * `default.title` and `default.message` make it: templates/default_template.go of grafana/alerting.
 */
function ownWords({ title, message }: JsonObject): JsonObject {
  const heading = line(title)
  const text = textOf(message)
  return {
    title: /^\[(?:FIRING:\d|RESOLVED\b)/.test(heading) ? '' : heading,
    message: /^\*\*(?:Firing|Resolved)\*\*/.test(text) ? '' : cut(fromMarkdown(text), maxMessage),
  }
}

/**
 * Reads a group of alerts.
 *
 * @param pages the fields of an alert that may hold its page, the best first
 * @throws RelayError `bad-request` where it is none
 */
function readAlerts(payload: JsonObject, sender: string, pages: readonly string[]): HookEvent {
  if (!Array.isArray(payload.alerts)) {
    throw new RelayError('bad-request', `this is not a notification of ${sender}: it has no alerts; use its default payload`)
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
  // Each field is there; one without a meaning is empty or zero.
  const view = {
    status,
    // The name and the labels that all alerts have.
    name,
    labels: labelsOf(common),
    severity: line(common.severity, 30),
    firing: firing.length,
    resolved: resolved.length,
    // Also those that were not sent.
    total,
    alerts: named.map(alert => viewOf(alert, common, name, total === 1 ? 2 : 1)),
    more: total - named.length,
    // What somebody has written in Grafana.
    title: '',
    message: '',
    link: [...all.length === 1 ? pages.map(page => first?.[page]) : [], payload.externalURL].map(pageOf).find(page => page !== '') ?? '',
  }
  const { groupKey } = payload
  return { name: 'alert', status, ...typeof groupKey === 'string' && groupKey !== '' && { thread: digest(groupKey) }, view }
}

/** An address that is no longer than a line should be: that of a graph holds the whole query. */
function pageOf(value: unknown): string {
  return address(value, maxPage)
}

/**
 * The status and the times of an alert, and a text with its name and labels, as far as the others of its group have different ones.
 *
 * @param most how many of its annotations are told
 */
function viewOf(alert: JsonObject, common: JsonObject, name: string, most: number): JsonObject {
  // Grafana says so why a rule could not be evaluated (DatasourceError), beside a summary that was written for the alert itself:
  // pkg/services/ngalert/state/state.go of grafana/grafana.
  const { Error: failure, summary, message, description } = object(alert.annotations)
  const isOver = alert.status === 'resolved'
  const which = [name === '' ? nameOf(alert) : '', labelsOf(object(alert.labels), common)].filter(each => each !== '').join(' ')
  const told = new Set((failure ? [failure] : [summary, message, description]).map(text => excerpt(text, 2, 200)).filter(text => text !== ''))
  const since = date(alert.startsAt)
  return {
    status: isOver ? 'resolved' : 'firing',
    text: labelled(which, [...told].slice(0, most).join('\n')),
    since,
    until: isOver && since !== '' ? date(alert.endsAt) : '',
  }
}

function nameOf(alert: JsonObject | undefined): string {
  return line(object(alert?.labels).alertname)
}

/** The labels of an alert that its group has not in common, the severity first: systems sort them by name, and there may be many. */
function labelsOf(labels: JsonObject, common: JsonObject = {}): string {
  const told = Object.entries({ ...'severity' in labels && { severity: '' }, ...labels })
    .filter(([name]) => !silent.test(name) && !Object.hasOwn(common, name))
  return told.slice(0, maxLabels).map(([name, value]) => `${line(name, 40)}=${line(value, 60)}`).join(', ')
}

/**
 * The key of a notification: its group, its status and its alerts. Which of them are resolved counts as well: otherwise a group that goes
 * on firing would be silent about it.
 */
function keyOf({ payload: { groupKey, status, alerts } }: HookRequest): EventKey | undefined {
  const list = objects(alerts, maxMarks)
  if (!Array.isArray(alerts) || list.length === 0) return undefined
  const marks = list.map(alert => [alert.fingerprint, alert.startsAt, alert.status].map(each => line(each)).join(' ')).sort()
  return { text: digest(JSON.stringify([line(groupKey, 4000), line(status), alerts.length, marks])), lifetime }
}
