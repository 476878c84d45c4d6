// Writes the type declarations of a published plugin into its lib/: that of its src/index.ts and those that it refers to. The folder of the
// plugin is the argument; by default it is the relay.
// The other files of src/ are inside the bundle, where nobody can import them, so that their declarations would be of no use.
// Types are not checked here, which would take several times as long: `npm run typecheck` does it.
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import ts from 'typescript'

const folder = process.argv[2] ?? '.'
const { fileNames, options } = ts.getParsedCommandLineOfConfigFile(join(folder, 'tsconfig.build.json'), {}, {
  ...ts.sys,
  onUnRecoverableConfigFileDiagnostic: diagnostic => fail([diagnostic]),
})
const program = ts.createProgram(fileNames, options)

const waiting = [resolve(folder, 'src/index.ts')]
// The array grows while it is walked through.
for (const source of waiting) {
  const { file, text } = declarationOf(source)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
  for (const imported of importsOf(source, text)) if (!waiting.includes(imported)) waiting.push(imported)
}

function declarationOf(source) {
  const file = program.getSourceFile(source)
  if (file === undefined) throw new Error(`the declarations refer to ${source}, which has none`)
  let declaration
  const { diagnostics } = program.emit(file, (path, text) => declaration = { file: path, text }, undefined, true)
  if (diagnostics.length > 0) fail(diagnostics)
  return declaration
}

/** The source files of ours that the declaration of `source` imports. */
function importsOf(source, declaration) {
  return ts.preProcessFile(declaration).importedFiles
    .filter(({ fileName }) => fileName.startsWith('.'))
    .map(({ fileName }) => {
      const module = join(dirname(source), fileName)
      return [`${module}.ts`, join(module, 'index.ts')].find(existsSync) ?? module
    })
}

function fail(diagnostics) {
  console.error(ts.formatDiagnosticsWithColorAndContext(diagnostics, {
    getCanonicalFileName: name => name,
    getCurrentDirectory: () => process.cwd(),
    getNewLine: () => '\n',
  }))
  process.exit(1)
}
