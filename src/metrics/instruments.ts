// Its successor @prometheus-io/client does not run on Node.js 20.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** In seconds, from a call to a platform on the same machine to a call that is given up. */
const callBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
/** In seconds, for calls and for the waits for a turn, for a bot or for the end of a pause. */
const deliveryBuckets = [...callBuckets, 120, 300, 900, 3600]
/** In seconds, from somebody who sits there to an alert that stays for a week. */
const incidentBuckets = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400, 604_800]
const digestBuckets = [2, 5, 10, 20, 50, 100, 200, 500, 1000]

/**
 * Creates all metrics of the relay, in a registry of their own. Label values never come from outside: no targets, and no names of keys or
 * templates.
 */
export function createInstruments() {
  const registry = new Registry()
  const registers = [registry]
  const prefixed = (name: string): string => `message_relay_${name}`
  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter<Label>({ name: prefixed(name), help, labelNames, registers })
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge<Label>({ name: prefixed(name), help, labelNames, registers })
  const histogram = <Label extends string>(name: string, help: string, buckets: number[], ...labelNames: Label[]) =>
    new Histogram<Label>({ name: prefixed(name), help, buckets, labelNames, registers })

  return {
    registry,
    deliveries: counter('deliveries_total', 'Deliveries that have ended, by door and outcome', 'door', 'outcome'),
    deliveryTime: histogram('delivery_duration_seconds', 'Time from accepting a delivery until it was sent, by door', deliveryBuckets, 'door'),
    callTime: histogram('call_duration_seconds', 'Time of each call to the platform that sends, by outcome', callBuckets, 'outcome'),
    lookUps: counter('lookups_total', 'Questions to the platform whether a message without an answer has arrived, by finding', 'finding'),
    pauses: counter('pauses_total', 'Pauses of a target that kept failing, each prolongation counted'),
    digests: histogram('digest_deliveries', 'Deliveries that a digest stands for', digestBuckets),
    ways: counter('ways_total', 'Deliveries to a name with several ways that were sent, by the place of the way that took them', 'place'),
    takeTime: histogram('incident_taken_seconds', 'Time from the begin of an incident until it was taken, each time', incidentBuckets),
    resolveTime: histogram('incident_resolved_seconds', 'Time from the begin of an incident until it was resolved', incidentBuckets),
    steps: counter('incident_steps_total', 'Steps of escalations that were made'),
    incidents: gauge('incidents', 'Incidents that are not resolved, by state', 'state'),
    beats: gauge('beats', 'Beats, by state', 'state'),
    requests: counter('http_requests_total', 'Answered HTTP requests, by route, method and status', 'route', 'method', 'status'),
    refusals: counter('refusals_total', 'Requests refused because of their key, by reason', 'reason'),
    uploads: counter('uploads_total', 'Uploaded files'),
    uploadBytes: counter('upload_bytes_total', 'Bytes of uploaded files'),
    bots: gauge('bots', 'Bots, by status', 'status'),
    waiting: gauge('queue_waiting', 'Requests that wait for their turn, in all queues'),
    longest: gauge('queue_waiting_longest', 'Requests that wait in the longest queue'),
    capacity: gauge('queue_capacity', 'Requests that may wait in one queue'),
    paused: gauge('queues_paused', 'Targets to which sending is paused'),
    closed: gauge('queues_held', 'Targets that are closed to the bot for a while'),
    scheduled: gauge('scheduled', 'Deliveries that wait for the time that they were ordered for'),
    held: gauge('held', 'Deliveries that do not leave for now, by the cause that their records name', 'reason'),
    outbox: gauge('outbox_waiting', 'Deliveries that wait to be sent later'),
    oldest: gauge('oldest_waiting_seconds', 'Age of what has waited longest'),
  }
}
