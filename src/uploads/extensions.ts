/**
 * Reads ALLOWED_EXTENSIONS: a list separated by commas that ignores case, blanks and leading dots. An extension may be a
 * compound one (`tar.gz`). Empty when every extension is allowed.
 */
export function parseExtensions(list: string): string[] {
  const extensions = list.toLowerCase().split(',').map(entry => entry.replace(/\s+/g, '').replace(/^\.+/, ''))
  return [...new Set(extensions)].filter(extension => extension !== '')
}

/** Tells whether a file name ends in one of the extensions that {@link parseExtensions} gave; an empty list allows all. */
export function isAllowed(name: string, extensions: readonly string[]): boolean {
  const lower = name.toLowerCase()
  return extensions.length === 0 || extensions.some(extension => lower.endsWith(`.${extension}`))
}
