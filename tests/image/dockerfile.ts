import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { cp, mkdir, readFile, symlink } from 'node:fs/promises'
import { basename, isAbsolute, join, relative, resolve } from 'node:path'

/** The command that installs all that the lock file has: as .ci/run does it, and not once more, because it takes half a minute. */
const install = 'npm ci --no-audit --no-fund'

/** A stage of a Dockerfile, carried out in a folder that stands for its file system. */
export class Stage {
  readonly env: Record<string, string> = {}
  readonly args: Record<string, string> = {}
  readonly volumes: string[] = []
  readonly ports: number[] = []
  workdir = '/'
  user = ''
  command: string[] = []
  /** The shell command of the health check. */
  health = ''

  constructor(readonly alias: string, private readonly folder: string) {}

  /** A path of the stage as one of this machine. */
  at(path: string): string {
    return join(this.folder, resolve('/', this.workdir, path))
  }

  /** The variables of ENV, with paths of this machine. */
  get environment(): Record<string, string> {
    return Object.fromEntries(Object.entries(this.env).map(([name, value]) => [name, isAbsolute(value) ? this.at(value) : value]))
  }
}

/**
 * Carries out a Dockerfile in plain folders, where there is no container engine. It knows the instructions and forms that the Dockerfile of
 * this repository uses. The commands of RUN find the programs of this machine instead of those of a base image, and the build stage takes
 * the `node_modules` of the context.
 *
 * @param context the folder of the Dockerfile, a clone: only what git does not ignore is copied from it
 * @param root an empty folder, in which each stage gets one of its own
 * @param args values for ARG
 * @returns the stages, the image last
 * @throws Error for whatever it does not know, and where a command fails
 */
export async function carryOut(context: string, root: string, args: Record<string, string> = {}): Promise<Stage[]> {
  const files = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: context, encoding: 'utf8' }).stdout.split('\n')
  const stages: Stage[] = []
  for (const [name, rest] of instructions(await readFile(join(context, 'Dockerfile'), 'utf8'))) {
    if (name === 'FROM') {
      const [, alias = ''] = match(rest, /^(?:--platform=\S+ )?\S+(?: AS (\S+))?$/)
      const folder = join(root, String(stages.length))
      await mkdir(folder)
      stages.push(new Stage(alias, folder))
      continue
    }
    const stage = stages.at(-1)
    if (stage === undefined) throw new Error(`${name} comes before FROM`)
    switch (name) {
      case 'ARG': {
        const [, key = '', fallback = ''] = match(rest, /^(\w+)=(\S+)$/)
        stage.args[key] = args[key] ?? fallback
        break
      }
      case 'ENV':
        for (const [, key = '', value = ''] of rest.split(' ').map(pair => match(pair, /^(\w+)=(\S+)$/))) stage.env[key] = value
        break
      case 'WORKDIR':
        stage.workdir = resolve('/', stage.workdir, rest)
        await mkdir(stage.at('.'), { recursive: true })
        break
      case 'COPY':
        await copy(rest, stage, stages, context, files)
        break
      case 'RUN':
        // What the lock file of this repository says is installed here already.
        if (rest === install) await symlink(join(context, 'node_modules'), stage.at('node_modules'))
        else carryOutCommand(rest, stage)
        break
      case 'USER':
        stage.user = rest.startsWith('$') ? stage.args[rest.slice(1)] ?? '' : rest
        break
      case 'VOLUME':
        stage.volumes.push(...strings(rest))
        break
      case 'EXPOSE':
        stage.ports.push(Number(rest))
        break
      case 'HEALTHCHECK':
        stage.health = match(rest, /^(?:--\S+ +)*CMD (.+)$/)[1] ?? ''
        break
      case 'CMD':
        stage.command = strings(rest)
        break
      default:
        throw new Error(`there is no way to carry out ${name}`)
    }
  }
  return stages
}

/** Name and arguments of each instruction. */
function instructions(text: string): [string, string][] {
  const lines = text.replace(/^\s*#.*\n/gm, '').replace(/\\\n\s*/g, '').split('\n').filter(line => line.trim() !== '')
  return lines.map(line => {
    const [, name = '', rest = ''] = match(line, /^([A-Z]+) +(.+)$/)
    return [name, rest]
  })
}

async function copy(rest: string, stage: Stage, stages: Stage[], context: string, files: string[]): Promise<void> {
  const [, alias, paths = ''] = match(rest, /^(?:--from=(\S+) )?(.+)$/)
  const [destination = '', ...sources] = paths.split(' ').reverse()
  // A folder is copied by its contents; a file keeps its name where the destination is a folder.
  const to = stage.at(destination)
  const place = (source: string): string => destination.endsWith('/') ? join(to, basename(source)) : to
  for (const source of sources) {
    if (alias !== undefined) {
      const origin = stages.find(each => each.alias === alias)
      if (origin === undefined) throw new Error(`there is no stage ${alias}`)
      const path = origin.at(source)
      await cp(path, statSync(path).isDirectory() ? to : place(source), { recursive: true })
    } else if (files.includes(source)) {
      await cp(join(context, source), place(source))
    } else {
      const inside = files.filter(file => file.startsWith(`${source}/`))
      if (inside.length === 0) throw new Error(`COPY finds no ${source}`)
      for (const file of inside) await cp(join(context, file), join(to, relative(source, file)))
    }
  }
}

function carryOutCommand(command: string, stage: Stage): void {
  // That would be a path of this machine: only those in variables are put below the folder of the stage.
  if (/(?:^|[\s"'=])\//.test(command)) throw new Error(`RUN names an absolute path: ${command}`)
  const { PATH, HOME } = process.env
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
    cwd: stage.at('.'), env: { PATH, HOME, ...stage.environment, ...stage.args }, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (status !== 0) throw new Error(`RUN failed: ${command}\n${stdout}${stderr}`)
}

function match(text: string, pattern: RegExp): RegExpExecArray {
  const found = pattern.exec(text)
  if (!found) throw new Error(`there is no way to carry out "${text}"`)
  return found
}

/** The form of VOLUME and CMD that is a JSON array. */
function strings(text: string): string[] {
  const list: unknown = JSON.parse(text)
  if (!Array.isArray(list)) throw new Error(`this is no list: ${text}`)
  return list.map(String)
}
