import type { IncomingMessage, ServerResponse } from 'node:http'
import { pageChat, pageMessage, pageReactions, type PageLanguage } from './page-view'
import type { Platform, Watcher } from './platform'

const pingInterval = 15_000
// A page that reads too slowly is disconnected. It then reconnects and reloads the state.
const mostWaiting = 4 * 1024 * 1024

/** `GET /simulator/api/events`: new events, as server-sent events. */
export function serveEvents(platform: Platform, request: IncomingMessage, response: ServerResponse, language: PageLanguage): void {
  response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store' })
  if (request.method === 'HEAD') {
    response.end()
    return
  }
  response.write(': connected\n\n')
  const send = (event: string, data: object): void => {
    if (response.writableLength > mostWaiting) response.destroy()
    else response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  }
  const watcher: Watcher = {
    onMessage(message) {
      send('message', { chat: pageChat(platform, message.target, language), message: pageMessage(platform, message, language) })
    },
    onReaction(message) {
      send('reaction', { ...message.target, seq: message.seq, reactions: pageReactions(platform, message, language) })
    },
    onRecall({ target, seq }) {
      send('recall', { ...target, seq })
    },
    onRefusal(refusal) {
      send('refusal', refusal)
    },
    onSwitches() {
      send('switches', { on: platform.switches.list })
    },
    onConnection() {
      send('connection', { connected: platform.connections.size > 0 })
    },
  }
  platform.watchers.add(watcher)
  const ping = setInterval(() => {
    response.write(': ping\n\n')
  }, pingInterval)
  response.on('close', () => {
    clearInterval(ping)
    platform.watchers.delete(watcher)
  })
}
