// Incidents, beats, people and rotas, as the relay shows them. An absent time is an empty text.
import { useStorage } from '@koishijs/client'
import { ask, change, levels, originOf, pathOf, writeSeconds, type Result } from './admin'
import { fieldsOf, listOf, numberOf, textOf, textsOf, wordsOf, type Fields } from './fields'

/** Who sits at this browser: the name of a person, or any other; empty until it was asked for. */
export const me = useStorage('message-relay-person', 1, () => ({ name: '' }))

export const unresolved = 'open,taken,silenced'

export function readIncident(fields: Fields) {
  return {
    id: textOf(fields.id), name: textOf(fields.name), state: textOf(fields.state), severity: textOf(fields.severity),
    title: textOf(fields.title), thread: textOf(fields.thread), owner: textOf(fields.owner), since: textOf(fields.since),
    takenAt: textOf(fields.taken_at), silencedUntil: textOf(fields.silenced_until), resolvedAt: textOf(fields.resolved_at),
    nextStepAt: textOf(fields.next_step_at), events: numberOf(fields.events), timeline: listOf(fields.timeline),
  }
}

export type Incident = ReturnType<typeof readIncident>
export type Action = 'take' | 'silence' | 'resolve' | 'release'

/** Puts what nobody has taken first, and the worst of it. */
function rank({ state, severity }: Incident): number {
  return state === 'resolved' ? 0 : 10 * unresolved.split(',').indexOf(state) + levels.findIndex(level => level === severity)
}

/**
 * Lists incidents by their rank, the newest first.
 *
 * @param state one state, or several with commas in between
 * @param target the name of a target; empty for all
 */
export function loadIncidents(state: string, target = ''): Promise<Result<Incident[]>> {
  return ask(({ incidents }) => listOf(incidents).map(readIncident).sort((a, b) => rank(a) - rank(b)), 'GET', `/incidents?${new URLSearchParams({ state, ...target && { target } })}`)
}

export const loadIncident = (id: string): Promise<Result<Incident>> => ask(readIncident, 'GET', `/incidents/${encodeURIComponent(id)}`)

/** @param until the end of a silence */
export function actOn(id: string, action: Action, until?: Date): Promise<Result<undefined>> {
  return change('POST', `/incidents/${encodeURIComponent(id)}/${action}`, { by: me.value.name, ...until && { until: until.toISOString() } })
}

function readBeat(fields: Fields) {
  return {
    name: textOf(fields.name), state: textOf(fields.state), last: textOf(fields.last), next: textOf(fields.next),
    /** In milliseconds; absent until a start and an end are known. */
    duration: typeof fields.duration === 'number' ? fields.duration * 1000 : undefined,
    every: writeSeconds(fields.every), cron: textOf(fields.cron), zone: textOf(fields.zone), grace: writeSeconds(fields.grace),
    /** Targets and names. */
    to: wordsOf(textOf(fields.target)), severity: textOf(fields.severity), origin: originOf(fields),
    /** The path of its pings; empty in lists. */
    ping: textOf(fields.ping).replace(/^.*(?=\/ping\/)/, ''),
  }
}

export type Beat = ReturnType<typeof readBeat>

export const loadBeats = (): Promise<Result<Beat[]>> => ask(({ beats }) => listOf(beats).map(readBeat), 'GET', '/beats')

/** A beat with the path of its pings. */
export const loadBeat = (name: string): Promise<Result<Beat>> => ask(readBeat, 'GET', pathOf('beats', name))

/** The form of a beat. */
export interface BeatWish extends Pick<Beat, 'name' | 'every' | 'cron' | 'zone' | 'grace' | 'to' | 'severity'> { mode: 'every' | 'cron' }

export function saveBeat({ name, mode, every, cron, zone, grace, to, severity }: BeatWish): Promise<Result<undefined>> {
  return change('PUT', pathOf('beats', name), { ...mode === 'cron' ? { cron, zone } : { every }, grace, to, severity })
}

export function changeBeat(name: string, action: 'pause' | 'resume' | 'rotate'): Promise<Result<undefined>> {
  return change('POST', `${pathOf('beats', name)}/${action}`)
}

/** Somebody who can be called by `@`, with the accounts by platform. */
function readPerson(fields: Fields) {
  const { name: called, ...accounts } = fieldsOf(fields.person)
  const entries = Object.entries(accounts).map(([platform, id]) => [platform, textOf(id)] as const)
  return { name: textOf(fields.name), called: textOf(called), accounts: Object.fromEntries(entries), origin: originOf(fields) }
}

export type Person = ReturnType<typeof readPerson>

/** People who take turns, and the stand-ins. */
function readRota(fields: Fields) {
  return {
    name: textOf(fields.name), people: textsOf(fields.people), every: writeSeconds(fields.every), from: textOf(fields.from),
    zone: textOf(fields.zone),
    /** Who has it, and until when. */
    now: textOf(fields.now), until: textOf(fields.until),
    swaps: listOf(fields.swaps).map(({ from, until, who }) => ({ from: textOf(from), until: textOf(until), who: textOf(who) })),
    origin: originOf(fields),
  }
}

export type Rota = ReturnType<typeof readRota>

export const loadPeople = (): Promise<Result<Person[]>> => ask(({ people }) => listOf(people).map(readPerson), 'GET', '/people')
export const loadRotas = (): Promise<Result<Rota[]>> => ask(({ rotas }) => listOf(rotas).map(readRota), 'GET', '/rotas')

export function savePerson({ name, called, accounts }: Omit<Person, 'origin'>): Promise<Result<undefined>> {
  const known = Object.entries(accounts).filter(([, id]) => id.trim() !== '')
  return change('PUT', pathOf('people', name), { ...Object.fromEntries(known), ...called && { name: called } })
}

export function saveRota({ name, people, every, from, zone }: Pick<Rota, 'name' | 'people' | 'every' | 'from' | 'zone'>): Promise<Result<undefined>> {
  return change('PUT', pathOf('rotas', name), { people, every, from, zone })
}

/** Has somebody stand in for whose turn it is. */
export function swap(rota: string, { from, until, who }: Rota['swaps'][number]): Promise<Result<undefined>> {
  return change('POST', `${pathOf('rotas', rota)}/swaps`, { from, until, who })
}

export const remove = (kind: 'people' | 'rotas' | 'beats', name: string): Promise<Result<undefined>> => change('DELETE', pathOf(kind, name))
