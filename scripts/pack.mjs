import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

/** The folder of this repository. */
export const repository = resolve(import.meta.dirname, '..')

/** This repository's package.json. */
export const manifest = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8'))

/** Packs the package, or that of a workspace, as `npm publish` would, and returns the path of the tarball in `folder`. */
export function pack(folder, workspace = '') {
  // Before its name, npm prints what the build does.
  const printed = run('npm', ['pack', '--silent', '--pack-destination', folder], join(repository, workspace))
  return join(folder, printed.trim().split('\n').at(-1))
}

/**
 * Runs a command to its end, without standard input, and returns what it printed to standard output.
 * @throws when it does not end with 0.
 */
export function run(command, args, cwd) {
  const { status, stdout, error } = spawnSync(command, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' })
  if (error) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed with ${status}\n${stdout}`)
  return stdout
}
