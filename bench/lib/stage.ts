import { build as esbuild } from 'esbuild'
import { spawnSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Child } from './child'

const repository = resolve(__dirname, '../..')

/** The files that a build and `npm start` need. */
export const sources = ['package.json', 'koishi.yml', 'tsconfig.json', 'scripts', 'cli', 'src', 'bot', 'simulator', 'plugins']

/**
 * A copy of the repository, built as for users, so that later changes in the repository do not affect the figures. The benchmark writes
 * only into this copy.
 */
export class Stage {
  private constructor(readonly folder: string, private readonly nodeOptions: readonly string[]) {}

  /** @param nodeOptions options of Node.js for the processes of the relay only */
  static async create(nodeOptions: readonly string[]): Promise<Stage> {
    const folder = await mkdtemp(join(tmpdir(), 'relay-bench-'))
    const stage = new Stage(folder, nodeOptions)
    try {
      for (const name of sources) await cp(join(repository, name), join(folder, name), { recursive: true })
      await build(folder)
      await stage.buildApps()
    } catch (error) {
      await stage.remove()
      throw error
    }
    return stage
  }

  /** The plugin, as it is published. */
  get plugin(): string {
    return join(this.folder, 'lib/index.js')
  }

  /**
   * Builds the plugin as it was at a commit of the repository.
   *
   * @returns its file
   */
  async pluginAt(commit: string): Promise<string> {
    const folder = await this.newFolder()
    const archive = join(folder, 'sources.tar')
    // An older commit may lack some of the sources.
    const present = run('git', ['ls-tree', '--name-only', commit, ...sources], repository).trim().split('\n')
    run('git', ['archive', '--output', archive, commit, ...present], repository)
    run('tar', ['-xf', archive], folder)
    await build(folder)
    return join(folder, 'lib/index.js')
  }

  /** A new, empty folder. */
  newFolder(): Promise<string> {
    return mkdtemp(join(this.folder, 'folder-'))
  }

  /** Starts one of the programs of `apps/`, in a folder of its own. */
  async start(app: string, options: { isRelay?: boolean, exposeGc?: boolean } = {}): Promise<Child> {
    return Child.start(join(this.folder, 'apps', `${app}.js`), await this.newFolder(), [
      ...options.exposeGc ? ['--expose-gc'] : [],
      ...options.isRelay ? this.nodeOptions : [],
    ])
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true, maxRetries: 3 })
  }

  private async buildApps(): Promise<void> {
    const apps = join(repository, 'bench/apps')
    const files = (await readdir(apps)).filter(name => name.endsWith('.ts') && !name.endsWith('.d.ts'))
    await mkdir(join(this.folder, 'apps'))
    await esbuild({
      entryPoints: files.map(name => join(apps, name)),
      outdir: join(this.folder, 'apps'),
      bundle: true,
      platform: 'node',
      target: 'node20',
      format: 'cjs',
      packages: 'external',
      logLevel: 'warning',
    })
  }
}

/** Builds the sources in a folder, with the dependencies of the repository. */
async function build(folder: string): Promise<void> {
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  run(process.execPath, ['scripts/build.mjs'], folder)
}

/** @returns the standard output */
function run(command: string, parameters: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, parameters, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${parameters[0] ?? ''} failed: ${stderr}`)
  return stdout
}
