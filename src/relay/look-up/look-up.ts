import type { Target } from '../../message/model'
import { SendError, type Account, type Message } from '../../platform/port'
import type { DeliveriesTable } from '../delivery/deliveries-table'
import type { Limits } from '../limits'
import type { Finding, RunningOptions } from '../options'
import type { Claims, OpenCall } from './claims'

/** The kind of a platform message: `mixed` has images, mentions or a reply; `heavy` is a video or a voice message, which takes long. */
export type MessageKind = 'text' | 'mixed' | 'heavy' | 'file'

/** Whether a message of this kind may be sent again when no look-up can tell whether it arrived. */
export function isRepeatable(kind: MessageKind): boolean {
  return kind === 'text' || kind === 'mixed'
}

/** A platform message to look for. */
export interface Wanted {
  account: Account
  target: Target
  message: Message
  kind: MessageKind
  call: OpenCall
}

/** How many messages of the history are asked for: first as many as usually suffice, then more if these do not reach back far enough. */
const depths = [50, 500]
/** How many earlier deliveries of a chat are read from the file: as many as the history can show, and as many failures. */
const mostLearned = 1_000

/** Asks platforms whether messages without an answer have arrived. */
export class LookUps {
  private readonly learned = new Set<string>()

  constructor(private readonly context: RunningOptions & { claims: Claims, limits: Limits, table: DeliveriesTable }) {}

  /** Checks the platform's reports, then its history, once. A message that is found is claimed. */
  async look(wanted: Wanted): Promise<Finding> {
    const { claims, limits, observer } = this.context
    const { call } = wanted
    const known = foundAlready(wanted)
    if (known) return known
    const hasSettled = claims.settling(call.chat, call.likeness) === 0
    const kind = await this.search(wanted).catch((error: unknown) => {
      if (error instanceof SendError) limits.note(call.chat, error.limit)
      return 'silent' as const
    })
    // The answer may have come meanwhile, or another look-up may have found the message.
    const found = foundAlready(wanted)
    observer.lookedUp(found ? 'found' : kind)
    return found ?? { kind, messageIds: [], repeatableUntil: this.repeatableUntil(wanted, kind, hasSettled) }
  }

  /** @throws SendError as `Message.history` */
  private async search(wanted: Wanted): Promise<Finding['kind']> {
    const { claims, limits } = this.context
    const { message, call } = wanted
    this.learn(wanted)
    let kind = claims.find(call, message.reports?.())
    for (const depth of depths) {
      if (kind === 'found') break
      if (limits.rest(call.chat) > 0) return 'silent'
      const page = await message.history?.(depth)
      kind = claims.find(call, message.reports?.(), page)
      if (!page || claims.anchor(call, page) > -Infinity) break
    }
    return kind
  }

  /** As `Finding` has it, for a message that was not found. @param hasSettled whether its call had settled before the look-up */
  private repeatableUntil({ account, call, kind: sent, message: { idempotentFor = 0 } }: Wanted, kind: Finding['kind'], hasSettled: boolean): number {
    const isRisked = isRepeatable(sent) && this.takesRisk(account)
    const mayRepeat: Partial<Record<Finding['kind'], boolean>> = {
      'absent': hasSettled,
      'inconclusive': hasSettled && isRisked,
      'no-history': isRisked,
    }
    if (mayRepeat[kind]) return Infinity
    return this.context.claims.isStepped(call) ? -Infinity : call.begunAt + idempotentFor
  }

  /** Whether the settings have an account send a text again when no look-up can tell whether it arrived. */
  private takesRisk({ platform, retriesUnanswered: usual }: Account): boolean {
    const { retryUnanswered: asked } = this.context.policy
    return typeof asked === 'boolean' ? asked : asked[platform] ?? usual
  }

  /** Reads once what earlier processes have sent into a chat. @throws RelayError */
  private learn({ account, target, call: { chat } }: Wanted): void {
    const { claims, store, table } = this.context
    // Without a store, only what this process has sent is known.
    if (this.learned.has(chat) || store.failure) return
    claims.learn(chat, table.lastTo(account.sid, target, mostLearned))
    this.learned.add(chat)
  }
}

/** The result of a look-up that needs no question to the platform. The ID of a file in a history is not the one that callers know. */
function foundAlready({ call: { receipt, foundAs }, kind }: Wanted): Finding | undefined {
  const messageIds = receipt?.messageIds ?? (foundAs === undefined ? undefined : kind === 'file' ? [] : [foundAs])
  return messageIds && { kind: 'found', messageIds, repeatableUntil: -Infinity }
}
