// What the robots of DingTalk, WeCom and Feishu have in common: a message says of what kind it is, and has its content in one object.
import { RelayError } from '../../errors'
import type { JsonObject } from '../../message/parse'
import { line, object } from '../fields'
import type { Shape } from '../shapes'
import type { Source } from '../source'

/** What a template is given. Each field is there; one that the message does not have is empty. */
type MessageView = Readonly<Record<'title' | 'text' | 'link' | 'picture', string>>

/** What is told of a message. */
export type Message = Partial<MessageView>

/** The readers of the content of a message, by its kind. */
export type Readers = ReadonlyMap<string, (content: JsonObject) => Message>

const nothing: MessageView = { title: '', text: '', link: '', picture: '' }

/**
 * Makes a source of a robot.
 *
 * @param field the name of the field that says of what kind a message is
 * @param contentOf finds the content of a message of this kind; in the field of that name unless given
 */
export function robot(name: string, shape: Shape, field: string, readers: Readers, contentOf = contentByKind): Source {
  return {
    name,
    shape,
    read({ payload }) {
      const kind = line(payload[field])
      const view: MessageView = { ...nothing, ...readers.get(kind)?.(contentOf(payload, kind)) }
      if (Object.values(view).every(each => each === '')) {
        throw new RelayError('bad-request', `${field} must be one of ${[...readers.keys()].join(', ')}, with its content`)
      }
      return { name: 'message', view }
    },
  }
}

function contentByKind(payload: JsonObject, kind: string): JsonObject {
  return object(payload[kind])
}
