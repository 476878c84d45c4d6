// The loader goes on without a word when it cannot read the file .env: the bot starts with other settings than those that were written.
const { mkdirSync, mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { Logger } = require('koishi')
const Loader = require('@koishijs/loader').default

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'koishi-'))
  process.on('exit', () => rmSync(folder, { recursive: true }))
  process.chdir(folder)
  writeFileSync('package.json', '{}')
  writeFileSync('koishi.json', '{"plugins":{}}')
  // Not even an administrator can read it.
  mkdirSync('.env')
  const lines = []
  Logger.targets.push({ record: ({ content }) => lines.push(content) })
  const loader = new Loader()
  await loader.init('koishi.json')
  const error = await loader.readConfig(true).then(() => undefined, error => error)
  const told = [...lines, String(error)].find(line => /\.env|EISDIR/.test(line))
  if (told) end(1, `mended: ${told}`)
  end(0, 'reproduced: the file .env cannot be read, and the loader neither throws nor logs anything')
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
