import { Schema } from 'koishi'
import enUS from './locales/en-US.yml'
import zhCN from './locales/zh-CN.yml'

/** What to take from a broker. */
export interface Subscription {
  /** A topic filter, shared or not. */
  topic: string
  /** The target of all messages; without it, each message is JSON that names its own. */
  to?: string
  /** The name of the user property, or of the field of the JSON, that holds the Idempotency-Key. */
  key: string
}

/** The plugin's part of koishi.yml. Times are in seconds. */
export interface Config {
  url: string
  username?: string
  password?: string
  /** The path of a file. */
  ca?: string
  clientId: string
  subscriptions: Subscription[]
  /** How long the broker keeps the session of a client that is away. */
  sessionExpiry: number
  receiveMaximum: number
  /** When to fetch messages again that could not be accepted. */
  retryDelay: number
}

export const Config: Schema<Config> = Schema.object({
  url: Schema.string().role('link').pattern(/^(?:mqtt|ws)s?:\/\/./).default('mqtt://127.0.0.1:1883'),
  username: Schema.string(),
  password: Schema.string().role('secret'),
  ca: Schema.string(),
  clientId: Schema.string().required(),
  subscriptions: Schema.array(Schema.object({
    topic: Schema.string().required(),
    to: Schema.string(),
    key: Schema.string().default('idempotency-key'),
  })).role('table').default([]),
  sessionExpiry: Schema.natural().default(86_400),
  receiveMaximum: Schema.natural().min(1).max(65_535).default(100),
  retryDelay: Schema.number().min(0.1).default(30),
}).i18n({ 'en-US': enUS, 'zh-CN': zhCN })
