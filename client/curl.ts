import { freshWord } from './random'

/** A word of a shell, in quotes where it needs them. */
function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll('\'', '\'\\\'\'')}'`
}

/** The command that does what a button of the page does. The key comes from the environment, so that it stands in no history. */
export function curlOf(method: string, url: string, body?: string): string {
  return [
    'curl -H "Authorization: Bearer $KEY"',
    ...method === (body === undefined ? 'GET' : 'POST') ? [] : [`-X ${method}`],
    ...body === undefined ? [] : [`-d ${quote(body)}`],
    quote(url),
  ].join(' ')
}

/**
 * The commands that upload files, and then send a message in whose body they are.
 *
 * @param url of the relay, with its prefix
 * @param body makes the body for `/webhook` of what stands in it for each file
 */
export function curlWithFiles(url: string, names: readonly string[], body: (ids: string[]) => object): string {
  const uploads = names.map((name, at) => {
    // Within quotes of its own, for a comma or a semicolon has a meaning there.
    const part = quote(`file=@"${name.replace(/["\\]/g, '\\$&')}"`)
    return `FILE_${at + 1}=$(curl -sS -H "Authorization: Bearer $KEY" -F ${part} ${quote(`${url}/upload`)} | sed 's/.*"path":"\\([^"]*\\)".*/\\1/')`
  })
  const marks = names.map(freshWord)
  const command = curlOf('POST', `${url}/webhook`, JSON.stringify(body(marks)))
  return [...uploads, marks.reduce((text, mark, at) => text.replace(mark, () => `'"$FILE_${at + 1}"'`), command)].join('\n')
}
