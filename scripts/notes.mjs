// Prints what CHANGELOG.md says about this version, as the notes of its release.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { manifest, repository } from './pack.mjs'

const sections = (await readFile(join(repository, 'CHANGELOG.md'), 'utf8')).split(/^## /m).slice(1)
const notes = sections.find(section => section.startsWith(`[${manifest.version}]`))?.replace(/^.*\n/, '').trim()
if (!notes) {
  console.error(`CHANGELOG.md has no section [${manifest.version}]`)
  process.exit(1)
}
console.log(notes)
