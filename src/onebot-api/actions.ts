import { RelayError } from '../errors'
import { parseHandling } from '../http/preferences'
import type { Exchange } from '../http/routes'
import { ofDelivery, type Order, type Sender } from '../http/sender'
import type { JsonObject } from '../lib/shape'
import type { Item, Target } from '../message/model'
import { parseId } from '../message/parse'
import { writeTarget } from '../message/target'
import { isUnfinished, messageIdsOf, resultOf } from '../relay/delivery/delivery'
import type { Relay } from '../relay/relay'
import { either, mustBe } from '../lib/words'
import { say } from '../texts/text'
import { writeId, type Reply } from './answer'
import { parseFile, parseMessage } from './message'
import { readFlag } from './params'

/** The version of this package; a test compares them. */
const version = '1.0.0'

/** One call of an action. */
export interface Call {
  exchange: Exchange
  params: JsonObject
}

/** @throws RelayError */
export type Action = (call: Call) => Promise<Reply> | Reply

/** The parts of the relay that the actions need. */
export interface ActionOptions {
  relay: Relay
  sender: Sender
}

/** The message that a call asks to send. */
interface Message {
  target: Target
  items: Item[]
}

/** Read the parameters of the actions that send, by the names of the actions. */
const sendActions: Readonly<Record<string, (params: JsonObject) => Message>> = {
  send_msg: params => ({ target: readTarget(params, kindOf(params)), items: readMessage(params) }),
  send_group_msg: params => ({ target: readTarget(params, 'group'), items: readMessage(params) }),
  send_private_msg: params => ({ target: readTarget(params, 'private'), items: readMessage(params) }),
  upload_group_file: params => ({ target: readTarget(params, 'group'), items: [parseFile(params.file, params.name)] }),
  upload_private_file: params => ({ target: readTarget(params, 'private'), items: [parseFile(params.file, params.name)] }),
}

/** The supported actions of OneBot 11, by name. Actions that send also exist with the suffix `_async`. */
export function actionsOf({ relay, sender }: ActionOptions): ReadonlyMap<string, Action> {
  const actions = new Map<string, Action>([
    ['delete_msg', call => recall(relay, call)],
    ['get_status', () => {
      const isOnline = relay.inquiries.candidate({})?.isOnline === true
      return { data: { online: isOnline, good: isOnline } }
    }],
    ['get_version_info', () => ({ data: { app_name: 'koishi-plugin-message-relay', app_version: version, protocol_version: 'v11' } })],
    ['get_login_info', () => {
      const { id, name } = relay.inquiries.sender({})
      return { data: { user_id: writeId(id), nickname: name } }
    }],
    ['get_group_list', call => listGroups(relay, call)],
    ['can_send_image', () => ({ data: { yes: true } })],
    ['can_send_record', () => ({ data: { yes: true } })],
  ])
  for (const [name, read] of Object.entries(sendActions)) {
    actions.set(name, call => send(sender, call, read(call.params), false))
    actions.set(`${name}_async`, call => send(sender, call, read(call.params), true))
  }
  return actions
}

async function send(sender: Sender, { exchange }: Call, { target, items }: Message, isAsync: boolean): Promise<Reply> {
  const { query, request } = exchange
  const { key, isDry } = parseHandling(request.headers, query)
  const destination = { target, bot: {}, asked: writeTarget(target) }
  const order: Order = {
    door: 'onebot', content: { mode: 'single', items }, destinations: { list: [destination], isList: false }, isDry,
    ...key !== undefined && { key }, ...isAsync && { deferred: { wait: 0 } },
  }
  sender.admit(exchange, order)
  if (isDry) return { data: (await sender.send(exchange, order)).data }
  const { delivery, headers } = await sender.deliver(exchange, order, destination)
  const named = { delivery_id: delivery.id }
  const log = delivery.state
  if (isAsync || isUnfinished(delivery.state)) return { data: named, isAsync: true, headers, log }
  const result = resultOf(delivery)
  if (!result?.success) throw ofDelivery(result?.error ?? new RelayError('internal'), delivery.id, headers)
  const told = { headers: { ...headers, 'Relay-Outcome': 'sent' }, log }
  if (items.every(({ type }) => type === 'file')) return { data: named, ...told }
  // The first message contains the mentions and the reply, and the text, unless the platform sends that separately.
  const [first] = messageIdsOf(delivery)
  return { data: { message_id: first === undefined ? null : writeId(first), ...named }, ...told }
}

async function recall(relay: Relay, { exchange, params }: Call): Promise<Reply> {
  const { caller } = exchange
  const messageId = parseId(params, 'message_id')
  if (messageId === undefined) throw new RelayError('bad-request', say('required', { field: 'message_id' }))
  caller.spend(1)
  await relay.inquiries.recall(messageId, await relay.history(), (target, platform) => caller.maySendTo(target, platform))
  return { data: null }
}

async function listGroups(relay: Relay, { exchange: { caller } }: Call): Promise<Reply> {
  const { platform, id: selfId } = relay.inquiries.sender({})
  const groups = await relay.inquiries.contacts({ platform, selfId }, 'group')
  const allowed = groups.filter(({ id }) => caller.maySendTo({ kind: 'group', id }, platform))
  return { data: allowed.map(({ id, name }) => ({ group_id: writeId(id), group_name: name })) }
}

function readMessage(params: JsonObject): Item[] {
  return parseMessage(params.message, readFlag(params, 'auto_escape'))
}

function readTarget(params: JsonObject, kind: Target['kind']): Target {
  const field = kind === 'group' ? 'group_id' : 'user_id'
  const id = parseId(params, field)
  if (id === undefined) throw new RelayError('bad-request', say('required', { field }))
  // Without the group, implementations reach no member of a group who is not a friend.
  const group = kind === 'private' && parseId(params, 'group_id')
  return { kind, id, ...group && { group } }
}

/** The kind of the target of `send_msg`: by `message_type`, or else by the given ID. */
function kindOf(params: JsonObject): Target['kind'] {
  const { message_type: type } = params
  if (type === 'group' || type === 'private') return type
  if (type !== undefined && type !== '') throw new RelayError('bad-request', mustBe('message_type', either('group', 'private')))
  return parseId(params, 'group_id') === undefined ? 'private' : 'group'
}
