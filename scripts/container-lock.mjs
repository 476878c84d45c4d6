// Writes container/package-lock.json: what the container image installs, in the versions of this repository's own lock file.
import { copyFile, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manifest, pack, repository, run } from './pack.mjs'

const lockFile = 'package-lock.json'
const folder = await mkdtemp(join(tmpdir(), 'relay-lock-'))
try {
  await rename(pack(folder), join(folder, 'plugin.tgz'))
  await copyFile(join(repository, 'container/package.json'), join(folder, 'package.json'))
  // npm removes from it what the image does not need, and keeps the versions of the rest.
  await copyFile(join(repository, lockFile), join(folder, lockFile))
  run('npm', ['install', '--package-lock-only', '--ignore-scripts', '--silent'], folder)
  const lock = JSON.parse(await readFile(join(folder, lockFile), 'utf8'))
  // The tarball is a new one with each change of the plugin, so that nothing of the kind can be written down.
  const plugin = lock.packages[`node_modules/${manifest.name}`]
  delete plugin.version
  delete plugin.integrity
  lock.name = lock.packages[''].name
  delete lock.version
  await writeFile(join(repository, 'container', lockFile), `${JSON.stringify(lock, null, 2)}\n`)
} finally {
  await rm(folder, { recursive: true, force: true })
}
