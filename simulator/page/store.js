/**
 * @typedef {{ key: string, type: 'group' | 'private', id: string | number, name: string, members: { id: string | number, name: string }[],
 *   messages: object[], byId: Map<string, object>, readSeq: number, unread: number }} Chat
 */

/** How many messages per chat a page keeps when it stays open for days. Between two clearings there are up to twice as many. */
const KEEP = 10_000

/** The key of a chat in the address bar and in every map of this page. */
export function keyOf(chat) {
  return `${chat.type}-${chat.id}`
}

/** The seq of a chat's last message, or 0 if it has none. */
export function lastSeq(chat) {
  return chat.messages.at(-1)?.seq ?? 0
}

/** The chat whose conversation is shown: the one in the address, or else the one chosen at the first load. */
export function selectedChat(state) {
  return state.chats.get(state.route) ?? state.chats.get(state.fallback)
}

/** Chats by their last activity; those without any come last, in the simulator's order. */
export function chatsByActivity(state) {
  return [...state.chats.values()].sort((one, other) => lastSeq(other) - lastSeq(one))
}

/** The entry of a switch that is on at exactly this place; `chat` is null for all chats. */
export function switchOn(state, name, chat) {
  return state.switches.find(({ name: other, target }) => (
    other === name && (chat === null ? target === null : target !== null && keyOf(target) === keyOf(chat))
  ))
}

/** Whether a switch is on at exactly this place. */
export function isOn(state, name, chat) {
  return switchOn(state, name, chat) !== undefined
}

/** The number of unread messages in all chats. */
export function totalUnread(state) {
  let sum = 0
  for (const chat of state.chats.values()) sum += chat.unread
  return sum
}

/** The only state of the page. Only these methods change it; everything shown is rendered from it. */
export class Store {
  #listeners = new Set()

  /** @param {'en' | 'zh'} language */
  constructor(language) {
    this.state = {
      language,
      loaded: false,
      /** Whether this page is connected to the simulator. */
      online: false,
      /** Whether a bot is connected to the simulator. */
      connected: false,
      self: { id: '', name: '' },
      profile: '',
      endpoint: '',
      /** The switches that are on; `target` is null for all chats, `until` is when a mute ends. */
      switches: [],
      /** The last refused send, unless the reader has closed it. */
      refusal: null,
      /** The time of the last refusal that the reader has closed. */
      refusalClosed: 0,
      /** @type {Map<string, Chat>} */
      chats: new Map(),
      /** The chat key in the address bar; empty for the list. */
      route: '',
      fallback: '',
      /** Whether the conversation is visible now, so that its messages count as read. */
      reading: false,
    }
  }

  /** Calls the listener after every change. */
  subscribe(listener) {
    this.#listeners.add(listener)
  }

  /** Replaces the state with one fetched from the simulator, which is authoritative: it may have been restarted. */
  replace({ chats, selfId, selfName, ...snapshot }) {
    const { state } = this
    state.chats = new Map(chats.map(chat => [keyOf(chat), merged(chat, state.chats.get(keyOf(chat)), state.loaded)]))
    Object.assign(state, snapshot, { self: { id: selfId, name: selfName }, loaded: true })
    if (!state.chats.has(state.fallback)) state.fallback = chatsByActivity(state)[0]?.key ?? ''
    this.#changed()
  }

  /** Adds a new message. A known one is left alone. */
  append(chat, message) {
    const key = keyOf(chat)
    let known = this.state.chats.get(key)
    if (!known) this.state.chats.set(key, known = merged({ ...chat, messages: [] }, undefined, true))
    known.name = chat.name
    known.members = chat.members
    if (message.seq > lastSeq(known)) {
      known.messages.push(message)
      if (message.id !== null) known.byId.set(String(message.id), message)
      known.unread++
      if (known.messages.length > 2 * KEEP) this.state.chats.set(key, { ...known, ...indexed(known.messages.slice(-KEEP)) })
    }
    this.#changed()
  }

  /** Replaces the reactions to a message. It stays the same object, so that its rendered node stays, too. */
  react({ type, id, seq, reactions }) {
    const message = this.state.chats.get(keyOf({ type, id }))?.messages.find(each => each.seq === seq)
    if (message) message.reactions = reactions
    this.#changed()
  }

  /** Removes a recalled message. */
  remove({ type, id, seq }) {
    const key = keyOf({ type, id })
    const chat = this.state.chats.get(key)
    if (!chat) return
    const messages = chat.messages.filter(message => message.seq !== seq)
    this.state.chats.set(key, { ...chat, ...indexed(messages), unread: unreadIn(messages, chat.readSeq) })
    this.#changed()
  }

  /** Changes fields of the state. Without changes, it only renders again, for parts that depend on the clock. */
  set(changes = {}) {
    Object.assign(this.state, changes)
    this.#changed()
  }

  #changed() {
    const chat = this.state.reading ? selectedChat(this.state) : undefined
    if (chat) {
      chat.unread = 0
      chat.readSeq = lastSeq(chat)
    }
    for (const listener of this.#listeners) listener(this.state)
  }
}

/**
 * Merges a fetched chat with the known one, and keeps what the simulator does not know. Equal messages stay the same objects, so that their
 * rendered nodes stay too: a video keeps playing through a reconnect.
 */
function merged(chat, known, loaded) {
  const old = new Map(known?.messages.map(message => [message.seq, message]))
  const fetched = chat.messages.map(message => {
    const same = old.get(message.seq)
    return same && JSON.stringify(same) === JSON.stringify(message) ? same : message
  })
  // The simulator returns only the end of a long chat. Known earlier messages stay only if both parts join. Otherwise there would be a gap,
  // or messages from before a restart of the simulator.
  const join = fetched.length > 0 && known ? known.messages.indexOf(fetched[0]) : -1
  const messages = join > 0 ? [...known.messages.slice(0, join), ...fetched] : fetched
  const last = messages.at(-1)?.seq ?? 0
  // Messages from before the page was opened do not count as unread. A lower seq means that the simulator was restarted.
  const readSeq = !loaded ? last : known && known.readSeq <= last ? known.readSeq : 0
  return {
    key: keyOf(chat),
    type: chat.type,
    id: chat.id,
    name: chat.name,
    members: chat.members,
    ...indexed(messages),
    readSeq,
    unread: unreadIn(messages, readSeq),
  }
}

function unreadIn(messages, readSeq) {
  return messages.filter(message => message.seq > readSeq).length
}

/** Messages with an index by ID, to find what a reply refers to. */
function indexed(messages) {
  return { messages, byId: new Map(messages.filter(message => message.id !== null).map(message => [String(message.id), message])) }
}
