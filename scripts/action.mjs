// Builds the GitHub Action into the committed file that runners start, or into the file named: node scripts/action.mjs [file]
import { build } from 'esbuild'
import { resolve } from 'node:path'

await build({
  // The bundle names its sources by their paths from here.
  absWorkingDir: resolve(import.meta.dirname, '..'),
  entryPoints: ['cli/action.ts'],
  outfile: resolve(process.argv[2] ?? 'action/index.js'),
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  logLevel: 'warning',
})
