import { RelayError } from '../../errors'
import type { JsonObject } from '../../message/parse'
import { lines, linkOf, objectOf, objectsOf, textOf } from '../fields'
import { fromDiscord } from '../markup'
import { discordShape } from '../shapes'
import type { Source } from '../source'

/** Webhooks of Discord ("Execute Webhook"): content and embeds. */
export const discord: Source = {
  name: 'discord',
  shape: discordShape,
  read({ payload }) {
    const text = markup(payload.content)
    const embeds = objectsOf(payload.embeds).map(readEmbed)
    if (text === undefined && embeds.every(embed => Object.values(embed).every(value => value === undefined))) {
      throw new RelayError('bad-request', 'there is neither content nor an embed with text')
    }
    return { name: 'message', view: { sender: textOf(payload.username), text, embeds } }
  },
}

function readEmbed({ title, description, url, timestamp, author, footer, fields, image }: JsonObject): JsonObject {
  const named = objectsOf(fields).map(({ name, value }) => [markup(name), markup(value)].filter(Boolean).join(': '))
  return {
    author: textOf(objectOf(author).name),
    title: markup(title),
    text: lines(markup(description), ...named),
    link: linkOf(url),
    footer: textOf(objectOf(footer).text),
    time: textOf(timestamp),
    picture: linkOf(objectOf(image).url),
  }
}

function markup(value: unknown): string | undefined {
  const text = textOf(value)
  return text === undefined ? undefined : fromDiscord(text)
}
