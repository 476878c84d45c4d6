import { safeName } from './names'

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
const folder = new RegExp(`^${uuid}$`)
const temporary = new RegExp(`^\\.message-relay-(${uuid})\\.part$`)

/** Name of the file, directly in the upload directory, that an upload is written to until it is complete. */
export function temporaryName(uuid: string): string {
  return `.message-relay-${uuid}.part`
}

/** The UUID in a name that {@link temporaryName} gave; undefined for any other. */
export function parseTemporaryName(name: string): string | undefined {
  return temporary.exec(name)?.[1]
}

/** Tells whether this is the name of a folder that holds an uploaded file. */
export function isFolderName(name: string): boolean {
  return folder.test(name)
}

/** Splits a file ID, `<uuid v4>/<name>`; undefined for one that no upload can have given. */
export function parseFileId(id: string): { folder: string, name: string } | undefined {
  const slash = id.indexOf('/')
  const parts = { folder: id.slice(0, slash), name: id.slice(slash + 1) }
  // A stored name is one that needs no further cleaning. This alone keeps `..`, devices and separators out.
  return isFolderName(parts.folder) && safeName(parts.name) === parts.name ? parts : undefined
}
