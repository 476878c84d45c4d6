import { RelayError } from '../../errors'
import type { JsonObject } from '../../lib/shape'
import { address, demandObject, firstLine, firstOf, header, line, object, objects } from '../fields'
import { keyIn, signedIn, type Source } from '../source'
import { say } from '../../texts/text'
import { commentOf, commitsOf, only, pushOf, readersOf, readEvent, refOf, releaseOf, requestOf, stateOf, topicOf, type Reader, type ForgeReading } from './forge'

export const github: Source = {
  name: 'github',

  read({ headers, payload }) {
    const event = line(header(headers, 'x-github-event'))
    if (event === '') throw new RelayError('bad-request', say('no-event-header', { sender: 'GitHub', header: 'X-GitHub-Event' }))
    return readEvent(readers, event, payload, line(payload.action), {
      event,
      repo: line(object(payload.repository).full_name) || line(object(payload.organization).login),
      who: line(object(payload.sender).login, 40),
    })
  },

  keyOf: keyIn('x-github-delivery'),
  ...signedIn('x-hub-signature-256', 'sha256='),
}

const about = readersOf('GitHub')

/** The events that make messages. All others are skipped. */
const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['push', readPush],
  ['pull_request', about('pull_request', ['opened', 'closed', 'reopened', 'ready_for_review'], (request, action) =>
    requestOf(request, action === 'opened' && request.draft === true ? 'drafted' : action))],
  ['pull_request_review', about('review', ['submitted'], (review, _, payload) => {
    const state = line(review.state).toLowerCase()
    const { text, link: page } = commentOf(review)
    if (state === 'commented' && text === '') return { skipped: say('skip-for-comments') }
    const request = demandObject(payload, 'pull_request', 'GitHub')
    return { action: state, kind: 'pull_request', branch: line(object(request.base).ref), ...topicOf(request), text, link: page }
  })],
  ['issues', about('issue', ['opened', 'closed', 'reopened'], (issue, action) =>
    ({ action, kind: 'issue', result: line(issue.state_reason), ...topicOf(issue) }))],
  ['issue_comment', about('issue', ['created'], (issue, _, payload) => comment(payload, issue, 'pull_request' in issue ? 'pull_request' : 'issue'))],
  ['pull_request_review_comment', about('pull_request', ['created'], (request, _, payload) =>
    ({ ...comment(payload, request, 'pull_request'), branch: line(object(request.base).ref) }))],
  ['commit_comment', about('comment', ['created'], ({ commit_id: commit, ...fields }) =>
    ({ kind: 'commit', number: line(commit).slice(0, 7), ...commentOf(fields) }))],
  ['discussion', about('discussion', ['created', 'answered'], (discussion, action) => ({ action, kind: 'discussion', ...topicOf(discussion) }))],
  ['discussion_comment', about('discussion', ['created'], (discussion, _, payload) => comment(payload, discussion, 'discussion'))],
  ['release', about('release', ['published'], ({ tag_name: tag, name, body, prerelease, html_url: page }) =>
    ({ action: prerelease === true ? 'prereleased' : 'published', ...releaseOf(tag, name, notesOf(body), page) }))],
  ['workflow_run', about('workflow_run', ['requested', 'in_progress', 'completed'], (run, action, payload) => {
    const branch = line(run.head_branch, 250)
    return stateOf(action === 'completed' ? line(run.conclusion) : action, {
      branch,
      run: line(run.id, 20),
      ref: branch,
      name: firstOf(run.name, object(payload.workflow).name),
      number: line(run.run_number, 20),
      title: firstOf(run.display_title, firstLine(object(run.head_commit).message)),
      who: firstOf(object(run.triggering_actor).login, object(run.actor).login, object(payload.sender).login),
      link: address(run.html_url),
    })
  })],
  ['check_run', about('check_run', ['completed'], check => {
    if (object(check.app).slug === 'github-actions') return { skipped: say('skip-for-run') }
    const branch = line(object(check.check_suite).head_branch, 250)
    return stateOf(line(check.conclusion), {
      branch, ref: branch, name: line(check.name), title: line(object(check.output).title), who: '', link: address(check.html_url),
    })
  })],
  ['status', payload => {
    const branch = line(objects(payload.branches)[0]?.name, 250)
    return stateOf(line(payload.state), {
      branch,
      ref: branch,
      name: line(payload.context),
      title: firstOf(payload.description, firstLine(object(object(payload.commit).commit).message)),
      who: '',
      link: address(payload.target_url) || address(object(payload.commit).html_url),
    })
  }],
  ['deployment_status', readDeployment],
  ['package', about('package', ['published'], ({ name, html_url: page, package_version: version }) => {
    const { version: text, html_url: versionPage, container_metadata: container } = object(version)
    // The version of a container image is a hash.
    const number = firstOf(object(object(container).tag).name, text).replace(/^sha256:.*/, '')
    return { name: line(name), number, link: address(versionPage) || address(page) }
  })],
  ['gollum', payload => {
    const [page] = objects(payload.pages)
    if (!page) return { skipped: say('skip-no-page') }
    return { action: line(page.action), name: firstOf(page.title, page.page_name), text: line(page.summary), link: address(page.html_url) }
  }],
  ['repository', only(
    ['created', 'deleted', 'archived', 'unarchived', 'renamed', 'transferred', 'publicized', 'privatized'],
    (payload, action) => ({
      action,
      name: line(object(object(object(payload.changes).repository).name).from),
      link: action === 'deleted' ? '' : address(demandObject(payload, 'repository', 'GitHub').html_url),
    }),
  )],
  ['dependabot_alert', about('alert', ['created', 'reintroduced', 'reopened', 'auto_reopened'], (alert, action) => {
    const { summary, severity } = object(alert.security_advisory)
    const name = line(object(object(alert.dependency).package).name)
    return { action, name, title: line(summary), severity: line(severity), link: address(alert.html_url) }
  })],
  ['code_scanning_alert', about('alert', ['created', 'reopened', 'reopened_by_user'], ({ rule, tool, html_url: page }, action, payload) => {
    const { ref } = refOf(payload.ref)
    const { description, id, security_severity_level: level, severity } = object(rule)
    const title = firstOf(description, id)
    return { action, branch: ref, ref, name: line(object(tool).name), title, severity: firstOf(level, severity), link: address(page) }
  })],
  ['secret_scanning_alert', about('alert', ['created', 'reopened', 'publicly_leaked'], (alert, action) =>
    ({ action, title: firstOf(alert.secret_type_display_name, alert.secret_type), link: address(alert.html_url) }))],
])

function readPush(payload: JsonObject): ForgeReading {
  const commits = commitsOf(payload.commits, 0, line(object(payload.sender).login, 40))
  const action = payload.deleted === true ? 'deleted' : payload.created === true ? 'created' : ''
  const forced = payload.forced === true && action === ''
  return pushOf(refOf(payload.ref), action, commits, { forced, link: action === 'deleted' ? '' : address(payload.compare) })
}

function comment(payload: JsonObject, topic: JsonObject, kind: string): ForgeReading {
  return { kind, ...topicOf(topic), ...commentOf(demandObject(payload, 'comment', 'GitHub')) }
}

function readDeployment(payload: JsonObject): ForgeReading {
  const status = demandObject(payload, 'deployment_status', 'GitHub')
  const { ref: deployed, environment, creator } = object(payload.deployment)
  const ref = /^[0-9a-f]{40}$/.test(line(deployed)) ? '' : line(deployed, 250)
  const page = address(object(payload.repository).html_url)
  return stateOf(line(status.state), {
    branch: ref,
    ref,
    name: firstOf(status.environment, environment),
    title: line(status.description),
    who: firstOf(object(creator).login, object(payload.sender).login),
    link: address(status.environment_url) || address(status.target_url) || address(status.log_url) || address(page && `${page}/deployments`),
  })
}

/** Release notes without the links in notes generated by GitHub. */
function notesOf(body: unknown): unknown {
  return typeof body === 'string' ? body.slice(0, 4000).replace(/ by @[\w[\]-]+ in https:\S+/g, '').replace(/^\**Full Changelog.*$/m, '') : ''
}
