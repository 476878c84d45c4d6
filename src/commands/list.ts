import { demand, RelayError } from '../errors'
import { parseEndpoint, type Endpoint } from '../lib/endpoint'
import { quoted } from '../lib/log'
import { isObject, type JsonObject } from '../lib/shape'
import { isSet, readList, refuseFields } from '../lib/words'
import type { Target } from '../message/model'
import { say, type Text } from '../texts/text'

/** A command of the setting `commands`. */
export interface Command {
  name: string
  /** The groups in which members may use the command. Absent: every chat, including private ones. */
  groups?: ReadonlySet<string>
  /** The accounts that may use the command. Absent: all. */
  users?: ReadonlySet<string>
  /** The callback. */
  endpoint: Endpoint
  /** The description in the answer to `help`; empty for none. */
  help: string
}

/** The user of a command, and the chat. */
export interface Asker {
  userId: string
  target: Target
}

/** The command that lists the others, unless the settings have a command of this name. */
export const helpName = 'help'

const fieldNames: readonly string[] = ['name', 'groups', 'users', 'callback', 'help']
/** The longest help, in characters. */
const longestHelp = 200

/**
 * Reads the setting `commands`. A malformed entry is left out as a whole: without one of its fields, more people might use the command.
 *
 * @param fallback the address for commands without one; empty for none
 * @param prefix the prefix of commands in chats
 * @returns the valid commands by name, and a warning about each of the others
 */
export function parseCommands(
  raw: readonly unknown[], fallback: string, prefix: string,
): { commands: ReadonlyMap<string, Command>, warnings: Text[] } {
  const commands = new Map<string, Command>()
  const warnings: Text[] = []
  for (const [index, value] of raw.entries()) {
    const name = isObject(value) ? parseName(value.name) : undefined
    try {
      const command = parseEntry(value, fallback, prefix)
      demand(!commands.has(command.name), say('command-named-before'))
      commands.set(command.name, command)
    } catch (error) {
      const number = index + 1
      const entry = name === undefined ? say('command-entry', { number }) : say('command-entry-named', { number, name: quoted(name) })
      warnings.push(say('entry-left-out', { entry, reason: RelayError.from(error).said }))
    }
  }
  return { commands, warnings }
}

function parseEntry(value: unknown, fallback: string, prefix: string): Command {
  demand(isObject(value), say('no-object'))
  refuseFields('commands', Object.keys(value).filter(field => !fieldNames.includes(field) && isSet(value[field])))
  const name = parseName(value.name)
  demand(name !== undefined, say('command-name'))
  demand(prefix === '' || !name.startsWith(prefix), say('command-name-prefix', { prefix: quoted(prefix) }))
  const groups = readIds(value, 'groups')
  const users = readIds(value, 'users')
  const { callback, help } = value
  const [address, words] = [isSet(callback) ? callback : fallback, isSet(help) ? help : '']
  demand(address !== '', say('command-no-callback'))
  const endpoint = typeof address === 'string' ? parseEndpoint(address.trim()) : undefined
  demand(endpoint !== undefined, say('command-callback'))
  const isFit = typeof words === 'string' && words.length <= longestHelp && !/[\r\n]/.test(words.trim())
  demand(isFit, say('command-help', { most: longestHelp }))
  return { name, endpoint, help: words.trim(), ...groups && { groups }, ...users && { users } }
}

function parseName(value: unknown): string | undefined {
  const name = typeof value === 'string' || typeof value === 'number' ? String(value).trim() : ''
  return name === '' || /\s/.test(name) ? undefined : name
}

/** Reads a list of IDs; `undefined` if it is absent or empty. */
function readIds(entry: JsonObject, field: 'groups' | 'users'): ReadonlySet<string> | undefined {
  const { [field]: value } = entry
  if (!isSet(value)) return
  const ids = readList(value)
  demand(ids !== undefined && (ids.length > 0 || typeof value !== 'string'), say('list-of-ids', { field }))
  demand(!ids.some(id => /(^|:)(group|private):/.test(id)), say('bare-ids', { field }))
  return ids.length > 0 ? new Set(ids) : undefined
}

/** Whether this member may use the command here. A group includes its topics, whose IDs begin with that of the group. */
export function mayUse({ groups, users }: Command, { userId, target: { kind, id } }: Asker): boolean {
  const isIn = (group: string): boolean => id === group || id.startsWith(`${group}:`)
  return (!users || users.has(userId)) && (!groups || (kind === 'group' && [...groups].some(isIn)))
}

/** The answer to `help`: a line for each command that this member may use here; `undefined` if there is none. */
export function helpFor(commands: ReadonlyMap<string, Command>, prefix: string, asker: Asker): string | undefined {
  const lines = [...commands.values()].filter(command => mayUse(command, asker)).map(({ name, help }) => (
    `${prefix}${name}${help && `: ${help}`}`
  ))
  return lines.length > 0 ? lines.join('\n') : undefined
}
