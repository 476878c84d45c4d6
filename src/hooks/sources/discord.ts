import { RelayError } from '../../errors'
import type { JsonObject } from '../../lib/shape'
import { address, date, joinLines, labelled, line, object, objects, textOf } from '../fields'
import { fromDiscord } from '../markup'
import { discordShape } from '../shapes'
import type { Source } from '../source'

/** Webhooks of Discord ("Execute Webhook"): content and embeds. */
export const discord: Source = {
  name: 'discord',
  shape: discordShape,
  read({ payload }) {
    const text = fromDiscord(payload.content)
    const embeds = objects(payload.embeds).map(readEmbed).filter(embed => Object.values(embed).some(value => value !== ''))
    if (text === '' && embeds.length === 0) throw new RelayError('bad-request', 'there is neither content nor an embed with text')
    return { name: 'message', view: { sender: line(payload.username), text, embeds } }
  },
}

function readEmbed({ title, description, url, timestamp, author, footer, fields, image }: JsonObject): JsonObject {
  return {
    author: textOf(object(author).name),
    title: fromDiscord(title),
    text: joinLines(fromDiscord(description), ...objects(fields).map(({ name, value }) => labelled(fromDiscord(name), fromDiscord(value)))),
    link: address(url),
    footer: textOf(object(footer).text),
    time: date(timestamp),
    picture: address(object(image).url),
  }
}
