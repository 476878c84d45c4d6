// Runs every tests/**/*.test.ts, or those whose path contains one of the words given: `npm test -- uploads`.
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { transform } from 'esbuild'
import { load } from 'js-yaml'

/** How long the files of one process may take, in milliseconds: one that waits for ever is to fail. */
const timeout = 300_000
/** How many processes run at a time: one more than cores, because they wait most of their time. */
const concurrency = availableParallelism() + 1
/**
 * How many files of a folder share a process: loading Koishi takes longer than most of them. Their apps have to end with everything that
 * they have begun, or that fails the tests of another file: see tests/support/adapter-timers.ts.
 */
const share = 32
/** In this order: those that take longest begin first, so that none runs alone at the end. */
const folders = [
  'integration', 'docs', 'integration/texts',
  // These start the command hundreds of times.
  'integration/cli',
  // The tests of the tabs share a page.
  'integration/console',
  'integration/http', 'platforms', 'unit', 'integration/deliveries', 'integration/onebot', 'simulator',
  // The tests of the hooks set the time zone of their process.
  'unit/hooks', 'unit/fuzz',
]
/** Those that take long, change the clock of their process, or look at what it has loaded. They begin before the others. */
const alone = [
  'integration/alerts/alerts', 'integration/bot/bot', 'integration/cli/relay', 'integration/deliveries/deferred',
  'integration/deliveries/deliveries', 'integration/hooks/start', 'integration/mqtt/share', 'platforms/kill',
].map(name => `tests/${name}.test.ts`)
/** The folder whose files share a process with this one: the innermost of these. */
const folderOf = file => alone.includes(file)
  ? undefined
  : folders.filter(folder => file.startsWith(`tests/${folder}/`)).sort((a, b) => b.length - a.length)[0]

const words = process.argv.slice(2)
const files = readdirSync('tests', { recursive: true })
  .filter(file => file.endsWith('.test.ts'))
  .map(file => join('tests', file))
  .filter(file => words.length === 0 || words.some(word => file.includes(word)))
  .sort()

if (files.length === 0) {
  console.error(`no test file matches ${words.join(', ')}`)
  process.exit(1)
}
const folder = mkdtempSync(join(tmpdir(), 'message-relay-tests-'))
process.on('exit', () => rmSync(folder, { recursive: true }))

const groups = []
for (const file of files) {
  const folder = folderOf(file)
  const group = folder && groups.findLast(([first]) => folderOf(first) === folder)
  if (group && group.length < share) group.push(file)
  else groups.push([file])
}

groups.sort(([a], [b]) => folders.indexOf(folderOf(a)) - folders.indexOf(folderOf(b)))

/** A script that runs the tests of these files one after another, each with its own hooks. Node.js runs scripts by their names. */
function write(group, index) {
  const suites = group.map(file => `describe(${JSON.stringify(file)}, () => { require(${JSON.stringify(resolve(file))}) })`)
  const script = join(folder, `${String(index).padStart(3, '0')}.cjs`)
  writeFileSync(script, ['const { describe } = require(\'node:test\')', ...suites, ''].join('\n'))
  return script
}

/** Compiles all sources once. With tsx, the loading of modules takes each process half a second more. */
async function compile() {
  const sources = ['bench', 'bot', 'cli', 'client', 'plugins/mqtt/src', 'simulator', 'src', 'tests'].flatMap(folder => (
    readdirSync(folder, { recursive: true }).filter(file => /(?<!\.d)\.(?:ts|yml)$/.test(file)).map(file => resolve(folder, file))
  ))
  await Promise.all(sources.map(async source => {
    const text = await readFile(source, 'utf8')
    const code = source.endsWith('.yml')
      ? `module.exports = ${JSON.stringify(load(text))}`
      : (await transform(text, { loader: 'ts', format: 'cjs', target: 'node20', sourcefile: source, sourcemap: 'inline' })).code
    await mkdir(dirname(join(folder, source)), { recursive: true })
    await writeFile(join(folder, source), code)
  }))
}

/** A script that has a process load the compiled code under the paths of the sources. */
function writeLoader() {
  const loader = join(folder, 'loader.cjs')
  writeFileSync(loader, `
    const { readFileSync } = require('node:fs')
    const { join } = require('node:path')
    const load = (module, source) => module._compile(readFileSync(join(__dirname, source), 'utf8'), source)
    require.extensions['.ts'] = load
    require.extensions['.yml'] = load
  `)
  return loader
}

await compile()
const child = spawn(process.execPath, [
  '--enable-source-maps', '--require', writeLoader(), '--test', '--test-reporter=spec',
  `--test-concurrency=${concurrency}`, `--test-timeout=${timeout}`,
  ...groups.map(write),
], { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('close', code => process.exit(code ?? 1))
