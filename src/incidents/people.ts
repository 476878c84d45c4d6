import { Loaded } from '../access/loaded'
import { Made, type MadeOptions } from '../access/made'
import { demand, RelayError } from '../errors'
import type { Log } from '../lib/log'
import { isNumber, isObject, isString, listOf, objectOf, toText, withoutNull, type JsonObject } from '../lib/shape'
import { everybody, nobody } from '../message/mentions'
import { parseEntries } from '../message/names'
import { parseMentioned } from '../message/parse'
import { isName, nameRule, toName, toPlatform } from '../message/target'
import type { Text } from '../texts/text'
import { onDuty, parseRota, parseSwap, type Rota, type Swap } from './rota'
import { say } from '../texts/text'

/** Somebody who can be called by `@`. */
export interface Called {
  /** The name of the person in the settings; absent for `all`. */
  readonly person?: string
  /** The account in that chat, `null` for everybody; absent for somebody without one there, who is written by name. */
  readonly userId?: string | null
  /** The name for texts. */
  readonly name: string
}

/** The people and rotas of the settings, and those that are made while the relay runs. */
export interface Directory {
  /** Who is called by these words (people, rotas, `all`), now, in a chat of this platform. Words that mean nobody any more are left out. */
  whom(words: readonly string[], platform: string, now: number): readonly Called[]
  /** The person with an account, such as `onebot` and `10001`. */
  findBy(platform: string, account: string): { readonly person: string, readonly name: string } | undefined
  /** Whether one of these words means this person, now. */
  includes(words: readonly string[], person: string, now: number): boolean
}

/** A person. */
export interface Person {
  /** For texts, if it is not the name in the settings. */
  readonly name?: string
  /** The accounts by platform. */
  readonly accounts: ReadonlyMap<string, string>
}

/** Words that call everybody, or nobody: neither people nor rotas can have them as names. */
const reserved: readonly string[] = [everybody, nobody]
const longestName = 64
/** The most swaps of a rota that are not over. */
const mostSwaps = 100

/** @throws RelayError `bad-request`, which names the field */
export function parsePerson(value: unknown): Person {
  demand(isObject(value), say('person-object', { example: '{onebot: 10001, name: 李雷}' }))
  const { name, ...accounts } = withoutNull(value)
  demand(name === undefined || (isString(name) && name.trim() !== '' && name.length <= longestName), say('text-of-at-most', { field: 'name', most: longestName }))
  return {
    ...name !== undefined && { name: name.trim() },
    accounts: new Map(Object.entries(accounts).map(([platform, account]) => {
      const id = isString(account) || Number.isSafeInteger(account) ? toText(account) : ''
      demand(/^[^:\s]{1,64}$/.test(platform), say('accounts-by-platform'))
      demand(id !== '' && parseMentioned(id) !== null, say('must-be-account', { platform }))
      return [toPlatform(platform), id]
    })),
  }
}

/** @throws RelayError `bad-request` */
function demandName(name: string): void {
  demand(isName(name), nameRule)
  demand(!reserved.includes(name), say(name === everybody ? 'means-everybody' : 'means-nobody', { name }))
}

const isSwaps = listOf(objectOf<Swap>({ from: isNumber, until: isNumber, who: isString }))

export interface RosterOptions extends Pick<MadeOptions<Person>, 'store' | 'usersOf'> {
  /** The settings of these names. */
  people: JsonObject
  rotas: JsonObject
  logger: Pick<Log, 'warn'>
}

/** The people and rotas. */
export class Roster implements Directory {
  readonly people: Made<Person>
  readonly rotas: Made<Rota>
  /** About malformed entries of the settings, which are left out. */
  readonly warnings: readonly Text[]
  private readonly swaps: Loaded<readonly Swap[]>

  /** Reads the settings. */
  constructor({ people, rotas, store, usersOf = () => [], logger }: RosterOptions) {
    const fixed = parseEntries('people', people, (name, value) => {
      demandName(name)
      return parsePerson(value)
    })
    const fixedRotas = parseEntries('rotas', rotas, (name, value) => {
      demandName(name)
      demand(!fixed.entries.has(name), say('person-exists'))
      return parseRota(value, word => fixed.entries.has(word))
    })
    this.warnings = [...fixed.warnings, ...fixedRotas.warnings]
    this.people = new Made({
      table: 'people', kind: 'person', fixed: fixed.entries, store, logger,
      parse: (name, value, isNew) => {
        demandName(name)
        demand(!isNew || !this.rotas.get(name), say('rota-exists'))
        return parsePerson(value)
      },
      usersOf: name => [
        ...this.rotas.inForce().filter(rota => rota.entry.people.includes(name) || this.swapsOf(rota.name).some(({ who }) => who === name))
          .map(rota => say('the-rota', { name: JSON.stringify(rota.name) })),
        ...usersOf(name),
      ],
    })
    this.rotas = new Made({
      table: 'rotas', kind: 'rota', fixed: fixedRotas.entries, store, logger, usersOf,
      parse: (name, value, isNew) => {
        demandName(name)
        demand(!isNew || !this.people.get(name), say('person-exists'))
        return parseRota(value, isNew ? this.isPerson : undefined)
      },
    })
    this.swaps = new Loaded<readonly Swap[]>(store, 'swaps', (_, value) => {
      demand(isSwaps(value), say('no-list-of-swaps'))
      return value
    }, logger)
  }

  /** Whether a word means a person. */
  private readonly isPerson = (word: string): boolean => this.people.get(word) !== undefined

  /** Whether a word means a person or a rota. @throws RelayError `store-down` if it may be one that was made */
  has(word: string): boolean {
    const isKnown = this.isPerson(word) || this.rotas.get(word) !== undefined
    if (!isKnown && this.people.failure) throw this.people.failure
    return isKnown
  }

  /** Whether a word means a person or a rota of the settings. */
  isFixed(word: string): boolean {
    return this.people.isFixed(word) || this.rotas.isFixed(word)
  }

  /** The swaps of a rota that are not over, in the order in which they were made. */
  swapsOf(rota: string, now = Date.now()): readonly Swap[] {
    const swaps = this.swaps.tryGet()
    return swaps instanceof Error ? [] : swaps.get(rota)?.filter(({ until }) => until > now) ?? []
  }

  /**
   * Lets somebody take over a rota for a time, also one of the settings.
   *
   * @throws RelayError `bad-request`, which names the field; `not-found`, `conflict`, `store-down`, `storage-full`
   */
  async swap(written: string, fields: JsonObject, now = Date.now()): Promise<{ name: string, who: string }> {
    const name = toName(written)
    if (!this.rotas.get(name)) throw this.rotas.failure ?? new RelayError('not-found', say('no-such-rota'))
    const swap = parseSwap(fields, this.isPerson, now)
    this.swaps.get()
    // A swap that lies within the new one would never count again.
    const others = this.swapsOf(name, now).filter(({ from, until }) => from < swap.from || until > swap.until)
    const swaps = [...others, swap]
    if (swaps.length > mostSwaps) throw new RelayError('conflict', say('too-many-swaps', { most: mostSwaps }))
    await this.swaps.change(name, { json: swaps, entry: swaps })
    return { name, who: swap.who }
  }

  /** The name of the person who has a rota, and until when. */
  onDuty(name: string, now: number): ReturnType<typeof onDuty> | undefined {
    const rota = this.rotas.get(name)
    return rota && onDuty(rota, this.swapsOf(name, now), now)
  }

  whom(words: readonly string[], platform: string, now: number): readonly Called[] {
    const called = new Map<string, Called>()
    for (const word of words) {
      if (word === everybody) called.set(word, { userId: null, name: word })
      const person = this.personOf(word, now)
      const found = this.people.get(person)
      if (!found) continue
      const userId = found.accounts.get(toPlatform(platform))
      called.set(person, { person, ...userId !== undefined && { userId }, name: found.name ?? person })
    }
    return [...called.values()]
  }

  findBy(platform: string, account: string): { person: string, name: string } | undefined {
    const found = this.people.inForce().find(({ entry }) => entry.accounts.get(toPlatform(platform)) === account)
    return found && { person: found.name, name: found.entry.name ?? found.name }
  }

  includes(words: readonly string[], person: string, now: number): boolean {
    return words.some(word => word === everybody || this.personOf(word, now) === person)
  }

  /** Who is meant by a word: a person, or the person who has this rota. */
  private personOf(word: string, now: number): string {
    return this.onDuty(word, now)?.who ?? word
  }
}
