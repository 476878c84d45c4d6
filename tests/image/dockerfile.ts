import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { basename, isAbsolute, join, resolve } from 'node:path'

/** The command that installs all that the lock file has: as .ci/run does it, and not once more, because it takes half a minute. */
const install = 'npm ci --no-audit --no-fund'

/** A stage of a Dockerfile, carried out in a folder that stands for its file system. */
export class Stage {
  /** The variables of ARG and ENV, with paths of this machine. */
  readonly environment: Record<string, string> = {}
  /** What stands behind each instruction that is not carried out, such as CMD. */
  readonly settings: Record<string, string> = {}
  workdir = '/'

  constructor(readonly alias: string, private readonly folder: string) {}

  /** A path of the stage as one of this machine. */
  at(path: string): string {
    return join(this.folder, resolve('/', this.workdir, path))
  }
}

/**
 * Carries out the Dockerfile of this repository in plain folders, where there is no container engine. The commands of RUN find the programs
 * of this machine instead of those of a base image, and the build stage takes the `node_modules` of the context.
 *
 * @param context the folder of the Dockerfile, a clone: only what git does not ignore is copied from it
 * @param root an empty folder, in which each stage gets one of its own
 * @param args values for ARG
 * @returns the image
 */
export function carryOut(context: string, root: string, args: Record<string, string> = {}): Stage {
  const files = new Stage('', join(root, 'context'))
  mkdirSync(files.at('.'))
  run('git ls-files -co --exclude-standard -z | tar --null -cT - | tar -xC "$TO"', context, { TO: files.at('.') })
  const stages: Stage[] = []
  const text = readFileSync(join(context, 'Dockerfile'), 'utf8').replace(/^\s*#.*\n/gm, '').replace(/\\\n\s*/g, '')
  for (const [line, name = '', rest = ''] of text.matchAll(/^([A-Z]+) +(.+)$/gm)) {
    if (name === 'FROM') stages.push(new Stage(/ AS (\S+)$/.exec(rest)?.[1] ?? '', join(root, String(stages.length))))
    const stage = stages.at(-1)
    assert(stage, line)
    if (name === 'WORKDIR') {
      stage.workdir = rest
      mkdirSync(stage.at('.'), { recursive: true })
    } else if (name === 'ENV' || name === 'ARG') {
      for (const [, key = '', value = ''] of rest.matchAll(/(\w+)=(\S+)/g)) {
        stage.environment[key] = isAbsolute(value) ? stage.at(value) : args[key] ?? value
      }
    } else if (name === 'COPY') {
      const [, alias, paths = ''] = /^(?:--from=(\S+) )?(.+)$/.exec(rest) ?? []
      const origin = alias === undefined ? files : stages.find(each => each.alias === alias)
      assert(origin, line)
      const [destination = '', ...sources] = paths.split(' ').reverse()
      const to = stage.at(destination)
      for (const path of sources.map(source => origin.at(source))) {
        // A folder is copied by its contents; a file keeps its name.
        cpSync(path, statSync(path).isDirectory() ? to : join(to, basename(path)), { recursive: true })
      }
    } else if (name === 'RUN') {
      // That would be a path of this machine: only those in variables are put below the folder of the stage.
      assert(!/(?:^|[\s"'=])\//.test(rest), `RUN names an absolute path: ${rest}`)
      // What the lock file of this repository says is installed here already.
      if (rest === install) symlinkSync(join(context, 'node_modules'), stage.at('node_modules'))
      else run(rest, stage.at('.'), stage.environment)
    } else stage.settings[name] = rest.replace(/^\$(\w+)$/, (_, variable: string) => stage.environment[variable] ?? '')
  }
  const image = stages.at(-1)
  assert(image)
  return image
}

function run(command: string, cwd: string, environment: Readonly<Record<string, string>>): void {
  const { PATH, HOME } = process.env
  mkdirSync(cwd, { recursive: true })
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
    cwd, env: { PATH, HOME, ...environment }, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'],
  })
  assert.equal(status, 0, `failed: ${command}\n${stdout}${stderr}`)
}
