import { build, type Plugin } from 'esbuild'
import { load } from 'js-yaml'
import { readFile, symlink } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { temporaryFolder } from './folder'

const repository = resolve(__dirname, '../..')

/** As the build does it. */
const yaml: Plugin = {
  name: 'yaml',
  setup(build) {
    build.onLoad({ filter: /\.yml$/ }, async ({ path }) => ({ loader: 'json', contents: JSON.stringify(load(await readFile(path, 'utf8'))) }))
  },
}

const bundles = new Map<string, Promise<string>>()

/**
 * Makes a program of the tests one file, for as long as this process lives. From its sources it would take four times as long to start,
 * which matters where one test starts many.
 *
 * @returns the file
 */
export function bundle(entry: string): Promise<string> {
  const known = bundles.get(entry) ?? make(entry)
  bundles.set(entry, known)
  return known
}

async function make(entry: string): Promise<string> {
  const folder = temporaryFolder()
  const outfile = join(folder, basename(entry, '.ts') + '.js')
  const sourcemap = process.env.NODE_V8_COVERAGE === undefined ? false : 'inline'
  await build({ entryPoints: [entry], outfile, bundle: true, platform: 'node', target: 'node20', packages: 'external', sourcemap, plugins: [yaml], logLevel: 'warning' })
  // A dynamic import finds packages by their folder only.
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  // Beside the bundle, as beside that of the plugin.
  await symlink(join(repository, 'src/hooks/templates'), join(folder, 'templates'))
  return outfile
}
