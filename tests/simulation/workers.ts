import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'esbuild'

const root = join(__dirname, '../..')

/** A text change in a file of `src/relay`, or in the double of the store, which keeps some of the rules. */
export interface Patch {
  /** The end of its path. */
  file: string
  find: string
  replace: string
}

/** A schedule that failed. */
export interface Finding {
  seed: number
  problems: string[]
}

/** A number of schedules from a seed on. */
export type Range = readonly [first: number, schedules: number]

export interface WorkOptions {
  workers: number
  /** Whether to stop after this finding. */
  isOver?: (finding: Finding) => boolean
  onProgress?: (done: number) => void
}

/**
 * Bundles the simulation and the core, with patches.
 *
 * @returns the script of a worker
 * @throws Error when the text to replace is not there exactly once
 */
export async function bundle(patches: readonly Patch[] = []): Promise<string> {
  const { outputFiles: [output] } = await build({
    entryPoints: [join(__dirname, 'worker.ts')], write: false,
    bundle: true, platform: 'node', target: 'node20', format: 'cjs', packages: 'external', logLevel: 'warning',
    plugins: [{
      name: 'patches',
      setup(builder) {
        builder.onLoad({ filter: /[\\/](?:relay|support)[\\/].*\.ts$/ }, async ({ path }) => {
          let contents = await readFile(path, 'utf8')
          for (const { file, find, replace } of patches) {
            if (!path.replaceAll('\\', '/').endsWith(`/${file}`)) continue
            if (contents.split(find).length !== 2) throw new Error(`${file} does not have this once: ${find}`)
            contents = contents.replace(find, () => replace)
          }
          return { contents, loader: 'ts' }
        })
      },
    }],
  })
  return output?.text ?? ''
}

/**
 * Runs schedules in separate processes, each with the script.
 *
 * @returns the schedules that failed
 * @throws Error when a process ended before it had run its share
 */
export async function runAll(script: string, ranges: readonly Range[], options: WorkOptions): Promise<Finding[]> {
  const { workers, isOver = () => false, onProgress } = options
  const findings: Finding[] = []
  let done = 0
  await Promise.all(Array.from({ length: workers }, (_, index) => new Promise<void>((resolve, reject) => {
    const own = ranges.map(([first, schedules]) => [first + index, Math.ceil((schedules - index) / workers)] as const)
    const share = own.reduce((sum, [, schedules]) => sum + schedules, 0)
    let ran = 0
    const args = [String(workers), ...own.map(range => range.join(':'))]
    const env = { ...process.env, NODE_PATH: join(root, 'node_modules') }
    const child = spawn(process.execPath, ['-', ...args], { stdio: ['pipe', 'pipe', 'inherit'], env })
    child.stdin.end(script)
    createInterface(child.stdout).on('line', line => {
      const [finding, count] = readLine(line)
      if (finding) findings.push(finding)
      ran += count
      done += count
      if (count > 0) onProgress?.(done)
      if (finding && isOver(finding)) child.kill()
    })
    child.on('close', (code, signal) => {
      const isFine = signal === 'SIGTERM' || (code === 0 && ran === share)
      if (isFine) resolve()
      else reject(new Error(`a worker ended with ${code ?? signal ?? ''} after ${ran} of ${share} schedules`))
    })
  })))
  return findings
}

/** A line of a worker: a finding, or the number of finished schedules. */
function readLine(line: string): [finding: Finding | undefined, count: number] {
  const [seed = '', ...problems] = line.split('\t')
  return problems.length === 0 ? [undefined, Number(seed)] : [{ seed: Number(seed), problems }, 0]
}
