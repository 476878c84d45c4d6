import { Schema } from 'koishi'
import { parseEndpoint } from '../lib/endpoint'
import type { JsonObject } from '../message/parse'
import * as parsers from './parsers'
import type { Parser } from './parsers'

/** A kind of value that a setting can have: how it is read, how the config page asks for it, and how it is shown. */
export interface Kind<T> {
  parse: Parser<T>
  /** The control on the config page, without a default. */
  control: Schema
  /** Further forms that may stand in koishi.yml, each transformed to the one that the control takes. */
  others?: readonly Schema[]
  /** What of a value may be shown, in the log and to whoever can open the config page; `undefined` when nothing may. */
  show: (value: T) => unknown
}

const asItIs = (value: unknown): unknown => value

/** Text; outer white space does not count. */
export const text: Kind<string> = { parse: parsers.text, control: Schema.string(), show: asItIs }

/** Text taken exactly as it is written. */
export const verbatim: Kind<string> = { parse: parsers.verbatim, control: Schema.string(), show: asItIs }

/** Text that is never shown. A default of the config page would be sent to the browser, so it has none either. */
export const secret: Kind<string> = { parse: parsers.text, control: Schema.string().role('secret'), show: () => undefined }

/** A secret that signs, never shown. `undefined` stands for a malformed one: without it nothing may be sent that is to be signed. */
export const signingSecret: Kind<string | undefined> = { ...secret, parse: parsers.signingSecret, show: () => undefined }

/** The prefix of routes, such as `/relay`. */
export const routePrefix: Kind<string> = { parse: parsers.routePrefix, control: Schema.string(), show: asItIs }

/** An http(s) address that is posted to. */
export const httpUrl: Kind<string> = { parse: parsers.httpUrl, control: Schema.string().role('link'), show: originOf }

/** Whom alerts are told: targets, names for them, or an http(s) address. */
export const recipient: Kind<string> = { ...text, show: value => value.includes('://') ? originOf(value) : value }

/** An http(s) address that paths are appended to. */
export const baseUrl: Kind<string> = { ...httpUrl, parse: parsers.baseUrl, show: withoutCredentials }

/** Yes or no. */
export const flag: Kind<boolean> = { parse: parsers.flag, control: Schema.boolean(), show: asItIs }

/** A list of words. */
export const list: Kind<string[]> = { parse: parsers.list, control: Schema.array(String).role('table'), show: asItIs }

/** Keys that callers send, each of which is read by itself. Nothing of them is shown. */
export const keyTable: Kind<readonly unknown[]> = {
  parse: parsers.entries,
  control: Schema.array(Schema.object({
    name: Schema.string(),
    key: Schema.string().role('secret'),
    secret: Schema.string().role('secret'),
    targets: Schema.string(),
    allow: Schema.string(),
    expires: Schema.string(),
    rate: Schema.natural(),
    from: Schema.string(),
  })).role('table'),
  show: () => undefined,
}

/** Names for targets, each of which is read by itself. */
export const targetTable: Kind<JsonObject> = { parse: parsers.dictionary, control: Schema.dict(String).role('table'), show: asItIs }

/** One of a few words. */
export function oneOf<const T extends string>(...words: readonly T[]): Kind<T> {
  return { parse: parsers.oneOf(...words), control: Schema.union(words), show: asItIs }
}

/** A whole number between two bounds, both included. */
export function integer(min: number, max?: number): Kind<number> {
  const control = Schema.natural().min(min)
  return { parse: parsers.integer(min, max), control: max === undefined ? control : control.max(max), show: asItIs }
}

/** A size in bytes between two bounds, both included, which may be written with a unit. */
export function size(min: number, max?: number): Kind<number> {
  return {
    parse: parsers.size(min, max),
    control: Schema.string().pattern(parsers.sizePattern),
    others: [Schema.transform(Schema.number(), bytes => String(bytes), true)],
    show: parsers.formatSize,
  }
}

/** The longest time that a Node.js timer can wait, in seconds. */
const longestWait = Math.floor((2 ** 31 - 1) / 1000)

/**
 * A time in seconds, as long as a timer can wait at most.
 *
 * @param min least time; that of a timer is a millisecond
 */
export function seconds(min = 0.001): Kind<number> {
  return { parse: parsers.decimal(min, longestWait), control: Schema.number().min(min).max(longestWait), show: asItIs }
}

/** All that may be shown of an address that is posted to: path and query of an incoming webhook are its secret. */
function originOf(address: string): string | undefined {
  return parseEndpoint(address)?.origin
}

/** An address that has neither query nor fragment, without user name and password. */
function withoutCredentials(address: string): string {
  if (!URL.canParse(address)) return address
  const { origin, pathname, username, password } = new URL(address)
  return username || password ? origin + pathname : address
}
