import { RelayError } from '../../errors'
import type { JsonObject } from '../../lib/shape'
import { address, date, joinLines, labelled, line, linked, object, objects, textOf } from '../fields'
import { fromDiscord } from '../markup'
import { discordShape } from '../shapes'
import type { Source } from '../source'

/** How deep components are looked at: there are containers, with sections in them. */
const maxDepth = 4

/** Webhooks of Discord ("Execute Webhook"): content, embeds and components, which a message may consist of alone. */
export const discord: Source = {
  name: 'discord',
  shape: discordShape,
  read({ payload }) {
    const text = fromDiscord(payload.content)
    const embeds = objects(payload.embeds).map(readEmbed).filter(embed => Object.values(embed).some(value => value !== ''))
    const components = objects(payload.components)
    const below = joinLines(...components.map(component => readComponent(component)))
    const pictures = components.flatMap(component => picturesOf(component))
    if ([text, below].every(each => each === '') && embeds.length === 0 && pictures.length === 0) {
      throw new RelayError('bad-request', 'there is neither content nor an embed or a component with text')
    }
    return { name: 'message', view: { sender: line(payload.username), text, embeds, components: below, pictures } }
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

/** The texts of a component and of those in it, and what its buttons open: `developers/components/reference.mdx` of discord-api-docs. */
function readComponent({ content, label, url, components, accessory }: JsonObject, depth = 0): string {
  if (depth > maxDepth) return ''
  const link = address(url)
  // A button that opens nothing is of no use in another chat.
  const own = link === '' ? fromDiscord(content) : linked(textOf(label), link)
  return joinLines(own, ...[...objects(components), object(accessory)].map(inner => readComponent(inner, depth + 1)))
}

/** The pictures of galleries and thumbnails. */
function picturesOf({ items, media, components, accessory }: JsonObject, depth = 0): string[] {
  if (depth > maxDepth) return []
  const own = [object(media), ...objects(items).map(item => object(item.media))].map(({ url }) => address(url)).filter(url => url !== '')
  return [...own, ...[...objects(components), object(accessory)].flatMap(inner => picturesOf(inner, depth + 1))]
}
