import { RelayError } from '../../errors'
import type { JsonObject } from '../../lib/shape'
import { address, date, joinLines, labelled, line, linked, object, objects, textOf } from '../fields'
import { fromDiscord, readerOf, type Reader } from '../markup'
import { discordShape } from '../shapes'
import type { Source } from '../source'

/** The most levels of nested components that are read: containers contain sections. */
const maxDepth = 4

/** Webhooks of Discord ("Execute Webhook"): content, embeds and components, each of which is enough for a message. */
export const discord: Source = {
  name: 'discord',
  takesTail: true,
  shape: discordShape,
  read({ payload, format }) {
    const read = readerOf(format, fromDiscord)
    const text = read(payload.content)
    const embeds = objects(payload.embeds).map(embed => readEmbed(embed, read)).filter(embed => Object.values(embed).some(value => value !== ''))
    const all = objects(payload.components).flatMap(component => within(component))
    const components = joinLines(...all.map(readComponent))
    const pictures = all.flatMap(picturesOf)
    if ([text, components].every(each => each === '') && embeds.length === 0 && pictures.length === 0) {
      throw new RelayError('bad-request', 'there is neither content nor an embed or a component with text')
    }
    return { name: 'message', view: { sender: line(payload.username), text, embeds, components, pictures } }
  },
}

function readEmbed({ title, description, url, timestamp, author, footer, fields, image }: JsonObject, read: Reader): JsonObject {
  return {
    author: textOf(object(author).name),
    title: read(title),
    text: joinLines(read(description), ...objects(fields).map(({ name, value }) => labelled(read(name), read(value)))),
    link: address(url),
    footer: textOf(object(footer).text),
    time: date(timestamp),
    picture: address(object(image).url),
  }
}

/** A component and its inner components: `developers/components/reference.mdx` of discord-api-docs. */
function within(component: JsonObject, depth = 0): JsonObject[] {
  if (depth > maxDepth) return []
  const inner = [...objects(component.components), object(component.accessory)]
  return [component, ...inner.flatMap(each => within(each, depth + 1))]
}

/** The text of a component, or the link of a button. */
function readComponent({ content, label, url }: JsonObject): string {
  const link = address(url)
  // A button without a link has no use in another chat.
  return link === '' ? fromDiscord(content) : linked(textOf(label), link)
}

/** The pictures of a gallery or a thumbnail. */
function picturesOf({ items, media }: JsonObject): string[] {
  return [object(media), ...objects(items).map(item => object(item.media))].map(({ url }) => address(url)).filter(url => url !== '')
}
