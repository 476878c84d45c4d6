import { RelayError } from '../../errors'
import { isHmac } from '../../lib/crypto'
import type { JsonObject } from '../../lib/shape'
import { address, demandObject, firstLine, firstOf, header, line, object, objects } from '../fields'
import { excerpt } from '../markup'
import { keyIn, type SignedRequest, type Source } from '../source'
import { say } from '../../texts/text'
import { commentOf, commitsOf, isZero, only, pushOf, readersOf, readEvent, refOf, releaseOf, requestOf, stateOf, topicOf, type Reader, type ForgeReading } from './forge'

/** The variants of a header for the three forges. Forgejo and Gitea send all variants, Gogs only its own. */
function named(what: string): string[] {
  return ['x-forgejo', 'x-gitea', 'x-gogs'].map(name => `${name}-${what}`)
}

export const gitea: Source = {
  name: 'gitea',

  read({ headers, payload }) {
    const event = line(header(headers, ...named('event')))
    if (event === '') throw new RelayError('bad-request', say('no-event-header', { sender: 'Gitea', header: 'X-Gitea-Event' }))
    return readEvent(readers, event, payload, line(payload.action), {
      event,
      repo: firstOf(object(payload.repository).full_name, object(object(payload.run).repository).full_name),
      who: nameOf(payload.sender),
    })
  },

  keyOf: keyIn(...named('delivery')),
  isSigned: ({ headers }) => signatureOf(headers) !== '',
  verify: (request, secret) => isHmac(signatureOf(request.headers), secret, signedBytes(request)),
}

/** The signature; empty without a secret, because the headers are then sent with empty values. */
function signatureOf(headers: SignedRequest['headers']): string {
  return header(headers, ...named('signature')) || header(headers, 'x-hub-signature-256').replace(/^sha256=/, '')
}

/** The signed bytes of each request, cached because they are needed once per key. */
const signed = new WeakMap<SignedRequest, Buffer | string>()

/** The bytes of the JSON: the body, or the only field of a form. */
function signedBytes(request: SignedRequest): Buffer | string {
  const known = signed.get(request)
  if (known !== undefined) return known
  const isForm = header(request.headers, 'content-type').startsWith('application/x-www-form-urlencoded')
  const bytes = isForm ? new URLSearchParams(/[^&]*/.exec(request.raw.toString('latin1'))?.[0]).get('payload') ?? '' : request.raw
  signed.set(request, bytes)
  return bytes
}

function nameOf(user: unknown): string {
  const { login, username } = object(user)
  return line(firstOf(login, username), 40)
}

const about = readersOf('Gitea')

const comments: Reader = only(['created'], payload => {
  const issue = object(payload.issue ?? payload.pull_request)
  const isRequest = payload.is_pull === true || 'pull_request' in payload || Boolean(issue.pull_request)
  return { kind: isRequest ? 'pull_request' : 'issue', ...topicOf(issue), ...commentOf(demandObject(payload, 'comment', 'Gitea')) }
})

/** The events that make messages. All others are skipped. */
const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['push', readPush],
  ['create', payload => {
    const { ref } = refOf(payload.ref)
    if (payload.ref_type !== 'tag') return { skipped: say('skip-branch-created') }
    return { action: 'created', kind: 'tag', ref, link: pageOf(payload, `src/tag/${ref}`) }
  }],
  ['delete', payload => {
    const { ref } = refOf(payload.ref)
    const kind = payload.ref_type === 'tag' ? 'tag' : 'branch'
    return { ...kind === 'branch' && { branch: ref }, action: 'deleted', kind, ref }
  }],
  ['pull_request', about('pull_request', ['opened', 'closed', 'reopened'], requestOf)],
  ['pull_request_approved', readReview],
  ['pull_request_rejected', readReview],
  ['pull_request_comment', payload => payload.review ? readReview(payload) : comments(payload, line(payload.action))],
  ['issues', about('issue', ['opened', 'closed', 'reopened'], (issue, action, payload) => {
    const topic = topicOf(issue)
    // An issue of Gogs has no link.
    return { action, kind: 'issue', ...topic, link: topic.link || pageOf(payload, `issues/${topic.number}`) }
  })],
  ['issue_comment', comments],
  ['release', about('release', ['published'], ({ tag_name: tag, name, body, prerelease, html_url: page }) =>
    ({ action: prerelease === true ? 'prereleased' : 'published', ...releaseOf(tag, name, body, page) }))],
  ['wiki', only(['created', 'edited', 'deleted'], (payload, action) =>
    ({ action, name: line(payload.page), text: excerpt(payload.comment), link: pageOf(payload, 'wiki') }))],
  ['repository', only(['created', 'deleted'], (payload, action) => ({ action, link: action === 'deleted' ? '' : pageOf(payload) }))],
  ['package', about('package', ['created'], ({ name, version, html_url: page }) =>
    ({ name: line(name), number: line(version, 60), link: address(page) }))],
  ['status', payload => {
    const page = address(payload.target_url)
    // Gitea's own runs have a status for each job.
    if (page.includes('/actions/runs/')) return { skipped: say('skip-for-run') }
    return stateOf(line(payload.state), { name: line(payload.context), title: line(payload.description), who: '', link: page })
  }],
  ['workflow_run', about('workflow_run', ['requested', 'in_progress', 'completed'], (run, action, payload) => {
    const branch = line(run.head_branch, 250)
    const path = line(run.path, 250)
    return stateOf(action === 'completed' ? line(run.conclusion) : action, {
      run: line(run.id, 20),
      ...branch !== '' && { branch },
      ref: branch || refOfPath(path),
      name: firstOf(object(payload.workflow).name, path.replace(/@.*/, '')),
      number: line(run.run_number, 20),
      title: line(run.display_title),
      who: nameOf(run.actor) || nameOf(payload.sender),
      link: address(run.html_url),
    })
  })],
  ['action_run_failure', readActionRun],
  ['action_run_recover', readActionRun],
  ['action_run_success', readActionRun],
])

/** A page of the repository, for events without a link. */
function pageOf({ repository }: JsonObject, path = ''): string {
  const page = address(object(repository).html_url)
  return page === '' ? '' : address(path === '' ? page : `${page}/${encodeURI(path)}`)
}

/** The pull request or tag of a run that has no branch. Only the path has it: `ci.yaml@refs/pull/12/head`. */
function refOfPath(path: string): string {
  const [, request, tag = ''] = /@refs\/(?:pull\/(\d+)\/|tags\/(.+))/.exec(path) ?? []
  return request === undefined ? tag : `#${request}`
}

function readPush(payload: JsonObject): ForgeReading {
  const { kind, ref } = refOf(payload.ref)
  if (kind === 'tag') return { skipped: say('skip-tag-push') }
  // In the payload the newest is first, unlike on GitHub.
  const newestLast = objects(payload.commits, Infinity).toReversed()
  const commits = commitsOf(newestLast, payload.total_commits, nameOf(payload.pusher) || nameOf(payload.sender))
  // A test delivery has zeros for both hashes, and a fake commit. The push of a deleted branch has no commits; `delete` makes its message.
  const action = isZero(payload.before) && !isZero(payload.after) ? 'created' : ''
  return pushOf({ kind, ref }, action, commits, { link: address(payload.compare_url) || pageOf(payload, `src/branch/${ref}`) })
}

function readReview(payload: JsonObject): ForgeReading {
  const request = demandObject(payload, 'pull_request', 'Gitea')
  const { type, content } = object(payload.review)
  const [, result = ''] = /^pull_request_review_(approved|rejected|comment)$/.exec(line(type)) ?? []
  // A review without a text also makes a message, because no other event reports its comments on lines.
  return { action: result, kind: 'pull_request', branch: line(object(request.base).ref), ...topicOf(request), text: excerpt(content) }
}

/** A run of Forgejo's own Actions. */
function readActionRun(payload: JsonObject): ForgeReading {
  const run = demandObject(payload, 'run', 'Forgejo')
  // `main`, or `#12` for a pull request.
  const ref = line(run.prettyref, 250)
  return stateOf(line(run.status), {
    run: line(run.id, 20),
    ...!ref.startsWith('#') && { branch: ref },
    action: line(payload.action),
    ref,
    name: line(run.workflow_id),
    number: line(run.index_in_repo, 20),
    title: firstLine(run.title),
    who: nameOf(run.trigger_user),
    link: address(run.html_url),
  })
}
