import { isObject, type JsonObject } from '../message/parse'

/** Elements that only say how the text in them looks. */
const styles = new Set([
  'b', 'strong', 'i', 'em', 'u', 'ins', 's', 'del', 'spl', 'code', 'code-block', 'pre', 'sup', 'sub', 'span', 'template',
])

/** Deeper than anybody nests on purpose; it keeps a hostile message from exhausting the stack. */
const maxDepth = 64

/**
 * The text of a OneBot message as its member typed it, with mentions as `@<id>` (contract, "Commands"). It is read from the
 * event and not from the adapter's elements, because the adapter inserts blanks next to pictures.
 *
 * @param event what the platform sent; its `message` is an array of segments or a string with CQ codes
 * @returns `undefined` when it holds neither: it is no OneBot message
 */
export function onebotText(event: unknown): string | undefined {
  if (!isObject(event)) return
  const { message } = event
  if (typeof message === 'string') return codeText(message)
  if (Array.isArray(message)) return segmentsText(message)
}

/**
 * The same for any other platform, from the elements that its adapter made of the message. Line breaks are text, whether they
 * stand as `<br/>` or between paragraphs; a link without text of its own stands for its address.
 */
export function elementsText(elements: unknown): string {
  const output: Output = { text: '', lineEnded: false }
  writeElements(elements, output, 0)
  return output.text
}

function segmentsText(segments: readonly unknown[]): string {
  let text = ''
  for (const segment of segments) {
    if (!isObject(segment) || !isObject(segment.data)) continue
    if (segment.type === 'text') text += scalar(segment.data.text)
    else if (segment.type === 'at') text += mention(segment.data.qq)
  }
  return text
}

/** Reads a CQ string. A `[` that a member typed arrives escaped, so each `[CQ:` begins a code that the next `]` ends. */
function codeText(source: string): string {
  let text = ''
  let position = 0
  for (;;) {
    const start = source.indexOf('[CQ:', position)
    const end = start < 0 ? -1 : source.indexOf(']', start)
    if (end < 0) return text + unescapeCode(source.slice(position))
    text += unescapeCode(source.slice(position, start)) + codeMention(source.slice(start + '[CQ:'.length, end))
    position = end + 1
  }
}

function codeMention(code: string): string {
  const [type, ...fields] = code.split(',')
  if (type !== 'at') return ''
  const account = fields.find(field => field.startsWith('qq='))
  return mention(account && unescapeCode(account.slice('qq='.length)))
}

const codeEscapes: Readonly<Record<string, string>> = { '&#91;': '[', '&#93;': ']', '&#44;': ',', '&amp;': '&' }

function unescapeCode(source: string): string {
  return source.replace(/&(?:#91|#93|#44|amp);/g, escape => codeEscapes[escape] ?? escape)
}

interface Output {
  text: string
  /** A line break is due before anything else is written. */
  lineEnded: boolean
}

function writeElements(elements: unknown, output: Output, depth: number): void {
  if (!Array.isArray(elements) || depth > maxDepth) return
  elements.forEach((element: unknown) => {
    if (isObject(element)) writeElement(element, output, depth)
  })
}

function writeElement({ type, attrs, children }: JsonObject, output: Output, depth: number): void {
  const { content, type: scope, id, role, name, href } = isObject(attrs) ? attrs : {}
  switch (type) {
    case 'text':
      append(output, scalar(content))
      break
    case 'at':
      append(output, mention(scope === 'all' || scope === 'here' ? scope : id ?? role ?? name))
      break
    case 'br':
      append(output, '\n')
      break
    case 'p':
      endLine(output)
      writeElements(children, output, depth + 1)
      endLine(output)
      break
    case 'a':
      if (Array.isArray(children) && children.length > 0) writeElements(children, output, depth + 1)
      else append(output, scalar(href))
      break
    default:
      if (typeof type === 'string' && styles.has(type)) writeElements(children, output, depth + 1)
  }
}

/** Puts what comes next on a line of its own, if anything comes and it is not on one already. */
function endLine(output: Output): void {
  output.lineEnded = output.text !== '' && !output.text.endsWith('\n')
}

function append(output: Output, text: string): void {
  if (!text) return
  output.text += output.lineEnded ? `\n${text}` : text
  output.lineEnded = false
}

function mention(id: unknown): string {
  const text = scalar(id)
  return text && `@${text}`
}

/** Text as it is; a number as text, for the implementations that send IDs as numbers; nothing for the rest. */
function scalar(value: unknown): string {
  if (typeof value === 'string') return value
  return typeof value === 'number' ? String(value) : ''
}
