import { RelayError } from '../../errors'
import type { JsonObject } from '../../lib/shape'
import { address, date, joinLines, labelled, line, linked, object, objects, textOf } from '../fields'
import { fromDiscord, readerOf, type Reader } from '../markup'
import { markOfColor, severityIn, unlessMarked } from '../marks'
import { discordShape } from '../shapes'
import type { Source } from '../source'
import { say } from '../../texts/text'

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
    const embeds = objects(payload.embeds).map(embed => readEmbed(embed, read, text)).filter(embed => Object.values(embed).some(value => value !== ''))
    const all = objects(payload.components).flatMap(component => within(component))
    const components = joinLines(...all.map(readComponent))
    const pictures = all.flatMap(picturesOf)
    if ([text, components].every(each => each === '') && embeds.length === 0 && pictures.length === 0) {
      throw new RelayError('bad-request', say('no-content'))
    }
    const severity = severityIn(text, ...embeds.map(each => each.mark + (each.title || each.text)), components)
    return { name: 'message', ...severity && { severity }, view: { sender: line(payload.username), text, embeds, components, pictures } }
  },
}

/** @param said the text above it */
function readEmbed(embed: JsonObject, read: Reader, said: string): Readonly<Record<'mark' | 'author' | 'title' | 'text' | 'link' | 'footer' | 'time' | 'picture', string>> {
  const { description, url, timestamp, footer, fields, image, color } = embed
  const author = textOf(object(embed.author).name)
  const title = read(embed.title)
  const text = joinLines(read(description), ...objects(fields).map(({ name, value }) => labelled(read(name), read(value))))
  return {
    mark: author + title + text === '' ? '' : unlessMarked(markOfColor(color), said, author, title, text),
    author,
    title,
    text,
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
