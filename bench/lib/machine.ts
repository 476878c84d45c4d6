import { readFile } from 'node:fs/promises'
import { cpus, release, totalmem, type } from 'node:os'
import { join, resolve } from 'node:path'
import { textOf } from './values'

const repository = resolve(__dirname, '../..')

/** The packages whose versions influence the figures. */
const packages = [
  'koishi', '@koishijs/plugin-server', '@koishijs/plugin-adapter-onebot', 'node-sqlite3-wasm', 'formidable', 'ws', 'autocannon',
]

/** The machine and the versions behind the figures, in Markdown. */
export async function describeMachine(): Promise<string> {
  const { version } = await manifest(repository)
  const versions = await Promise.all(packages.map(async name => `${name} ${(await manifest(join(repository, 'node_modules', name))).version}`))
  const [cpu] = cpus()
  return [
    `${new Date().toISOString().slice(0, 10)}, koishi-plugin-message-relay ${version}, Node.js ${process.version}, ${type()} ${release()},`,
    `${cpus().length} × ${cpu?.model.trim() ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GiB;`,
    `${versions.join(', ')}.`,
  ].join(' ')
}

async function manifest(folder: string): Promise<{ version: string }> {
  const content: unknown = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  return { version: textOf(content, 'version') }
}
