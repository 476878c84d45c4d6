// Builds the published plugin and the command line into lib/, its page in Koishi's console into dist/, and what only this repository
// runs (bot, simulator) into folders of dist/.
import { cp, readFile, rm } from 'node:fs/promises'
import { build } from 'esbuild'
import { load } from 'js-yaml'
import { buildPage } from './page.mjs'

/** Inlines `.yml` files as objects, so that the published bundle needs no YAML parser. */
const yaml = {
  name: 'yaml',
  setup({ onLoad }) {
    onLoad({ filter: /\.yml$/ }, async ({ path }) => ({
      loader: 'json',
      contents: JSON.stringify(load(await readFile(path, 'utf8'))),
    }))
  },
}

const common = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  packages: 'external',
  logLevel: 'warning',
  plugins: [yaml],
}

await rm('lib', { recursive: true, force: true })
// This removes what was in dist/ before.
await buildPage()
await Promise.all([
  // Without a source map: it would be more than twice the size of the bundle, nothing reads it unless Node.js is started with
  // --enable-source-maps, and the bundle keeps the names of the sources, so that a stack trace can be read without it.
  build({ ...common, entryPoints: ['src/index.ts'], outfile: 'lib/index.js' }),
  build({ ...common, entryPoints: ['cli/relay.ts'], outfile: 'lib/relay.js', banner: { js: '#!/usr/bin/env node' } }),
  build({
    ...common,
    sourcemap: true,
    entryPoints: {
      'bot/start': 'bot/start.ts',
      'simulator/cli': 'simulator/cli.ts',
      'simulator/plugin': 'simulator/plugin.ts',
    },
    outdir: 'dist',
  }),
  cp('src/hooks/templates', 'lib/templates', { recursive: true }),
  cp('simulator/page', 'dist/simulator/page', { recursive: true }),
])
