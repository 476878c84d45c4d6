import { cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../tests/support/process'
import { timeStart } from '../lib/bot'
import { atMostMore } from '../lib/goals'
import { alternate, pick } from '../lib/rounds'
import type { Scenario } from '../lib/scenario'
import { sources, type Stage } from '../lib/stage'

/** The time from `npm start` to the first answer, including the build. */
export const start: Scenario = {
  name: 'start',
  async run({ stage, extent }) {
    const bare = await copyWithoutPlugin(stage)
    const time = async (repository: string, path: string, status?: number): Promise<number> => timeStart({
      repository, path, cwd: await stage.newFolder(), port: await freePort(), ...status !== undefined && { status },
    })
    const results = await alternate(
      extent.isQuick ? 1 : 7,
      () => time(stage.folder, '/healthz', 200),
      () => time(bare, '/healthz'),
    )
    return [{
      what: '`npm start` to the first answer', unit: 'ms', rival: 'the same koishi.yml without the plugin', goal: atMostMore(150, 'ms'),
      pairs: pick(results, time => time),
    }]
  },
}

/** A copy in which the plugin is built but not loaded. */
async function copyWithoutPlugin(stage: Stage): Promise<string> {
  const folder = await stage.newFolder()
  for (const name of sources) await cp(join(stage.folder, name), join(folder, name), { recursive: true })
  await symlink(join(stage.folder, 'node_modules'), join(folder, 'node_modules'))
  const file = join(folder, 'koishi.yml')
  const yaml = await readFile(file, 'utf8')
  const without = yaml.replace(/^ {2}\.\/lib\/index:.*\n?/m, '')
  if (without === yaml) throw new Error('koishi.yml does not name the plugin')
  await writeFile(file, without)
  return folder
}
