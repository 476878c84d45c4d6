import { createHmac } from 'node:crypto'
import { RelayError } from '../../errors'
import { equalsSecret } from '../../lib/crypto'
import type { JsonObject } from '../../lib/shape'
import { isRecent } from '../../lib/webhook-signature'
import { address, firstOf, header, line, object, objects } from '../fields'
import { skip, type Source } from '../source'
import { commentOf, commitsOf, only, pushOf, readersOf, readEvent, refOf, topicOf, type Reader, type Told } from './forge'

/** How old a signature may be by Gitee's own rule, in milliseconds. */
const maxAge = 3_600_000

/** The header with the password or, in its place, a signature of nothing but the time. */
const tokenHeader = 'x-gitee-token'

export const gitee: Source = {
  name: 'gitee',

  read({ payload }) {
    const event = line(payload.hook_name).replace(/_hooks$/, '')
    if (event === '') throw new RelayError('bad-request', 'this is not a Gitee event: it has no hook_name')
    const repo = line(object(payload.repository).path_with_namespace)
    return readEvent(readers, event, payload, line(payload.action), { event, repo, who: nameOf(payload) })
  },

  keyHeader: tokenHeader,
  isSigned: ({ headers }) => header(headers, tokenHeader) !== '',
  verify({ headers }, secret) {
    const time = header(headers, 'x-gitee-timestamp')
    const signature = createHmac('sha256', secret).update(`${time}\n${secret}`).digest('base64')
    const token = header(headers, tokenHeader)
    // Its manual encodes the signature for an address; its requests have it as it is.
    return isRecent(time.slice(0, -3), maxAge) && [signature, encodeURIComponent(signature)].some(each => equalsSecret(token, each))
  },
}

const about = readersOf('Gitee')

/** What was done, in the words of the template. */
const actions: ReadonlyMap<string, string> = new Map([
  ['open', 'opened'], ['close', 'closed'], ['reopen', 'reopened'], ['merge', 'merged'], ['approved', 'approved'],
])
/** What was done to an issue that is in another state now. */
const states: ReadonlyMap<string, string> = new Map([['closed', 'closed'], ['rejected', 'closed'], ['open', 'reopened']])

/** The events that make messages. All others are skipped. */
const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['push', readPush],
  ['tag_push', readPush],
  ['merge_request', about('pull_request', [...actions.keys()], (request, action) => {
    const into = line(object(request.base).ref, 250)
    return { ...onRequest(request), action: actions.get(action) ?? action, ref: line(object(request.head).ref, 250), into }
  })],
  ['issue', about('issue', ['open', 'close', 'reopen', 'state_change'], (issue, action) => {
    const state = line(issue.state)
    const done = actions.get(action) ?? states.get(state)
    if (done === undefined) return skip('state', state)
    return { action: done, kind: 'issue', ...topicOf(issue), ...state === 'rejected' && { result: 'not_planned' } }
  })],
  ['note', only(['', 'comment'], ({ comment, pull_request: request, issue, short_commit_id: id }) => {
    const said = { action: 'commented', ...commentOf(object(comment)) }
    if (request) return { ...onRequest(object(request)), ...said }
    if (issue) return { kind: 'issue', ...topicOf(object(issue)), ...said }
    return { kind: 'commit', number: firstOf(id, line(object(comment).commit_id).slice(0, 7)), ...said }
  })],
])

function onRequest(request: JsonObject) {
  return { branch: line(object(request.base).ref, 250), kind: 'pull_request', ...topicOf(request) }
}

/** The name that the user chose; many logins are made up by Gitee. */
function nameOf({ sender }: JsonObject): string {
  const { name, login } = object(sender)
  return line(firstOf(name, login), 40)
}

function readPush(payload: JsonObject): Told {
  const { kind, ref } = refOf(payload.ref)
  const action = payload.created === true ? 'created' : payload.deleted === true ? 'deleted' : ''
  const list = objects(payload.commits, Infinity)
  const commits = commitsOf(list[0]?.id === payload.after ? list.toReversed() : list, payload.total_commits_count, nameOf(payload))
  const page = address(object(payload.repository).html_url)
  return pushOf({ kind, ref }, action, commits, {
    // The template knows one event for both.
    event: 'push',
    link: action === '' ? address(payload.compare) : action === 'created' ? address(page && `${page}/tree/${encodeURI(ref)}`) : '',
  })
}
