import { safeName } from '../lib/file-name'

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
const folder = new RegExp(`^${uuid}$`)
const temporary = new RegExp(`^\\.message-relay-${uuid}\\.part$`)

/** A name for the temporary file, directly in the upload directory, that an upload is written to until it is complete. */
export function temporaryName(uuid: string): string {
  return `.message-relay-${uuid}.part`
}

/** Whether a name is one of {@link temporaryName}. */
export const isTemporaryName = (name: string): boolean => temporary.test(name)

/** Whether a name is that of a folder with an uploaded file. */
export const isFolderName = (name: string): boolean => folder.test(name)

/** Splits a file ID, `<uuid v4>/<name>`; `undefined` if it is not valid. */
export function parseFileId(id: string): { folder: string, name: string } | undefined {
  const slash = id.indexOf('/')
  const parts = { folder: id.slice(0, slash), name: id.slice(slash + 1) }
  // Only names that cleaning leaves unchanged are valid. This keeps `..`, devices and separators out.
  return isFolderName(parts.folder) && safeName(parts.name) === parts.name ? parts : undefined
}

/**
 * Reads the setting `allowedExtensions`, where an empty list allows all. Case, blanks and leading dots do not count, and an extension may
 * be a compound one (`tar.gz`).
 */
export function parseExtensions(list: readonly string[]): string[] {
  const extensions = list.join().toLowerCase().split(',').map(entry => entry.replace(/\s+/g, '').replace(/^\.+/, ''))
  return [...new Set(extensions)].filter(extension => extension !== '')
}

/** Whether a file name ends in one of the extensions of {@link parseExtensions}. An empty list allows all. */
export function isAllowed(name: string, extensions: readonly string[]): boolean {
  const lower = name.toLowerCase()
  return extensions.length === 0 || extensions.some(extension => lower.endsWith(`.${extension}`))
}
