// Builds the published plugin and the command line into lib/, the plugins beside it into their own lib/, its page in Koishi's console into
// dist/, and what only this repository runs (bot, simulator) into folders of dist/.
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
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

/** Leaves what is a file of lib/ of its own out of the other files there. */
const beside = {
  name: 'beside',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\.\/(?:src|bot\/demo)$/ }, ({ path }) => ({ path: path === '../src' ? './index.js' : './demo.js', external: true }))
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
await rm('plugins/mqtt/lib', { recursive: true, force: true })
// This removes what was in dist/ before.
await buildPage()
await Promise.all([
  // Without a source map: it would be more than twice the size of the bundle, nothing reads it unless Node.js is started with
  // --enable-source-maps, and the bundle keeps the names of the sources, so that a stack trace can be read without it.
  build({ ...common, entryPoints: ['src/index.ts'], outfile: 'lib/index.js' }),
  build({ ...common, entryPoints: ['plugins/mqtt/src/index.ts'], outfile: 'plugins/mqtt/lib/index.js' }),
  build({ ...common, entryPoints: ['cli/relay.ts'], outfile: 'lib/relay.js', plugins: [yaml, beside], banner: { js: '#!/usr/bin/env node' } }),
  // With the adapter and all of the simulator, so that who tries the package needs nothing but Koishi.
  build({
    ...common, entryPoints: ['bot/demo.ts'], outfile: 'lib/demo.js', packages: 'bundle', plugins: [yaml, beside],
    external: ['koishi', '@koishijs/plugin-server', '@koishijs/plugin-console', 'bufferutil', 'utf-8-validate'], metafile: true,
  }).then(({ metafile }) => writeLicenses(Object.keys(metafile.inputs))),
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
  ...['dist/simulator/page', 'lib/page'].map(folder => cp('simulator/page', folder, { recursive: true })),
])

/** Writes the licences of the packages within the demo, as these demand. */
async function writeLicenses(inputs) {
  const packages = [...new Set(inputs.flatMap(input => /^(node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? []))].sort()
  const texts = await Promise.all(packages.map(async folder => {
    const { name, version, license } = JSON.parse(await readFile(`${folder}/package.json`, 'utf8'))
    const file = (await readdir(folder)).find(each => /^licen[cs]e(?:\.|$)/i.test(each))
    return `${name} ${version} (${license})\n\n${file === undefined ? 'Its package has no text of the license.\n' : await readFile(`${folder}/${file}`, 'utf8')}`
  }))
  await writeFile('lib/demo.licenses.txt', texts.join(`\n${'-'.repeat(80)}\n\n`))
}
