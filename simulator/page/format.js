import { texts } from './i18n.js'

const formatters = new Map()

/** Cached, because Intl objects are slow to create and a conversation needs thousands of results. */
function formatter(language, options) {
  const key = language + JSON.stringify(options)
  let made = formatters.get(key)
  if (!made) formatters.set(key, made = new Intl.DateTimeFormat(texts[language].tag, options))
  return made
}

/** Hours and minutes. */
export function clock(time, language) {
  return formatter(language, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(time)
}

/** When something ends: the time, with the day unless it is today. */
export function ending(time, language, now = Date.now()) {
  return sameDay(time, now) ? clock(time, language) : `${day(time, language, now)} ${clock(time, language)}`
}

/** Date and time in full, for a tooltip. */
export function moment(time, language) {
  return formatter(language, { dateStyle: 'full', timeStyle: 'medium' }).format(time)
}

/** Whether both times are on the same day in the browser's time zone. */
export function sameDay(one, other) {
  return new Date(one).toDateString() === new Date(other).toDateString()
}

/** The name of a day: today, yesterday or the date, with the year unless it is the present one. */
export function day(time, language, now = Date.now()) {
  const today = new Date(now)
  if (sameDay(time, now)) return texts[language].today
  if (sameDay(time, new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1))) return texts[language].yesterday
  const year = new Date(time).getFullYear() === today.getFullYear() ? undefined : 'numeric'
  return formatter(language, { year, month: 'long', day: 'numeric', weekday: 'long' }).format(time)
}

/** When a chat was last active: the time if it was today, or else the short date. */
export function recently(time, language, now = Date.now()) {
  if (sameDay(time, now)) return clock(time, language)
  const name = day(time, language, now)
  return name === texts[language].yesterday ? name : formatter(language, { month: 'numeric', day: 'numeric' }).format(time)
}

/** A number of bytes for reading. */
export function fileSize(bytes, language) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let value = bytes
  let unit = 0
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024
  return `${value.toLocaleString(texts[language].tag, { maximumFractionDigits: unit === 0 || value >= 100 ? 0 : 1 })} ${units[unit]}`
}

/** Seconds in the format of a player's clock. */
export function duration(seconds) {
  const whole = Math.max(1, Math.round(seconds))
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}

/** The person that a mention refers to. */
export function mentioned({ id, name }, t) {
  return id === 'all' ? t.everyone : name || String(id)
}

function partText(part, t) {
  switch (part.type) {
    case 'text': return part.text
    case 'at': return `@${mentioned(part, t)}`
    case 'reply': return ''
    case 'image':
    case 'video':
    case 'record': return `[${t[part.type]}]`
    case 'unfetched': return part.medium === 'file' ? `[${t.file}] ${part.name}` : `[${t[part.medium]}]`
    case 'file': return `[${t.file}] ${part.name}`
    default: return part.label
  }
}

/** A message in one short line, for the list, a quotation or an announcement. */
export function preview(message, language, length = 120) {
  const line = message.parts.map(part => partText(part, texts[language])).join(' ').replace(/\s+/g, ' ').trim()
  const characters = Array.from(line.slice(0, length * 2))
  return characters.length > length ? `${characters.slice(0, length).join('')}…` : line
}
