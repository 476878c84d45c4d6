import { parseEndpoint, type Endpoint } from '../lib/endpoint'
import { printable } from '../lib/log'
import { isObject, type JsonObject } from '../lib/shape'
import { isSet, readList } from '../lib/words'
import type { Target } from '../message/model'

/** A command of the setting `commands`. */
export interface Command {
  name: string
  /** The groups in which it can be used. Absent: every chat, private ones included. */
  groups?: ReadonlySet<string>
  /** The accounts that can use it. Absent: everybody. */
  users?: ReadonlySet<string>
  /** Where it is posted. */
  endpoint: Endpoint
  /** What it does, for the answer to `help`; empty for none. */
  help: string
}

/** Who uses a command, and where. */
export interface Asker {
  userId: string
  target: Target
}

/** The command that lists the others, unless a command of the settings has its name. */
export const helpName = 'help'

const fieldNames: readonly string[] = ['name', 'groups', 'users', 'callback', 'help']
/** The longest help, in characters. */
const longestHelp = 200

/** Why an entry is left out. */
class EntryError extends Error {}

/**
 * Reads the setting `commands`. A malformed entry is left out as a whole: without one of its fields it might be open to more people.
 *
 * @param fallback the address of a command that names none; empty for none
 * @returns the valid ones by their names, and a warning about each of the others
 */
export function parseCommands(raw: readonly unknown[], fallback: string): { commands: ReadonlyMap<string, Command>, warnings: string[] } {
  const commands = new Map<string, Command>()
  const warnings: string[] = []
  for (const [index, value] of raw.entries()) {
    const name = isObject(value) ? parseName(value.name) : undefined
    try {
      const command = parseEntry(value, fallback)
      if (commands.has(command.name)) throw new EntryError('an earlier entry has its name')
      commands.set(command.name, command)
    } catch (error) {
      if (!(error instanceof EntryError)) throw error
      const label = `commands: entry ${index + 1}${name === undefined ? '' : ` (${JSON.stringify(printable(name.slice(0, 64)))})`}`
      warnings.push(`${label} is left out: ${error.message}`)
    }
  }
  return { commands, warnings }
}

function parseEntry(value: unknown, fallback: string): Command {
  if (!isObject(value)) throw new EntryError('it is no object')
  const stranger = Object.keys(value).find(field => !fieldNames.includes(field) && isSet(value[field]))
  if (stranger !== undefined) throw new EntryError(`commands have no field ${JSON.stringify(printable(stranger.slice(0, 64)))}`)
  const name = parseName(value.name)
  if (name === undefined) throw new EntryError('name must be text without blanks')
  const groups = readIds(value, 'groups')
  const users = readIds(value, 'users')
  const { callback, help = '' } = value
  if (isSet(callback) && typeof callback !== 'string') throw new EntryError('callback must be an http(s) address')
  if (isSet(help) && (typeof help !== 'string' || help.length > longestHelp || /[\r\n]/.test(help.trim()))) {
    throw new EntryError(`help must be one line of at most ${longestHelp} characters`)
  }
  const address = typeof callback === 'string' && callback.trim() !== '' ? callback.trim() : fallback
  if (address === '') throw new EntryError('it has no callback, and commandCallbackUrl is not set')
  const endpoint = parseEndpoint(address)
  if (!endpoint) throw new EntryError('callback must be an http(s) address')
  return {
    name, endpoint, help: typeof help === 'string' ? help.trim() : '',
    ...groups && { groups }, ...users && { users },
  }
}

function parseName(value: unknown): string | undefined {
  const name = typeof value === 'string' || typeof value === 'number' ? String(value).trim() : ''
  return name === '' || /\s/.test(name) ? undefined : name
}

/** Reads a list of IDs; `undefined` where it is left out, or a list without any. */
function readIds(entry: JsonObject, field: 'groups' | 'users'): ReadonlySet<string> | undefined {
  const { [field]: value } = entry
  if (!isSet(value)) return
  const ids = readList(value)
  if (!ids || (ids.length === 0 && typeof value === 'string')) throw new EntryError(`${field} must be a list of IDs`)
  return ids.length > 0 ? new Set(ids) : undefined
}

/** Whether this member may use the command here. What is open to a group is open to its topics, whose IDs begin with that of the group. */
export function mayUse({ groups, users }: Command, { userId, target: { kind, id } }: Asker): boolean {
  const isIn = (group: string): boolean => id === group || id.startsWith(`${group}:`)
  return (!users || users.has(userId)) && (!groups || (kind === 'group' && [...groups].some(isIn)))
}

/** The answer to `help`: a line for each command that this member may use here; `undefined` where there is none. */
export function helpFor(commands: ReadonlyMap<string, Command>, prefix: string, asker: Asker): string | undefined {
  const lines = [...commands.values()].filter(command => mayUse(command, asker)).map(({ name, help }) => (
    `${prefix}${name}${help && `: ${help}`}`
  ))
  return lines.length > 0 ? lines.join('\n') : undefined
}
