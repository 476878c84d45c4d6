import { isLoopbackHost } from './guards'
import { parseId } from './parse'
import type { Person, ProfileName } from './types'

/** The options of a simulator, all optional. */
export interface SimulatorOptions {
  /** Port on 127.0.0.1; by default 0, any free one. */
  port?: number
  /** Bot account, default `10000`. */
  selfId?: string
  /** If set, bots must send it, as `Authorization: Bearer <token>` or `?access_token=`. */
  token?: string
  /** Default `napcat`. */
  profile?: ProfileName
  /** Dials the bot's reverse-WebSocket server, and redials after a loss (every `redialInterval` ms, default 1000). */
  reverse?: { url: string, token?: string, redialInterval?: number }
  /** Default true. False: files in `file://` URLs and paths are not found, as from another container. */
  sharedDisk?: boolean
  /** Default true. False: the history actions are unknown. */
  history?: boolean
  /** Default false. True: the bot receives its own messages as `message_sent` events. */
  reportSelf?: boolean
  /** Form of `message` in events; default `array`. */
  messageFormat?: 'array' | 'string'
  /** Raw frames that each connection begins with, to imitate a platform with another protocol. Default none. */
  firstFrames?: readonly string[]
  /** Milliseconds, default 30000. */
  heartbeatInterval?: number
  groups?: { id: string, name: string, english?: string, members: Person[] }[]
  friends?: Person[]
  /** Default false: a send to a group or person that does not exist is refused with the profile's wording. True: it creates the chat. */
  anyTarget?: boolean
  /** The platform's time, in milliseconds since the epoch; default `Date.now`. */
  clock?: () => number
  /** How many ledger entries, calls, media, and messages per chat are kept; default 10000, 0 = no limit. */
  keep?: number
}

/** Options with all defaults filled in. */
export type Settings = Required<Omit<SimulatorOptions, 'token' | 'reverse'>> & {
  token: string | null
  reverse: { url: string, token: string | null, redialInterval: number } | null
}

const defaultGroups = [
  {
    id: '123456',
    name: '构建通知 Builds',
    english: 'Builds',
    members: [{ id: '10001', name: '小明', english: 'Xiao Ming' }, { id: '10002', name: 'Alice' }, { id: '10003', name: '运维值班', english: 'On call' }],
  },
  {
    id: '654321',
    name: 'Ops 值班群',
    english: 'Ops',
    members: [{ id: '10001', name: '小明', card: '小明（后端）', english: 'Xiao Ming (backend)' }, { id: '10004', name: 'Bob' }],
  },
]

const defaultFriends = [{ id: '10001', name: '小明', english: 'Xiao Ming' }, { id: '10002', name: 'Alice' }]

/**
 * Fills in the defaults.
 * @throws TypeError for an account that is not a number, or a reverse address that is not a WebSocket address of this machine
 */
export function settle(options: SimulatorOptions): Settings {
  const selfId = options.selfId ?? '10000'
  if (parseId(selfId) === null) throw new TypeError(`selfId must be a positive decimal number, not "${selfId}"`)
  return {
    port: options.port ?? 0,
    selfId,
    token: options.token === undefined || options.token === '' ? null : options.token,
    profile: options.profile ?? 'napcat',
    reverse: options.reverse === undefined ? null : settleReverse(options.reverse),
    sharedDisk: options.sharedDisk ?? true,
    history: options.history ?? true,
    reportSelf: options.reportSelf ?? false,
    messageFormat: options.messageFormat ?? 'array',
    firstFrames: options.firstFrames ?? [],
    heartbeatInterval: options.heartbeatInterval ?? 30_000,
    groups: options.groups ?? defaultGroups,
    friends: options.friends ?? defaultFriends,
    anyTarget: options.anyTarget ?? false,
    clock: options.clock ?? (() => Date.now()),
    keep: options.keep ?? 10_000,
  }
}

function settleReverse({ url, token, redialInterval }: NonNullable<SimulatorOptions['reverse']>): Settings['reverse'] {
  const parsed = URL.canParse(url) ? new URL(url) : null
  if (parsed === null || !/^wss?:$/.test(parsed.protocol) || !isLoopbackHost(parsed.hostname)) {
    throw new TypeError(`the reverse address must be ws:// on this machine, not "${url}"`)
  }
  return { url, token: token ?? null, redialInterval: redialInterval ?? 1000 }
}
