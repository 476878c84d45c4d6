import { build, type Plugin } from 'esbuild'
import { load } from 'js-yaml'
import { readFile, symlink } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { temporaryFolder } from './folder'

const repository = resolve(__dirname, '../..')

/** YAML files as JSON, as in the build. */
const yaml: Plugin = {
  name: 'yaml',
  setup(build) {
    build.onLoad({ filter: /\.yml$/ }, async ({ path }) => ({ loader: 'json', contents: JSON.stringify(load(await readFile(path, 'utf8'))) }))
  },
}

const bundles = new Map<string, Promise<string>>()

/**
 * Bundles a program of the tests into one file, for the life of this process. From its sources, it would take four times as long to start,
 * which matters for a test that starts many.
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
  // Next to the bundle, as for the plugin.
  await symlink(join(repository, 'src/hooks/templates'), join(folder, 'templates'))
  return outfile
}
