import { Announcer } from './announcer.js'
import { Composer } from './composer.js'
import { Header } from './render-header.js'
import { initialLanguage, rememberLanguage } from './i18n.js'
import { Log } from './log.js'
import { ChatList } from './render-list.js'
import { Conversation } from './render-conversation.js'
import { RefusalNotice } from './refusal.js'
import { Switches } from './switches.js'
import { createViewer } from './viewer.js'
import { selectedChat, Store } from './store.js'
import { startSync } from './sync.js'

const store = new Store(initialLanguage())
const composer = new Composer(() => log.stick())
const log = new Log({
  openImage: createViewer(),
  quote: message => composer.quote(message),
  react: (message, emoji) => void composer.react(message, emoji),
})
const header = new Header(() => {
  const language = store.state.language === 'en' ? 'zh' : 'en'
  rememberLanguage(language)
  store.set({ language })
  sync()
})
const list = new ChatList()
const conversation = new Conversation(log, composer)
const switches = new Switches()
const refusal = new RefusalNotice(() => store.set({ refusalClosed: store.state.refusal?.time ?? 0 }))
const announcer = new Announcer()

/** The width below which only the list or only the conversation is shown; the same as in the style sheets. */
const narrow = matchMedia('(max-width: 719px)')

function render() {
  const { state } = store
  const chat = selectedChat(state)
  header.render(state)
  list.render(state, narrow.matches && state.route === '' ? undefined : chat)
  conversation.render(chat, state)
  switches.render(chat, state)
  refusal.render(state)
  announcer.render(chat, state)
}

// A burst of messages is rendered once per frame. A page in the background has no frames, but its title shows the unread count.
let frame = 0
let timer
function schedule() {
  if (frame !== 0) return
  const run = () => {
    cancelAnimationFrame(frame)
    clearTimeout(timer)
    frame = 0
    render()
  }
  frame = requestAnimationFrame(run)
  timer = setTimeout(run, 250)
}

/** Messages count as read while their conversation is visible. */
function updateReading() {
  store.set({ reading: document.visibilityState === 'visible' && (!narrow.matches || document.body.dataset.view === 'chat') })
}

/** The address contains the chat, so that Back works and a reload keeps it. */
function route() {
  let key = ''
  try {
    key = decodeURIComponent(location.hash.slice(1))
  } catch {
    // A malformed address selects no chat.
  }
  document.body.dataset.view = key === '' ? 'list' : 'chat'
  store.set({ route: key })
  updateReading()
}

/** Renders again after midnight, because "today" is then wrong. */
function renewAtMidnight() {
  const now = new Date()
  setTimeout(() => {
    store.set()
    renewAtMidnight()
  }, new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1).getTime() - now.getTime() + 1000)
}

/** On a narrow screen the other side disappears, and the focus with it. This moves the focus to the new side. */
function followRoute() {
  const before = store.state.route
  route()
  if (!narrow.matches) return
  if (store.state.route === '') document.querySelector(`[data-chat="${CSS.escape(before)}"]`)?.focus()
  else document.getElementById('back')?.focus()
}

addEventListener('hashchange', followRoute)
narrow.addEventListener('change', updateReading)
document.addEventListener('visibilitychange', updateReading)
store.subscribe(schedule)
route()
render()
renewAtMidnight()
const sync = startSync(store)
