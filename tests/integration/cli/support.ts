import { build } from 'esbuild'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { temporaryFolder } from '../../support/folder'

const repository = resolve(__dirname, '../../..')

/** Bundles a program of cli/ as the build does, and gives the file; it goes with this process. */
export async function bundled(name: 'relay' | 'action'): Promise<string> {
  const outfile = join(temporaryFolder(), `${name}.js`)
  await build({
    entryPoints: [join(repository, `cli/${name}.ts`)], outfile, bundle: true, platform: 'node', target: 'node20', logLevel: 'warning',
    // What `relay demo` starts is a bundle of its own.
    external: ['../bot/demo'],
  })
  return outfile
}

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

/** Runs a program to its end. It sees no variables but these. */
export async function run(file: string, args: readonly string[], env: Record<string, string>, stdin: string | Buffer = ''): Promise<Ended> {
  const child = spawn(process.execPath, [file, ...args], { env })
  const ended: Ended = { code: null, stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => ended.stdout += text)
  child.stderr.setEncoding('utf8').on('data', (text: string) => ended.stderr += text)
  // It may end without having read.
  child.stdin.on('error', () => undefined).end(stdin)
  await once(child, 'close')
  return { ...ended, code: child.exitCode }
}
