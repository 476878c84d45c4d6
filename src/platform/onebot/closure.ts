import { within } from '../../lib/async'
import { fieldsOf, toText, type JsonObject } from '../../lib/shape'
import type { Target } from '../../message/model'
import { forgive } from '../failure'
import type { Closure } from '../port'
import { toNumber } from './message'

/** How long the platform may take to tell what the bot may do in a group, in milliseconds. */
const roleTime = 5_000

/** An account, and how the data of an answer is had from its platform. */
interface Asker {
  readonly selfId: string
  ask(action: string, params: JsonObject): Promise<unknown>
}

/**
 * Asks whether a group takes messages from the bot now. All implementations but Lagrange tell until when the bot is muted; NapCat and
 * LuckyLilliaBot tell whether everybody is.
 *
 * @returns `undefined` where the platform cannot tell
 * @throws SendError
 */
export async function askClosure(account: Asker, { kind, id }: Target): Promise<Closure | 'open' | undefined> {
  if (kind === 'private') return
  const { shut_up_timestamp: seconds, role } = await memberInfo(account, id)
  if (typeof seconds !== 'number') return
  if (seconds * 1000 > Date.now()) return { cause: 'muted', until: seconds * 1000 }
  if (isPrivileged(role)) return 'open'
  const isShut = isEverybodyMuted(await ask(account, 'get_group_info', { group_id: toNumber(id), no_cache: true }))
  if (isShut === undefined) return
  return isShut ? { cause: 'all-muted', until: null } : 'open'
}

/**
 * Whether everybody is muted, `undefined` where the platform does not say. NapCat has −1 for that and 0 otherwise; LuckyLilliaBot has until
 * when, in seconds. Sources: NapNeko/NapCatQQ `packages/napcat-onebot/helper/data.ts`; LLOneBot/LuckyLilliaBot
 * `src/onebot11/action/group/GetGroupInfo.ts`.
 */
function isEverybodyMuted({ group_all_shut: shut, shut_up_all_timestamp: seconds }: JsonObject): boolean | undefined {
  if (typeof shut === 'number') return shut !== 0
  if (typeof seconds === 'number') return seconds * 1000 > Date.now()
}

/**
 * Reads the notices that the platform has muted the bot, or everybody, in a group, or that it has ended that. The sessions of the adapter
 * have them, however the bot is connected.
 */
export class ClosureNotices {
  /** The last notice about each group. */
  private readonly last = new Map<string, JsonObject>()

  constructor(private readonly account: Asker) {}

  /** Tells what follows from an event, if it is such a notice. */
  async hear(event: JsonObject, tell: (target: Target, closure: Closure | 'open') => void): Promise<void> {
    if (event.post_type !== 'notice' || event.notice_type !== 'group_ban') return
    const { account, last } = this
    const [id, user, seconds] = [toText(event.group_id), toText(event.user_id), Number(event.duration)]
    const isEverybody = user === '0'
    if (!id || (!isEverybody && user !== account.selfId)) return
    last.set(id, event)
    const isOpen = event.sub_type === 'lift_ban'
    const target: Target = { kind: 'group', id }
    // The bot may be muted besides, or everybody. Of what has ended, the answer may be old; LuckyLilliaBot refuses until it knows.
    const left = isOpen ? await within(() => askClosure(account, target), roleTime) : undefined
    const isExempt = !isOpen && isEverybody && isPrivileged((await within(() => memberInfo(account, id), roleTime))?.role)
    // Another notice may have come meanwhile.
    if (last.get(id) !== event || isExempt) return
    const until = !isEverybody && seconds > 0 ? Date.now() + seconds * 1000 : null
    const cause = isEverybody ? 'all-muted' : 'muted'
    const other = typeof left === 'object' && left.cause !== cause ? left : 'open'
    tell(target, isOpen ? other : { cause, until })
  }
}

/** Whether a member may speak while everybody is muted. */
function isPrivileged(role: unknown): boolean {
  return role === 'owner' || role === 'admin'
}

function memberInfo(account: Asker, group: string): Promise<JsonObject> {
  // NapCat answers from what it knows already unless told not to.
  return ask(account, 'get_group_member_info', { group_id: toNumber(group), user_id: toNumber(account.selfId), no_cache: true })
}

/** Asks for some fields; there are none where the platform does not know the action. @throws SendError */
async function ask(account: Asker, action: string, params: JsonObject): Promise<JsonObject> {
  return fieldsOf(await account.ask(action, params).catch(forgive('unknown-action', undefined)))
}
