// Checks the package as users get it: what is in the tarball, whether its package.json fits it (publint), whether its types are found
// by each way of resolving modules (@arethetypeswrong/cli), whether its installation runs no script, whether its command runs, and
// whether an app written in TypeScript compiles with it and loads it, and whether the plugins of docs/plugins.md compile.
// The app is a temporary folder in which nothing can be imported but Koishi, the package and what the package depends on.
import { deepEqual, equal } from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import ts from 'typescript'
import { manifest, pack, repository, run } from './pack.mjs'

/** What is in the tarball besides type declarations. Of those there are exactly the ones that the app's compilation reads. */
const contents = [
  'CHANGELOG.md', 'LICENSE', 'README.md', 'README.zh-CN.md', 'dist/index.js', 'dist/style.css', 'lib/demo.js', 'lib/demo.licenses.txt', 'lib/index.js', 'lib/relay.js',
  'package.json', ...readdirSync(join(repository, 'simulator/page')).map(file => `lib/page/${file}`),
  ...readdirSync(join(repository, 'src/hooks/templates')).map(file => `lib/templates/${file}`),
]

const app = `
import { Context } from 'koishi'
import * as relay from '${manifest.name}'
import type { Config } from '${manifest.name}'

const config: Config = { apiKey: 'a key', maxUploadSize: '20MB', maxBodySize: 1048576, chatApiTimeout: 20, chatRetryUnanswered: false }
const app = new Context()
app.plugin(relay, config)

// Not called: it only has to compile, or not to.
export function others(): void {
  app.plugin(relay)
  app.plugin(relay, {})
  app.plugin(relay, { path: '/relay', allowedExtensions: ['.log', '.txt'], mediaTransport: 'base64' })
  // @ts-expect-error There is no setting of this name.
  app.plugin(relay, { apikey: 'a key' })
}

const exported: { name: string, inject: string[] } = relay
console.log(exported.name, 'needs', exported.inject.join())
`
// Where Koishi does not take the plugin or its configuration, it prints a warning as well.
const printed = `${manifest.name.replace('koishi-plugin-', '')} needs ${manifest.koishi.service.required.join()}\n`

const folder = await realpath(await mkdtemp(join(tmpdir(), 'relay-package-')))
try {
  const [tarball, mqtt] = [pack(folder), pack(folder, 'plugins/mqtt')]
  const tools = join(repository, 'node_modules/.bin')
  for (const packed of [tarball, mqtt]) {
    run(join(tools, 'publint'), ['run', packed, '--strict'], folder)
    run(join(tools, 'attw'), [packed, '--no-definitely-typed'], folder)
  }
  deepEqual(listed(mqtt), ['LICENSE', 'README.md', 'lib/config.d.ts', 'lib/index.d.ts', 'lib/index.js', 'package.json'])

  const installed = join(folder, 'node_modules', manifest.name)
  await mkdir(installed, { recursive: true })
  run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed], folder)
  for (const dependency of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) {
    await symlink(join(repository, 'node_modules', dependency), join(folder, 'node_modules', dependency))
  }

  const { scripts } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
  deepEqual(['preinstall', 'install', 'postinstall', 'prepare'].filter(name => name in scripts), [], 'its installation runs a script')
  const declarations = await compile()
  const expected = [...contents, ...declarations.map(file => relative(installed, file))].sort()
  const actual = listed(tarball)
  deepEqual(actual, expected)
  equal(run(process.execPath, ['app.cjs'], folder), printed)
  equal(run(process.execPath, [join(installed, manifest.bin.relay), '--version'], folder), `${manifest.version}\n`)
  console.log(`package check passed: ${actual.join(' ')}`)
} finally {
  await rm(folder, { recursive: true, force: true })
}

/** The files in a tarball. */
function listed(packed) {
  return run('tar', ['-tzf', packed], folder).trim().split('\n').map(entry => entry.replace('package/', '')).sort()
}

/** The plugin on a page of the documentation. */
async function pluginOf(page) {
  const [, text] = /^<!-- test: plugin -->\n```ts\n(.*?)^```$/ms.exec(await readFile(join(repository, page), 'utf8')) ?? []
  if (text === undefined) throw new Error(`there is no plugin on ${page}`)
  return text
}

/**
 * Compiles the plugins, and the app as a CommonJS and as an ES module, and returns the declarations of the package that were read for it.
 * Those are checked as well; Koishi's own, which have errors, are not.
 */
async function compile() {
  const [english, chinese] = await Promise.all(['docs/plugins.md', 'docs/zh/plugins.md'].map(pluginOf))
  const sources = { 'app.cts': app, 'app.mts': app, 'english.mts': english, 'chinese.mts': chinese }
  const files = Object.keys(sources).map(name => join(folder, name))
  for (const [name, text] of Object.entries(sources)) await writeFile(join(folder, name), text)
  const program = ts.createProgram(files, {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    types: [],
  })
  const ours = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(`${folder}/`))
  const diagnostics = [
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...ours.flatMap(file => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]),
  ]
  if (diagnostics.length > 0) {
    throw new Error(ts.formatDiagnostics(diagnostics, {
      getCanonicalFileName: name => name,
      getCurrentDirectory: () => folder,
      getNewLine: () => '\n',
    }))
  }
  program.emit()
  return ours.filter(file => file.isDeclarationFile).map(({ fileName }) => fileName)
}
