// The common parts of GitHub, GitLab, Gitea and Gitee: the readers of events, and the data for their templates.
import type { JsonObject } from '../../lib/shape'
import { address, count, demandObject, firstLine, firstOf, line, object, objects } from '../fields'
import { excerpt } from '../markup'
import { skip, started, type Reading } from '../source'
import { say, type Text } from '../../texts/text'

/** The most commits of a push that a message lists. */
const maxCommits = 5

const noCommits: readonly Readonly<Record<'id' | 'title' | 'who', string>>[] = []

/** The data of an event for its template. Every field is present; one that does not apply to the event is empty, zero or false. */
const emptyView = {
  event: '',
  /** The action in the sender's word: `opened`, `merged`, `published`. */
  action: '',
  /** Owner and name of the repository. */
  repo: '',
  /** The user who caused the event. */
  who: '',
  /** The kind of its subject, if there are several kinds: `branch`, `tag`, `issue`, `pull_request`. */
  kind: '',
  /** The name of a workflow, a check, an environment, a package or a page; the previous name of a repository. */
  name: '',
  /** The number of an issue, a pull request or a run: `12`. */
  number: '',
  title: '',
  /** The beginning of a comment or of release notes. */
  text: '',
  /** The branch or the tag. */
  ref: '',
  /** The branch into which a pull request is merged. */
  into: '',
  /** The result: in the word of `?status=`, and in the sender's word. */
  status: '',
  result: '',
  severity: '',
  /** The last commits of a push, the newest last; the number of all commits, and of those not listed. */
  commits: noCommits,
  total: 0,
  more: 0,
  forced: false,
  link: '',
}

type ForgeView = Readonly<typeof emptyView>

/** The result of a reader: an event, or the reason why it makes no message. */
export type ForgeReading = Event | { skipped: Text }

/** The fields that a reader sets. */
export type Event = Partial<ForgeView> & {
  branch?: string
  /** The ID of the workflow or pipeline run. */
  run?: string
}

/** The kinds of subjects with numbers, whose events form a thread. */
const topics: ReadonlySet<string | undefined> = new Set(['issue', 'pull_request', 'merge_request', 'discussion'])

/** Reads an event of one kind. */
export type Reader = (payload: JsonObject, action: string) => ForgeReading

/**
 * Reads an event.
 *
 * @param readers the readers by kind of event; other kinds are skipped
 * @param common fields of every event, which its reader may override
 */
export function readEvent(
  readers: ReadonlyMap<string, Reader>, kind: string, payload: JsonObject, action: string, common: Pick<ForgeView, 'event' | 'repo' | 'who'>,
): Reading {
  const reader = readers.get(kind)
  if (!reader) return { skipped: say('skip-kind', { kind }) }
  const reading = reader(payload, action)
  if ('skipped' in reading) return reading
  const { branch, run = '', ...view } = reading
  const topic = topics.has(view.kind) && view.number ? `${view.kind} ${view.number}` : run && `run ${run}`
  return {
    name: common.event,
    ...topic && { thread: `${view.repo ?? common.repo} ${topic}` },
    ...branch && { branch },
    ...view.status && { status: view.status },
    view: { ...emptyView, ...common, ...view },
  }
}

/** A reader of some actions of an event that skips the others. */
export function only(actions: readonly string[], reader: Reader): Reader {
  return (payload, action) => actions.includes(action) ? reader(payload, action) : skip('action', action)
}

/** Creates a reader of some actions of an event about the object in one field of its payload. */
type ReaderAbout = (
  field: string, actions: readonly string[], read: (subject: JsonObject, action: string, payload: JsonObject) => ForgeReading,
) => Reader

/** @param sender the name of the sender, for the error if the object is missing */
export function readersOf(sender: string): ReaderAbout {
  return (field, actions, read) => only(actions, (payload, action) => read(demandObject(payload, field, sender), action, payload))
}

/** Adds the status of a run, a check or a deployment to its event. Skips other states, and the start of anything but a run. */
export function stateOf(result: string, event: Event): ForgeReading {
  const status = statuses.get(result)
  return status === undefined || (status === started && !event.run) ? skip('state', result) : { ...event, result, status }
}

/** The states that make messages, with the word for each in `?status=`: senders have several words for the same. */
const statuses: ReadonlyMap<string, string> = new Map([
  ['success', 'success'], ['failure', 'failure'], ['failed', 'failure'], ['error', 'failure'], ['timed_out', 'failure'],
  ['requested', started], ['in_progress', started], ['running', started], ['startup_failure', 'failure'], ['action_required', 'action_required'], ['cancelled', 'cancelled'], ['canceled', 'cancelled'],
])

/** A release. The title, and the first line of the notes, are left out if they only repeat the tag or title. */
export function releaseOf(tag: unknown, title: unknown, notes: unknown, page: unknown): Pick<ForgeView, 'name' | 'title' | 'text' | 'link'> {
  const name = line(tag)
  const heading = line(title)
  const [first = '', ...others] = excerpt(notes, 6, 400).split('\n')
  const text = [first === name || first === heading ? '' : first, ...others].filter(each => each !== '').join('\n')
  return { name, title: heading === name ? '' : heading, text, link: address(page) }
}

/**
 * The commits of a push.
 *
 * @param value the list of the payload, the newest last
 * @param total the number of all pushed commits, if the payload may have fewer
 * @param who the user who pushed, whose name is left out of the commits
 */
export function commitsOf(value: unknown, total: unknown, who: string): Pick<ForgeView, 'commits' | 'total' | 'more'> {
  const list = objects(value, Infinity)
  const commits = list.slice(-maxCommits).map(({ id, message, author }) => ({
    id: line(id).slice(0, 7),
    title: firstLine(message, 100),
    who: authorOf(author, who),
  }))
  const all = Math.max(list.length, count(total))
  // Some payloads have the number of commits without the commits.
  return { commits, total: all, more: commits.length === 0 ? 0 : all - commits.length }
}

/**
 * Reads a push. A branch that still exists has its commits.
 *
 * @param ref the branch or tag that was pushed
 * @param more further fields of the event
 */
export function pushOf(
  ref: { kind: 'branch' | 'tag', ref: string }, action: string, commits: ReturnType<typeof commitsOf>, more: Partial<ForgeView>,
): ForgeReading {
  if (action === '' && commits.total === 0 && !more.forced) return { skipped: say('skip-no-commits') }
  // Commits of a pushed tag are left out, because they were pushed with a branch too.
  const isBranch = ref.kind === 'branch'
  return { ...isBranch && { branch: ref.ref }, ...ref, action, ...isBranch && action !== 'deleted' && commits, ...more }
}

function authorOf(author: unknown, who: string): string {
  const [fields] = objects([author])
  const names = [fields?.username, fields?.name].map(each => line(each, 40)).filter(each => each !== '')
  return names.includes(who) ? '' : names[0] ?? ''
}

/** The branch or tag of a full name with `refs/heads/` or `refs/tags/`. */
export function refOf(value: unknown): { kind: 'branch' | 'tag', ref: string } {
  const ref = line(value, 250)
  return ref.startsWith('refs/tags/')
    ? { kind: 'tag', ref: ref.slice('refs/tags/'.length) }
    : { kind: 'branch', ref: ref.replace(/^refs\/heads\//, '') }
}

/** Whether a hash is all zeros: the branch or tag does not exist before or after the push. */
export function isZero(hash: unknown): boolean {
  return typeof hash === 'string' && /^0+$/.test(hash)
}

/** The number, title and link of an issue or a pull request. */
export function topicOf({ number, title, html_url: page }: JsonObject): Pick<ForgeView, 'number' | 'title' | 'link'> {
  return { number: line(number, 20), title: line(title), link: address(page) }
}

/** An opened, closed or merged pull request in the form of GitHub. Gogs has other fields for the branches. */
export function requestOf(request: JsonObject, action: string): Event {
  const into = firstOf(object(request.base).ref, request.base_branch)
  return {
    branch: into,
    action: action === 'closed' && request.merged === true ? 'merged' : action,
    kind: 'pull_request',
    ref: firstOf(object(request.head).ref, request.head_branch),
    into,
    ...topicOf(request),
  }
}

/** The beginning and the link of a comment. */
export function commentOf({ body, html_url: page }: JsonObject): Pick<ForgeView, 'text' | 'link'> {
  return { text: excerpt(body), link: address(page) }
}
