// What Alertmanager and Grafana have in common: groups of alerts, and the view that their templates are given.
import { RelayError } from '../../errors'
import { digest } from '../../lib/digest'
import type { JsonObject } from '../../message/parse'
import type { EventKey, HookEvent } from '../source'
import { address, count, date, excerpt, firstOf, line, object, objects } from './values'

/** How many alerts of a group are named. */
const maxAlerts = 8
/** How many labels of an alert are named. */
const maxLabels = 5
/** Both send again after a failure within seconds, and on purpose after hours, in milliseconds. */
const lifetime = 5 * 60_000

/** Labels that say nothing to a reader: the name is told by itself, and the others are the system's own. */
const silent = /^(?:alertname|grafana_folder|prometheus|__.*__)$/

type AlertView = Readonly<{
  status: string
  name: string
  summary: string
  /** The labels that tell it from the others of its group: `instance=api-1`. */
  labels: string
  /** ISO text, or empty. */
  since: string
  until: string
}>

/** What a template is given. Each field is there; one that has no meaning is empty or zero. */
type AlertsView = Readonly<{
  status: string
  /** The name of the alert, where all have the same; else empty. */
  name: string
  /** The labels that all have. */
  labels: string
  severity: string
  /** How many of them fire, and how many are over. */
  firing: number
  resolved: number
  /** Those that fire stand first. */
  alerts: readonly AlertView[]
  /** How many are not named. */
  more: number
  link: string
}>

/**
 * Reads a group of alerts.
 *
 * @param linkOf the page of an alert
 * @throws RelayError `bad-request` where it is none
 */
export function readAlerts(payload: JsonObject, sender: string, linkOf: (alert: JsonObject) => string): HookEvent {
  if (!Array.isArray(payload.alerts)) {
    throw new RelayError('bad-request', `this is no notification of ${sender}: it has no alerts; leave its payload as it is by default`)
  }
  const all = objects(payload.alerts)
  const firing = all.filter(alert => alert.status !== 'resolved')
  const resolved = all.filter(alert => alert.status === 'resolved')
  const status = payload.status === 'resolved' ? 'resolved' : 'firing'
  const named = [...firing, ...resolved].slice(0, maxAlerts)
  const common = object(payload.commonLabels)
  const [first] = named
  const view: AlertsView = {
    status,
    name: line(common.alertname) || (all.length === 1 ? nameOf(first) : ''),
    labels: labelsOf(common),
    severity: line(common.severity, 30),
    firing: firing.length,
    resolved: resolved.length,
    alerts: named.map(alert => viewOf(alert, common)),
    more: all.length - named.length + count(payload.truncatedAlerts),
    link: (all.length === 1 && first ? linkOf(first) : '') || address(payload.externalURL),
  }
  return { name: 'alert', status, view }
}

function viewOf(alert: JsonObject, common: JsonObject): AlertView {
  const { summary, message, description } = object(alert.annotations)
  const isOver = alert.status === 'resolved'
  return {
    status: isOver ? 'resolved' : 'firing',
    name: nameOf(alert),
    summary: [summary, message, description].map(text => excerpt(text, 2, 200)).find(text => text !== '') ?? '',
    labels: labelsOf(object(alert.labels), common),
    since: date(alert.startsAt),
    until: isOver ? date(alert.endsAt) : '',
  }
}

function nameOf(alert: JsonObject | undefined): string {
  return firstOf(object(alert?.labels).alertname)
}

function labelsOf(labels: JsonObject, common: JsonObject = {}): string {
  const told = Object.entries(labels).filter(([name]) => !silent.test(name) && !Object.hasOwn(common, name))
  return told.slice(0, maxLabels).map(([name, value]) => `${line(name, 40)}=${line(value, 60)}`).join(', ')
}

/**
 * What tells a notification from others: the group, how it is, and which alerts it is about. Which of them are over counts as well, or a
 * group that goes on firing would be silent about it.
 */
export function keyOfAlerts({ groupKey, status, alerts }: JsonObject): EventKey | undefined {
  const list = objects(alerts)
  if (list.length === 0) return undefined
  const marks = list.map(alert => [alert.fingerprint, alert.startsAt, alert.status].map(each => line(each)).join(' ')).sort()
  return { text: digest(JSON.stringify([line(groupKey, 4000), line(status), marks])), lifetime }
}
