import { freshWord } from './random'

/** A word for a shell, quoted if necessary. */
function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll('\'', '\'\\\'\'')}'`
}

/** The curl command for an action of the page. It reads the key from the environment, so that the key appears in no shell history. */
export function curlOf(method: string, url: string, body?: string): string {
  return [
    'curl -H "Authorization: Bearer $KEY"',
    ...method === (body === undefined ? 'GET' : 'POST') ? [] : [`-X ${method}`],
    ...body === undefined ? [] : [`-d ${quote(body)}`],
    quote(url),
  ].join(' ')
}

/**
 * The commands that upload files and then send a message that refers to them.
 *
 * @param url the address of the relay, with its prefix
 * @param body builds the body for `/webhook` from one placeholder per file
 */
export function curlWithFiles(url: string, names: readonly string[], body: (ids: string[]) => object): string {
  const uploads = names.map((name, at) => {
    // In double quotes, because curl interprets commas and semicolons.
    const part = quote(`file=@"${name.replace(/["\\]/g, '\\$&')}"`)
    return `FILE_${at + 1}=$(curl -sS -H "Authorization: Bearer $KEY" -F ${part} ${quote(`${url}/upload`)} | sed 's/.*"path":"\\([^"]*\\)".*/\\1/')`
  })
  const marks = names.map(freshWord)
  const command = curlOf('POST', `${url}/webhook`, JSON.stringify(body(marks)))
  return [...uploads, marks.reduce((text, mark, at) => text.replace(mark, () => `'"$FILE_${at + 1}"'`), command)].join('\n')
}
