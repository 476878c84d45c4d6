/** How much of a link or its text is recognised, in characters. Bounds keep the time to search in proportion to the text. */
const linkText = '[^\\[\\]\\n]{0,500}'
const linkUrl = '[^()\\s]{1,2048}'

const markdownImage = new RegExp(`!\\[(${linkText})\\]\\((${linkUrl})\\)`, 'g')
const slackLink = /<([^<>|\n]{1,2048})(?:\|([^<>\n]{0,500}))?>/g
const markdownLink = new RegExp(`\\[(${linkText})\\]\\((${linkUrl})\\)`, 'g')

/** Markdown as a chat shows it that knows none: links in parentheses, and without the marks of headings, quotes, emphasis and code. */
export function fromMarkdown(text: string): string {
  return withoutTags(text)
    .replace(markdownImage, (_, label: string, url: string) => named(label, url))
    .replace(markdownLink, (_, label: string, url: string) => named(label, url))
    .replace(/^[ \t]{0,3}#{1,6}[ \t]+/gm, '')
    .replace(/^[ \t]{0,3}>[ \t]?/gm, '')
    .replace(/^[ \t]{0,3}```[^\n`]{0,40}$\n?/gm, '')
    .replace(/\*\*([^*\n]{1,1000})\*\*/g, '$1')
    .replace(/__([^_\n]{1,1000})__/g, '$1')
    .replace(/~~([^~\n]{1,1000})~~/g, '$1')
    .replace(/(?<=^|[\s(])[*_]([^*_\s][^*_\n]{0,1000})[*_](?=$|[\s).,:;!?])/gm, '$1')
    .replace(/`([^`\n]{1,1000})`/g, '$1')
}

/** The markup of Slack's messages ("mrkdwn"): links, mentions, emphasis and entities. */
export function fromSlack(text: string): string {
  return text
    .replace(slackLink, (_, target: string, label: string | undefined) => slackReference(target, label))
    .replace(/```/g, '')
    .replace(/(?<=^|[\s(])([*_~`])([^*_~`\s][^*_~`\n]{0,1000})\1(?=$|[\s).,:;!?])/gm, '$2')
    // The ampersand last: what it begins was not meant as an entity.
    .replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&')
}

function slackReference(target: string, label: string | undefined): string {
  const mark = { '@': '@', '#': '#', '!': '@' }[target.slice(0, 1)]
  if (mark === undefined) return named(label ?? '', target.replace(/^mailto:/, ''))
  // A date has its text for those who cannot show it behind the bar, and so have the names of users and channels.
  if (target.startsWith('!date')) return label ?? ''
  return label ? mark + label.replace(/^[@#]/, '') : mark + target.slice(1).replace(/^subteam\^/, '')
}

/** Discord's references to users, roles, channels, emoji and times, and its Markdown. */
export function fromDiscord(text: string): string {
  return fromMarkdown(text
    .replace(/<(@)[!&]?(\d{1,20})>/g, '$1$2').replace(/<(#\d{1,20})>/g, '$1')
    .replace(/<a?(:\w{1,32}:)\d{1,20}>/g, '$1')
    .replace(/<t:(\d{1,12})(?::[a-zA-Z])?>/g, (_, seconds: string) => new Date(Number(seconds) * 1000).toISOString())
    .replace(/<(https?:\/\/[^<>\s]{1,2048})>/g, '$1'))
}

/** A link with what it is called, where that says more. */
function named(label: string, url: string): string {
  const name = label.trim()
  return name === '' || name === url ? url : `${name} (${url})`
}

/** Without the tags that robots know within Markdown; what they surround stays. */
function withoutTags(text: string): string {
  return text.replace(/<br\s{0,5}\/?>/gi, '\n').replace(/<\/?(?:font|b|i|u|s|a|at|strong|em|del|code|text_tag)(?:\s[^<>\n]{0,500})?>/gi, '')
}
