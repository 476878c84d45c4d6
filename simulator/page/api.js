/** Relative to this module, so that the page works under any path. */
const base = new URL('api/', import.meta.url)

/** A refusal by the simulator. Its message can be shown to the reader. */
export class Refusal extends Error {}

/**
 * @param {'en' | 'zh'} language the language of the names
 * @returns {Promise<object>} the whole state: accounts, chats, messages
 */
export async function fetchState(language) {
  const response = await fetch(new URL(`state?lang=${language}`, base), { cache: 'no-store', signal: AbortSignal.timeout(10_000) })
  if (!response.ok) throw new Error(`state: HTTP ${response.status}`)
  return response.json()
}

/**
 * @param {'en' | 'zh'} language the language of the names
 * @returns {EventSource} the stream of new events
 */
export function openEvents(language) {
  return new EventSource(new URL(`events?lang=${language}`, base))
}

/** Posts to the simulator. */
async function post(name, body) {
  const response = await fetch(new URL(name, base), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  })
  if (response.ok) return
  const { error } = await response.json().catch(() => ({}))
  throw new Refusal(typeof error === 'string' ? error : `HTTP ${response.status}`)
}

/**
 * Posts a message of a member.
 * @param {{ type: 'group' | 'private', chat: string | number, user: string | number, text: string, reply?: number }} said
 *   `reply` is the ID of the quoted message
 * @throws {Refusal} when the simulator refuses; another error when it cannot be reached
 */
export async function say(said) {
  await post('say', said)
}

/**
 * Adds a reaction of a member to a message in a group, or removes it.
 * @param {{ chat: string | number, user: string | number, message: number, emoji: string, on: boolean }} reaction
 * @throws {Refusal} when the simulator refuses; another error when it cannot be reached
 */
export async function react(reaction) {
  await post('react', reaction)
}

/**
 * Sets a switch, for one chat or for all.
 * @param {string} name
 * @param {{ type: 'group' | 'private', id: string } | null} chat
 * @param {boolean} on
 * @param {number} [seconds] the length of a mute
 * @throws {Refusal} when the simulator refuses; another error when it cannot be reached
 */
export async function turn(name, chat, on, seconds) {
  await post('switch', chat === null ? { name, on } : { name, on, type: chat.type, chat: chat.id, seconds })
}
