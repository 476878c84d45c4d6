import { fetchState, openEvents } from './api.js'

/** The wait before a new attempt if the browser makes none itself, in milliseconds. */
const RETRY_MS = 1000

/**
 * Keeps the store in sync with the simulator. Whenever the event stream opens, the whole state is fetched. Events that arrive meanwhile are
 * held, and then applied if their seq is past that state, so that no message is missed or duplicated.
 * @param {import('./store.js').Store} store
 * @returns {() => void} begins again, in the present language
 */
export function startSync(store) {
  /** @type {{ kind: string, data: object }[] | null} */
  let held = []
  let generation = 0
  /** @type {EventSource} */
  let source
  let retry

  function apply({ kind, data }, after = 0) {
    if (kind === 'connection') store.set({ connected: data.connected })
    else if (kind === 'switches') store.set({ switches: data.on })
    else if (kind === 'refusal') store.set({ refusal: data })
    else if (kind === 'recall') store.remove(data)
    else if (kind === 'reaction') store.react(data)
    else if (data.message.seq > after) store.append(data.chat, data.message)
  }

  function receive(kind, event) {
    const item = { kind, data: JSON.parse(event.data) }
    if (held) held.push(item)
    else apply(item)
  }

  async function refetch() {
    const mine = ++generation
    held = []
    try {
      const snapshot = await fetchState(store.state.language)
      // The stream was opened again and has begun its own fetch; this answer may be older.
      if (mine !== generation) return
      const newest = snapshot.chats.reduce((seq, chat) => Math.max(seq, chat.messages.at(-1)?.seq ?? 0), 0)
      store.replace(snapshot)
      const waiting = held
      held = null
      for (const item of waiting) apply(item, newest)
      store.set({ online: true })
    } catch (error) {
      console.warn(error)
      setTimeout(() => {
        if (mine === generation) void refetch()
      }, RETRY_MS)
    }
  }

  function open() {
    source?.close()
    clearTimeout(retry)
    source = openEvents(store.state.language)
    source.addEventListener('open', () => void refetch())
    for (const kind of ['message', 'reaction', 'recall', 'connection', 'switches', 'refusal']) source.addEventListener(kind, event => receive(kind, event))
    source.addEventListener('error', () => {
      store.set({ online: false })
      // EventSource reconnects after a broken connection, but gives up after an HTTP error.
      if (source.readyState === EventSource.CLOSED) retry = setTimeout(open, RETRY_MS)
    })
  }

  open()
  return open
}
