// HTML as text: the tags that senders use in messages, and entities. Text like `List<String>` has no such tags, and stays.
import { linked } from './fields'

/** Puts a text aside, so that no further step changes it. Returns a placeholder. */
export type Keep = (text: string) => string

/** What a text shows of a link or a picture. */
export type ShowLink = (name: string, url: string, keep: Keep, isPicture: boolean) => string

/** Tags that begin and end a line. */
const blocks = 'p|div|h[1-6]|ul|ol|li|dl|dt|dd|tr|table|thead|tbody|tfoot|caption|pre|blockquote|hr|section|article|header|footer|nav|main|figure|figcaption|center|details|summary|html|body'
const others = 'br|img|t[dh]|a|b|i|u|s|q|em|strong|del|ins|strike|code|kbd|samp|tt|var|span|font|small|big|sub|sup|mark|abbr|cite|picture|link|meta|at|text_tag|tg-spoiler|tg-emoji'
// Whatever else is between the angles is text: `CPU <b and mem> 80`.
const attributes = '(?:\\s+(?:[\\w:-]+\\s*=\\s*(?:"[^"<]*"|\'[^\'<]*\'|[^\\s"\'<>]+)|expandable|open|nowrap))*(?:(?<=["\'])\\s*|[ \\t]*)/?'
const tag = new RegExp(`<(/?)(?:(${blocks})|(${others}))(${attributes})>`, 'gi')
/** A link, also that of Feishu's cards. Each part ends before the next tag of the kind, so that matching takes linear time. */
const anchor = new RegExp(`<(a|link)(${attributes})>((?:(?!<\\1[\\s>])[^])*?)</\\1>`, 'gi')
const invisible = /<!--(?:(?!<!--)[^])*?-->|<!doctype[^<>]*>|<(style|script|head)(?:\s[^<>]*)?>(?:(?!<\1[\s>])[^])*?<\/\1>/gi

// Placeholders of a block, of a line break and of the end of a cell.
const block = '\u0003'
const lineBreak = '\u0004'
const cell = '\u0005'

/** Replaces tags. Blanks between blocks are part of the source, so they do not count. */
export function withoutTags(show: ShowLink): (text: string, keep: Keep) => string {
  return (text, keep) => text.includes('<') ? replaceTags(text, keep, show) : text
}

function replaceTags(text: string, keep: Keep, show: ShowLink): string {
  return text.replace(invisible, '')
    .replace(anchor, (_, _tag, fields: string, name: string) => show(name, attributeOf(fields, 'href|url'), keep, false))
    .replace(tag, (_, close: string, outer: string | undefined, inner: string | undefined, fields: string) => {
      if (outer !== undefined) return block + (outer.toLowerCase() === 'li' && close === '' ? '- ' : '')
      switch (inner?.toLowerCase()) {
        case 'br': return lineBreak
        case 'td': case 'th': return close === '' ? '' : cell
        case 'img': return show(attributeOf(fields, 'alt'), attributeOf(fields, 'src'), keep, true)
        default: return ''
      }
    })
    .replace(/[ \t\r\n\u0003-\u0005]+/g, run => {
      if (run.includes(block)) return '\n'
      if (run.includes(cell)) return ' | '
      const breaks = run.split(lineBreak).length - 1
      return breaks === 0 ? run : '\n'.repeat(Math.min(breaks, 2))
    })
}

function attributeOf(fields: string, names: string): string {
  const [, double, single, bare] = new RegExp(`\\s(?:${names})\\s{0,9}=\\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`, 'i').exec(fields) ?? []
  return double ?? single ?? bare ?? ''
}

/** `name (url)`. A link within a page, or to a user or an emoji of Telegram, is its name. */
export const named: ShowLink = (name, target, keep) => {
  const url = decodeEntities(target).replace(/^mailto:/i, '')
  const text = name.trim()
  if (/^(?:#|tg:|data:|javascript:)/i.test(url)) return text
  return url === decodeEntities(text) ? keep(url) : linked(text, url && keep(url))
}

/** Names of characters, each followed by its character. */
const entities = new Map(`nbsp\u00a0 ensp\u2002 emsp\u2003 thinsp\u2009
  lt< gt> amp& quot" apos' ndash– mdash— hellip… bull• middot· lsquo‘ rsquo’ sbquo‚ ldquo“ rdquo” bdquo„ lsaquo‹ rsaquo› laquo«
  raquo» euro€ pound£ yen¥ cent¢ sect§ para¶ copy© reg® trade™ deg° plusmn± microµ times× divide÷ frac12½ frac14¼ frac34¾ sup2²
  sup3³ permil‰ iexcl¡ iquest¿ szligß aeligæ AEligÆ oslashø OslashØ larr← uarr↑ rarr→ darr↓ harr↔ rArr⇒ minus− ne≠ le≤ ge≥ asymp≈
  infin∞ check✓ cross✗`
  .split(/[ \n]+/).map(each => [each.slice(0, -1), each.slice(-1).replace(/\s/, ' ')]))
/** The ends of the names of letters with accents, such as `eacute`. */
const accents = new Map([
  ['grave', '\u0300'], ['acute', '\u0301'], ['circ', '\u0302'], ['tilde', '\u0303'], ['uml', '\u0308'], ['ring', '\u030a'], ['cedil', '\u0327'],
])

/** Decodes entities, each once: `&amp;lt;` becomes `&lt;`. */
export function decodeEntities(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,8}\d{0,2}));/gi, (all, decimal?: string, hex?: string, name?: string) => {
    const accent = accents.get(name?.slice(1) ?? '')
    if (name !== undefined) return entities.get(name) ?? (accent === undefined ? all : (name.charAt(0) + accent).normalize())
    const code = decimal === undefined ? parseInt(hex ?? '', 16) : Number(decimal)
    // Not the control characters below the tabulator, which are placeholders.
    return code < 9 || code > 0x10ffff ? all : code === 160 ? ' ' : String.fromCodePoint(code)
  })
}
