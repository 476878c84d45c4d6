// What is nested in lists of objects: the cards of Google Chat and Teams (MessageCard, Adaptive Cards), and what else is made like them.
import type { JsonObject } from '../lib/shape'
import { address, joinLines, linked, object, objects } from './fields'
import { fromMarkdown } from './markup'

/** The fields with cards, in small letters. */
export const cardFields = ['cards', 'cardsv2', 'sections', 'blocks', 'embeds', 'attachments', 'potentialaction'] as const

/** The fields with a text, in the order in which they are shown. */
const texts = [
  'topLabel', 'pretext', 'name', 'title', 'header', 'activityTitle', 'subtitle', 'activitySubtitle', 'activityText', 'text', 'content', 'description',
  'bottomLabel', 'value',
] as const

/** The most objects and lists that are read: reading one takes longer than parsing it. */
const maxParts = 1000

/** The texts of the cards in a payload, with the links of their buttons. */
export function cardsOf(fields: JsonObject): string {
  return readCard(cardFields.map(name => fields[name]))
}

/** The texts of a card, or of each of a list of cards. */
export function readCard(value: unknown, left = { count: maxParts }): string {
  if (left.count-- <= 0) return ''
  if (Array.isArray(value)) return joinLines(...value.slice(0, maxParts).map(each => readCard(each, left)))
  const { onClick, targets, ...card } = object(value)
  const link = [card.url, object(object(onClick).openLink).url, objects(targets)[0]?.uri].map(each => address(each)).find(each => each !== '') ?? ''
  const parts = texts.map(name => fromMarkdown(card[name])).filter(text => text !== '')
  const isPair = card.value !== undefined || card.topLabel !== undefined
  return joinLines(
    // A link without a name is a picture.
    link === '' || parts.length === 0 ? parts.join(isPair ? ': ' : '\n') : linked(parts.join(' '), link),
    ...Object.values(card).slice(0, maxParts).map(each => typeof each === 'object' ? readCard(each, left) : ''),
  )
}
