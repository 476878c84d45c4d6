import type { MessageRelay, RelayDelivery } from 'koishi-plugin-message-relay'
import { connect, ReasonCodes, type IPublishPacket, type MqttClient } from 'mqtt'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Config, Subscription } from './config'
import { deliver, reasonCodes, type Verdict } from './message'
import { write, type Log } from './texts'

/** The wait before a new connection, in milliseconds. */
const reconnectPeriod = 2_000
/** The largest message that the broker may send, in bytes: as much as the relay takes over HTTP by default. */
const maximumPacketSize = 10 * 1024 * 1024
/** How long the end waits for the broker's acknowledgements, in milliseconds. */
const longestEnd = 2_000
const reasons = new Map(Object.entries(ReasonCodes))

/** Has MQTT.js go on without an acknowledgement. */
const left = new Error('left')

/** What to do about errors, by their codes: those of MQTT 5 and 3.1.1, of TLS and of the system. */
const advice = [
  [/^(?:4|5|134|135)$/, 'check-account'], [/^(?:1|132)$/, 'check-version'], [/SELF_SIGNED|UNABLE_TO/, 'check-ca'], [/ECONNRESET|EPROTO|ERR_SSL/, 'check-url'],
] as const

type Properties = NonNullable<IPublishPacket['properties']>

/** An outcome, as it is published to the response topic of its message. */
type Outcome = Readonly<Record<string, unknown>>

/**
 * A session at a broker. MQTT.js hands over one message at a time, in the order of the broker, and the next once that is answered. What the
 * relay cannot accept now is not acknowledged: the broker sends it again on the next connection, which is made for it after a while.
 */
export class Broker {
  private readonly client: MqttClient
  private readonly name: string
  /** By subscription identifier: those of a setting that has gone still come from the session. */
  private readonly subscriptions = new Map<number, Subscription>()
  /** The deliveries whose outcomes are asked for. */
  private readonly asked = new Map<string, Properties[]>()
  /** The message under way. */
  private current: Promise<unknown> = Promise.resolve()
  /** The outcomes under way: one at a time, because MQTT.js does not keep to the broker's Receive Maximum. */
  private published: Promise<unknown> = Promise.resolve()
  private retry: NodeJS.Timeout | undefined
  /** Whether all messages of this connection are left from now on, which keeps their order. */
  private leavesAll = false
  private wasConnected = false
  /** The failure reported since the last connection. */
  private trouble = ''

  /** @throws if the file of the certificate cannot be read */
  constructor(private readonly relay: MessageRelay, private readonly config: Config, private readonly log: Log) {
    const { url, username, password, ca, clientId, sessionExpiry, receiveMaximum } = config
    this.name = new URL(url).host
    for (const subscription of config.subscriptions) {
      const { topic } = subscription
      if (this.subscriptions.has(identify(topic))) log.warn('twice', { topic })
      else this.subscriptions.set(identify(topic), subscription)
    }
    this.client = connect(url, {
      protocolVersion: 5, clientId, username, password, reconnectPeriod, ...ca && { ca: readFileSync(ca) },
      clean: false, properties: { sessionExpiryInterval: sessionExpiry, receiveMaximum, maximumPacketSize },
      resubscribe: false, reconnectOnConnackError: true,
      customHandleAcks: (_topic, _payload, packet: IPublishPacket, answer) => {
        void this.receive(packet).then(code => answer(code ?? left))
      },
    })
    // There is nobody who would send a message with QoS 0 again.
    this.client.handleMessage = (packet, next) => {
      if (packet.qos === 0) void this.receive(packet).then(() => next())
      else next()
    }
    this.client.on('connect', () => void this.begin())
    this.client.on('close', () => {
      if (this.isEnding) return
      if (this.wasConnected) log.warn('lost', { broker: this.name })
      else if (!this.trouble) this.fail(write(log.language, 'check-version', { reason: write(log.language, 'silent') }))
      this.wasConnected = false
    })
    this.client.on('disconnect', ({ reasonCode: code = 0 }) => {
      log.warn('ended', { broker: this.name, reason: reasons.get(String(code)) ?? String(code) })
    })
    this.client.on('error', error => {
      if (error !== left) this.fail(this.describe(error))
    })
  }

  /** Ends the connection, after the message under way. The broker keeps the session. */
  async end(): Promise<void> {
    clearTimeout(this.retry)
    this.leavesAll = true
    await this.current
    const timer = setTimeout(() => this.client.stream.destroy(), longestEnd)
    await this.client.endAsync(!this.client.connected)
    clearTimeout(timer)
  }

  /** Publishes the outcome of a delivery that has ended, if its message asked for it. */
  ended(delivery: RelayDelivery): void {
    const asked = this.asked.get(delivery.id) ?? []
    this.asked.delete(delivery.id)
    for (const properties of asked) this.answer(properties, outcomeOf(delivery))
  }

  /** Whether the plugin ends the connection itself, now or soon. */
  private get isEnding(): boolean {
    return this.leavesAll || this.retry !== undefined
  }

  private fail(reason: string): void {
    if (this.trouble !== reason) this.log.warn('failed', { broker: this.name, reason })
    this.trouble = reason
  }

  /** Names an error, and says what to do. Those of a connection to a host with several addresses have no text. */
  private describe(error: unknown): string {
    if (!(error instanceof Error)) return typeof error
    const code = 'code' in error ? String(error.code) : error.name
    const reason = error.message || code
    const id = advice.find(([codes]) => codes.test(code))?.[1]
    return id ? write(this.log.language, id, { reason }) : reason
  }

  private async begin(): Promise<void> {
    clearTimeout(this.retry)
    this.retry = undefined
    this.leavesAll = false
    this.wasConnected = true
    this.trouble = ''
    let count = 0
    await Promise.all([...this.subscriptions].map(async ([subscriptionIdentifier, { topic }]) => (
      // `rh: 2`: no retained messages, which each new session would send once more.
      this.client.subscribeAsync(topic, { qos: 1, rh: 2, properties: { subscriptionIdentifier } })
        .then(() => count++, (error: unknown) => this.log.warn('not-subscribed', { topic, reason: this.describe(error) }))
    )))
    this.log.info('connected', { broker: this.name, count })
  }

  /** @returns the reason code of the acknowledgement; `undefined` for none */
  private async receive(packet: IPublishPacket): Promise<number | undefined> {
    const received = this.leavesAll && packet.qos > 0 ? Promise.resolve(undefined) : this.handle(packet)
    this.current = received
    return received
  }

  private async handle({ topic, payload, qos, properties = {} }: IPublishPacket): Promise<number | undefined> {
    // This is how a retained message is removed.
    if (payload.length === 0) return reasonCodes.success
    const { subscriptionIdentifier = [], contentType, userProperties } = properties
    const message = { payload: Buffer.from(payload), contentType, userProperties }
    const verdicts: Verdict[] = []
    for (const id of [subscriptionIdentifier].flat()) {
      const subscription = this.subscriptions.get(id)
      if (subscription) verdicts.push(await deliver(this.relay, subscription, String(id), message))
    }
    const isLeft = qos > 0 && verdicts.some(({ kind }) => kind === 'left')
    if (verdicts.length === 0) this.refuse(topic, properties, 'not-found', write(this.log.language, 'no-subscription'))
    for (const verdict of verdicts) {
      if (isLeft && verdict.kind === 'left') this.leave(topic, verdict)
      else if (!isLeft && verdict.kind === 'accepted') verdict.deliveries.forEach(delivery => this.accept(topic, properties, delivery))
      else if (!isLeft && verdict.kind !== 'accepted') this.refuse(topic, properties, verdict.error, verdict.reason)
    }
    if (isLeft) return undefined
    const codes = verdicts.map(verdict => verdict.kind === 'refused' ? verdict.code : reasonCodes.success)
    return verdicts.length === 0 ? reasonCodes.topic : codes.find(code => code > 0) ?? reasonCodes.success
  }

  /** Has the broker send a message again. */
  private leave(topic: string, { reason, isGeneral }: Verdict & { kind: 'left' }): void {
    const { retryDelay } = this.config
    this.leavesAll ||= isGeneral
    if (this.retry) return
    this.log.warn('left', { topic, seconds: retryDelay, reason })
    this.retry = setTimeout(() => this.client.stream.end(), retryDelay * 1000)
  }

  private refuse(topic: string, properties: Properties, error: string, reason: string): void {
    this.log.warn('refused', { topic, reason })
    this.answer(properties, { state: 'failed', error, msg: reason })
  }

  private accept(topic: string, properties: Properties, delivery: RelayDelivery): void {
    if (delivery.refusal) this.log.warn('refused', { topic, reason: delivery.reason ?? delivery.refusal })
    if (properties.responseTopic === undefined) return
    this.asked.set(delivery.id, [...this.asked.get(delivery.id) ?? [], properties])
    if (hasEnded(delivery)) this.ended(delivery)
    // It may have ended before it was asked for.
    else this.relay.get(delivery.id).then(now => hasEnded(now) && this.ended(now)).catch(() => undefined)
  }

  private answer({ responseTopic: topic, correlationData }: Properties, outcome: Outcome): void {
    if (topic === undefined) return
    this.published = this.published
      .then(() => this.client.publishAsync(topic, JSON.stringify(outcome), {
        qos: 1, properties: { ...correlationData && { correlationData }, contentType: 'application/json' },
      }))
      .catch((error: unknown) => this.log.warn('unanswered', { topic, reason: this.describe(error) }))
  }
}

function hasEnded({ state }: RelayDelivery): boolean {
  return state !== 'scheduled' && state !== 'queued' && state !== 'sending'
}

function outcomeOf({ id, target, state, outcome, messageIds, refusal, reason }: RelayDelivery): Outcome {
  return {
    state, ...outcome && { delivery_id: id, outcome }, target, message_ids: messageIds, ...refusal && { error: refusal },
    ...reason !== undefined && { msg: reason },
  }
}

/** The identifier of a subscription, which stays the same for a topic, because messages wait at the broker with it. */
function identify(topic: string): number {
  return createHash('sha256').update(topic).digest().readUInt32BE() % 268_435_455 + 1
}
