import type { IncomingMessage } from 'node:http'
import { isRecord, parseId, parseJson, parseText } from './parse'
import type { Platform } from './platform'
import type { Saying } from './types'

const largestBody = 64 * 1024

/** Reads the body of `POST /simulator/api/say`: `{ type, chat, user, text }`. */
export async function readSaying(request: IncomingMessage, platform: Platform): Promise<{ saying: Saying } | { error: string }> {
  // Only this type: a form of another site can be sent without asking, JSON cannot.
  if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) return { error: 'the body must be application/json' }
  const text = await readBody(request)
  if (text === null) return { error: 'the body must not be larger than 64 KiB' }
  return parseSaying(parseJson(text)?.value, platform)
}

function parseSaying(body: unknown, { world }: Platform): { saying: Saying } | { error: string } {
  if (!isRecord(body)) return { error: 'the body must be a JSON object' }
  const text = parseText(body.text)
  if (text === null) return { error: 'text must not be empty' }
  const chat = parseId(body.chat)
  if (chat === null) return { error: 'chat must be the id of a chat' }
  switch (body.type) {
    case 'private':
      return { saying: { user: chat, text } }
    case 'group': {
      const user = parseId(body.user)
      const group = world.groups.get(chat)
      if (group === undefined) return { error: `there is no group ${chat}` }
      if (user === null || user === world.self.id || !group.members.has(user)) return { error: 'user must be a member of the group' }
      return { saying: { group: chat, user, text } }
    }
    default:
      return { error: 'type must be group or private' }
  }
}

async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  let size = 0
  const body: AsyncIterable<Buffer> = request.iterator({ destroyOnReturn: false })
  for await (const chunk of body) {
    size += chunk.length
    if (size > largestBody) {
      // The rest is read and thrown away, so that the refusal reaches the sender.
      request.resume()
      return null
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
