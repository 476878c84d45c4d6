// What GitHub, GitLab and Gitea have in common: the view that their templates are given.
import type { JsonObject } from '../../lib/shape'
import { address, count, demandObject, firstLine, firstOf, line, object, objects } from '../fields'
import { excerpt } from '../markup'
import { skip, started, type Reading } from '../source'

/** How many commits of a push are named. */
const maxCommits = 5

const noCommits: readonly Readonly<Record<'id' | 'title' | 'who', string>>[] = []

/** What a template is given of an event. Each field is there; one without a meaning for the event is empty, zero or false. */
const nothing = {
  event: '',
  /** What was done, in the sender's word: `opened`, `merged`, `published`. */
  action: '',
  /** Owner and name of the repository. */
  repo: '',
  /** Who did it. */
  who: '',
  /** What it was done to, where there are several kinds: `branch`, `tag`, `issue`, `pull_request`. */
  kind: '',
  /** The name of a workflow, a check, an environment, a package or a page; the earlier name of a repository. */
  name: '',
  /** Of an issue, a pull request or a run: `12`. */
  number: '',
  title: '',
  /** The beginning of a comment or of notes, in up to three lines. */
  text: '',
  /** The branch or the tag. */
  ref: '',
  /** The branch that a pull request is to be merged into. */
  into: '',
  /** How it ended, as in `?status=`, and in the sender's own word. */
  status: '',
  result: '',
  severity: '',
  /** The last commits of a push, the newest last; how many there are in all, and how many are not named. */
  commits: noCommits,
  total: 0,
  more: 0,
  forced: false,
  link: '',
}

type ForgeView = Readonly<typeof nothing>

/** An event as its reader tells it, or why it makes no message. */
export type Told = Event | { skipped: string }

/** The fields of an event that are not common to all. */
export type Event = Partial<ForgeView> & {
  branch?: string
  /** The ID of the run of a workflow or pipeline that it is about. */
  run?: string
}

/** What has a number of its own, so that its events make a thread. */
const topics: ReadonlySet<string | undefined> = new Set(['issue', 'pull_request', 'merge_request', 'discussion'])

/** Reads an event of one kind. */
export type Reader = (payload: JsonObject, action: string) => Told

/**
 * Reads an event.
 *
 * @param readers those of the kinds of events that are told; all others are skipped
 * @param common what is told of every event, unless its reader tells it otherwise
 */
export function readEvent(
  readers: ReadonlyMap<string, Reader>, kind: string, payload: JsonObject, action: string, common: Pick<ForgeView, 'event' | 'repo' | 'who'>,
): Reading {
  const reader = readers.get(kind)
  if (!reader) return { skipped: `${kind} events produce no message` }
  const told = reader(payload, action)
  if ('skipped' in told) return told
  const { branch, run = '', ...view } = told
  const topic = topics.has(view.kind) && view.number ? `${view.kind} ${view.number}` : run && `run ${run}`
  return {
    name: common.event,
    ...topic && { thread: `${view.repo ?? common.repo} ${topic}` },
    ...branch && { branch },
    ...view.status && { status: view.status },
    view: { ...nothing, ...common, ...view },
  }
}

/** Reads some actions of an event, and skips the others. */
export function only(actions: readonly string[], reader: Reader): Reader {
  return (payload, action) => actions.includes(action) ? reader(payload, action) : skip('action', action)
}

/** Reads some actions of an event about the object in one field of its payload. */
type ReaderAbout = (
  field: string, actions: readonly string[], read: (subject: JsonObject, action: string, payload: JsonObject) => Told,
) => Reader

/** @param sender its name, for the error where the object is missing */
export function readersOf(sender: string): ReaderAbout {
  return (field, actions, read) => only(actions, (payload, action) => read(demandObject(payload, field, sender), action, payload))
}

/** Tells how a run, a check or a deployment has ended, unless it was left out, and that a run has begun. */
export function stateOf(result: string, told: Event): Told {
  const status = statuses.get(result)
  return status === undefined || (status === started && !told.run) ? skip('state', result) : { ...told, result, status }
}

/** The states that somebody wants to hear of, and the word for `?status=` of what the senders call by several. */
const statuses: ReadonlyMap<string, string> = new Map([
  ['success', 'success'], ['failure', 'failure'], ['failed', 'failure'], ['error', 'failure'], ['timed_out', 'failure'],
  ['requested', started], ['in_progress', started], ['running', started], ['startup_failure', 'failure'], ['action_required', 'action_required'], ['cancelled', 'cancelled'], ['canceled', 'cancelled'],
])

/** A release, of which name and notes are told as far as they say more than the tag. */
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
 * @param value as they came, the newest last
 * @param total how many there are, where more were pushed than were sent
 * @param who who pushed, and need not be named with each of them
 */
export function commitsOf(value: unknown, total: unknown, who: string): Pick<ForgeView, 'commits' | 'total' | 'more'> {
  const list = objects(value, Infinity)
  const commits = list.slice(-maxCommits).map(({ id, message, author }) => ({
    id: line(id).slice(0, 7),
    title: firstLine(message, 100),
    who: authorOf(author, who),
  }))
  const all = Math.max(list.length, count(total))
  // Some push without the commits, but with their number.
  return { commits, total: all, more: commits.length === 0 ? 0 : all - commits.length }
}

/**
 * Reads a push: of a branch with its commits, as far as it is still there.
 *
 * @param ref the full name of what was pushed
 * @param more what else there is to tell
 */
export function pushOf(
  ref: { kind: 'branch' | 'tag', ref: string }, action: string, commits: ReturnType<typeof commitsOf>, more: Partial<ForgeView>,
): Told {
  if (action === '' && commits.total === 0 && !more.forced) return { skipped: 'it brings no commits' }
  // A tag has commits of its own only where they were pushed with a branch as well.
  const isBranch = ref.kind === 'branch'
  return { ...isBranch && { branch: ref.ref }, ...ref, action, ...isBranch && action !== 'deleted' && commits, ...more }
}

function authorOf(author: unknown, who: string): string {
  const [fields] = objects([author])
  const names = [fields?.username, fields?.name].map(each => line(each, 40)).filter(each => each !== '')
  return names.includes(who) ? '' : names[0] ?? ''
}

/** The branch or tag behind `refs/heads/` or `refs/tags/`. */
export function refOf(value: unknown): { kind: 'branch' | 'tag', ref: string } {
  const ref = line(value, 250)
  return ref.startsWith('refs/tags/')
    ? { kind: 'tag', ref: ref.slice('refs/tags/'.length) }
    : { kind: 'branch', ref: ref.replace(/^refs\/heads\//, '') }
}

/** Whether a hash consists of zeros, which stands for a branch or tag that is not there before or after a push. */
export function isZero(hash: unknown): boolean {
  return typeof hash === 'string' && /^0+$/.test(hash)
}

/** Number, title and page of an issue or a pull request. */
export function topicOf({ number, title, html_url: page }: JsonObject): Pick<ForgeView, 'number' | 'title' | 'link'> {
  return { number: line(number, 20), title: line(title), link: address(page) }
}

/** A pull request that was opened, closed or merged, in the form of GitHub; Gogs has fields of its own for its branches. */
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

/** The beginning of a comment, and its page. */
export function commentOf({ body, html_url: page }: JsonObject): Pick<ForgeView, 'text' | 'link'> {
  return { text: excerpt(body), link: address(page) }
}
