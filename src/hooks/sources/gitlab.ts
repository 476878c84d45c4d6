import { RelayError } from '../../errors'
import { sha256 } from '../../lib/crypto'
import type { JsonObject } from '../../lib/shape'
import { isSignedWith } from '../../lib/webhook-signature'
import { address, count, demandObject, firstLine, firstOf, header, line, object, objects } from '../fields'
import { excerpt } from '../markup'
import { skip, type Source } from '../source'
import { say } from '../../texts/text'
import { commitsOf, isZero, only, pushOf, readersOf, readEvent, refOf, releaseOf, stateOf, type Event, type Reader, type ForgeReading } from './forge'

/** The most failed jobs of a pipeline that a message lists. */
const maxJobs = 5

export const gitlab: Source = {
  name: 'gitlab',

  read({ headers, payload }) {
    const kind = firstOf(payload.object_kind, payload.event_name)
    if (kind === '' && 'before' in payload) return { skipped: say('skip-codeup-test') }
    if (kind === '') throw new RelayError('bad-request', say('no-event-field', { sender: 'GitLab', field: 'object_kind' }))
    const user = object(payload.user)
    return readEvent(readers, kind, payload, line(object(payload.object_attributes).action), {
      event: eventOf(header(headers, 'x-gitlab-event'), kind),
      repo: projectOf(payload),
      who: line(firstOf(user.name, user.username, payload.user_name, payload.user_username), 40),
    })
  },

  keyOf({ headers, raw }) {
    const id = header(headers, 'webhook-id', 'idempotency-key')
    if (id !== '') return { text: id }
    // Several events of one push can have the same UUID.
    const event = header(headers, 'x-gitlab-event-uuid')
    return event === '' ? undefined : { text: `${event} ${sha256(raw).toString('hex')}` }
  },

  keyHeader: 'x-gitlab-token',
  isSigned: ({ headers }) => header(headers, 'webhook-signature') !== '',
  verify: ({ headers, raw }, secret) => isSignedWith(secret, {
    id: header(headers, 'webhook-id'), timestamp: header(headers, 'webhook-timestamp'), signature: header(headers, 'webhook-signature'), body: raw,
  }),
}

/** `merge_request` for `Merge Request Hook`; the kind for events of system hooks. */
function eventOf(name: string, kind: string): string {
  const [, words] = /^([A-Za-z ]{1,60}) Hook$/.exec(name) ?? []
  if (words === undefined || words === 'System') return kind === 'build' ? 'job' : kind
  return words.toLowerCase().replaceAll(' ', '_')
}

/** The project. Codeup and other forges that use GitLab's format leave out `project`, as did older versions of GitLab. */
function projectOf({ project, project_name: name, group, repository, object_attributes: attributes }: JsonObject): string {
  const { full_path: path, group_path: older } = object(group)
  const { name: target } = object(object(attributes).target)
  return firstOf(object(project).path_with_namespace, name, path, older, object(project).name, object(repository).name, target)
}

const about = readersOf('GitLab')
const issues = about('object_attributes', ['open', 'close', 'reopen'], (issue, action) => ({ action, kind: 'issue', ...topicOf(issue) }))

/** The events that make messages, by `object_kind`. All others are skipped. */
const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['push', readPush],
  ['tag_push', readPush],
  ['merge_request', about('object_attributes', ['open', 'close', 'reopen', 'merge', 'approved', 'approval'], (request, action) => {
    const into = line(request.target_branch, 250)
    const ref = line(request.source_branch, 250)
    // `approval` is one of several required approvals.
    return { branch: into, action: action === 'approval' ? 'approved' : action, kind: 'merge_request', ref, into, ...topicOf(request) }
  })],
  ['issue', issues],
  ['work_item', issues],
  // Until GitLab 16.11, comments had no action, and edits were not sent.
  ['note', only(['', 'create'], readNote)],
  ['pipeline', readPipeline],
  ['build', readJob],
  ['deployment', readDeployment],
  ['release', payload => {
    const { action, tag, name, description, url } = payload
    // The payload does not name the author of the release.
    return action === 'create' ? { action: 'create', who: '', ...releaseOf(tag, name, description, url) } : skip('action', line(action))
  }],
  ['wiki_page', (payload, action) => {
    const { title, message, url } = attributesOf(payload)
    return { action, name: line(title), title: line(message), link: action === 'delete' ? '' : address(url) }
  }],
  ['feature_flag', payload => {
    const { name, active, description } = attributesOf(payload)
    return { action: active === true ? 'on' : 'off', name: line(name), title: line(description), link: address(object(payload.project).web_url) }
  }],
  ['access_token', payload => {
    const { name, expires_at: expires } = attributesOf(payload)
    return { name: line(name), title: line(expires), repo: firstOf(projectOf(payload), object(payload.group).group_name), who: '' }
  }],
  ['vulnerability', payload => {
    const { title, state, severity, url } = attributesOf(payload)
    if (state !== 'detected') return skip('state', line(state))
    return { title: line(title), severity: line(severity), link: address(url) }
  }],
])

function attributesOf(payload: JsonObject): JsonObject {
  return demandObject(payload, 'object_attributes', 'GitLab')
}

function readPush(payload: JsonObject): ForgeReading {
  const { kind, ref } = refOf(payload.ref)
  const commits = commitsOf(payload.commits, payload.total_commits_count, line(payload.user_name, 40))
  const action = isZero(payload.after) ? 'deleted' : isZero(payload.before) ? 'created' : ''
  return pushOf({ kind, ref }, action, commits, {
    text: kind === 'tag' ? excerpt(payload.message) : '', link: action === 'deleted' ? '' : pageOf(payload, ref, action),
  })
}

/** The page of a push: the comparison, or the commits of a new branch or tag. The payload has no link to either. */
function pageOf({ project, repository, before, after }: JsonObject, ref: string, action: string): string {
  const page = address(object(project).web_url)
  if (page === '') return address(object(repository).homepage)
  const [from, to] = [before, after].map(hash => /^[0-9a-f]{12}/.exec(line(hash))?.[0] ?? '')
  return address(action === '' ? `${page}/-/compare/${from}...${to}` : `${page}/-/commits/${encodeURI(ref)}`)
}

function readNote(payload: JsonObject): ForgeReading {
  const { note, system, url } = attributesOf(payload)
  if (system === true) return { skipped: say('skip-own-note') }
  const comment = { action: 'comment', text: excerpt(note), link: address(url) }
  const { merge_request: request, issue, commit } = payload
  if (request) return { ...topicOf(object(request)), kind: 'merge_request', branch: line(object(request).target_branch, 250), ...comment }
  if (issue) return { ...topicOf(object(issue)), kind: 'issue', ...comment }
  if (commit) return { kind: 'commit', number: line(object(commit).id).slice(0, 7), title: firstLine(object(commit).message), ...comment }
  return { kind: 'snippet', title: line(object(payload.snippet).title), ...comment }
}

function topicOf({ iid, title, url }: JsonObject): Pick<Event, 'number' | 'title' | 'link'> {
  return { number: line(iid, 20), title: line(title), link: address(url) }
}

function readPipeline(payload: JsonObject): ForgeReading {
  const { status, ref, tag, id, name, url } = attributesOf(payload)
  const branch = line(ref, 250)
  const page = address(object(payload.project).web_url)
  const failed = objects(payload.builds, Infinity).filter(build => build.status === 'failed' && build.allow_failure !== true)
  return stateOf(line(status), {
    ...tag !== true && { branch },
    ref: branch,
    run: line(id, 20),
    number: line(id, 20),
    name: line(name),
    title: firstLine(object(payload.commit).message),
    text: failed.slice(0, maxJobs).map(build => line(build.name, 60)).filter(each => each !== '').join(', '),
    more: Math.max(0, failed.length - maxJobs),
    link: address(url) || address(page && `${page}/-/pipelines/${count(id)}`),
  })
}

function readJob(payload: JsonObject): ForgeReading {
  const { build_status: status, build_allow_failure: mayFail, build_failure_reason: reason, build_id: id, ref, tag } = payload
  if (status !== 'failed' || mayFail === true) return { skipped: say('skip-job') }
  const branch = line(ref, 250)
  const request = /^refs\/merge-requests\/(\d+)\//.exec(branch)?.[1]
  const page = firstOf(object(payload.project).web_url, object(payload.repository).homepage)
  return stateOf('failed', {
    run: line(payload.pipeline_id, 20),
    ...tag !== true && request === undefined && { branch },
    ref: request === undefined ? branch : `!${request}`,
    name: line(payload.build_name),
    title: firstLine(object(payload.commit).message),
    text: line(reason).replaceAll('_', ' '),
    link: address(page && `${page}/-/jobs/${count(id)}`),
  })
}

function readDeployment(payload: JsonObject): ForgeReading {
  const ref = line(payload.ref, 250)
  return stateOf(line(payload.status), {
    branch: ref,
    ref,
    name: line(payload.environment),
    title: line(payload.commit_title),
    link: address(payload.environment_external_url) || address(payload.deployable_url),
  })
}
